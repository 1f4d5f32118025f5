"""Publishing a million rows of 13 columns, beside a plain COPY of the same rows; with a PostgreSQL server if there is one.

python -m tests.benchmarks.publishing [ROWS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

import kanon_duck
from tests.postgresql import PASSWORD, binaries, server

ROWS = 1_000_000

GOALS = {"duckdb": 2.0, "parquet": 2.0, "csv": None, "postgresql": 15.0}
"""Seconds for a million rows; the process that publishes is to stay below `MOST_BYTES`."""

MOST_BYTES = 1_000_000_000

PEOPLE = """
CREATE TABLE people AS
SELECT i AS id, 18 + (hash(i, 1) % 70)::INTEGER AS age, (hash(i, 2) % 200 * 500)::INTEGER AS income,
       (10000 + hash(i, 3) % 900)::VARCHAR AS zip, ['m', 'f'][1 + (hash(i, 4) % 2)::INTEGER] AS gender,
       'job ' || (hash(i, 5) % 12) AS job, 'status ' || (hash(i, 6) % 6) AS status,
       'country ' || (hash(i, 7) % 40) AS country, 'diagnosis ' || (hash(i, 8) % 60) AS diagnosis,
       'drug ' || (hash(i, 9) % 30) AS drug
FROM range({rows}) AS r(i)
"""

MASK = """
CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, effort => 'light', secure => {secure},
    quasi_identifiers => ['age', 'income', 'zip', 'gender', 'job', 'status', 'country'],
    sensitive => ['diagnosis', 'drug'])
"""


def measure(folder: Path, kind: str, target: str) -> None:
    """Publish twice in a process of its own; print the seconds of the second time, and the most memory."""
    connection = kanon_duck.connect(folder / "owner.duckdb")
    publish = f"SELECT seconds FROM kanon.publish('masked', '{target}')"
    connection.execute(publish).fetchall()
    started = time.perf_counter()
    connection.execute(publish).fetchall()
    seconds = time.perf_counter() - started
    print(seconds, most_memory())


def most_memory() -> int:
    """The most bytes of memory that this process has had; what getrusage tells began with its parent's."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def plain(folder: Path, kind: str, target: str) -> float:
    """Seconds of a plain copy of the same rows by DuckDB, or by PostgreSQL's COPY from a file that is there already."""
    connection = duckdb.connect(str(folder / "owner.duckdb"))
    file = folder / f"plain.{kind}"
    if kind == "postgresql":
        return _plain_postgresql(connection, folder / "plain.csv", target)
    started = time.perf_counter()
    if kind == "duckdb":
        connection.execute(f"ATTACH '{file}' AS plain (STORAGE_VERSION 'v1.2.0')")
        connection.execute("CREATE TABLE plain.masked AS FROM masked")
        connection.execute("DETACH plain")
    else:
        options = "FORMAT parquet, COMPRESSION zstd" if kind == "parquet" else "FORMAT csv, HEADER"
        connection.execute(f"COPY masked TO '{file}' ({options})")
    return time.perf_counter() - started


def _plain_postgresql(connection: duckdb.DuckDBPyConnection, file: Path, url: str) -> float:
    import psycopg

    columns = ", ".join(
        f'"{name}" {"integer" if kind in ("INTEGER", "BIGINT") else "text"}'
        for name, kind, *_ in connection.execute("DESCRIBE masked").fetchall()
    )
    with psycopg.connect(url) as server_connection:
        server_connection.execute("DROP TABLE IF EXISTS plain")
        server_connection.execute(f"CREATE TABLE plain ({columns})")
        started = time.perf_counter()
        with (
            server_connection.cursor().copy("COPY plain FROM STDIN (FORMAT csv, HEADER)") as copy,
            file.open("rb") as rows,
        ):
            while piece := rows.read(1 << 20):
                copy.write(piece)
        server_connection.commit()
        return time.perf_counter() - started


@contextmanager
def postgresql() -> Iterator[str | None]:
    """The address of a server, if one can be started."""
    if binaries() is None:
        yield None
        return
    with server() as (url, _):
        os.environ["PGPASSWORD"] = PASSWORD
        yield url


def main(rows: int) -> None:
    """Measure each kind of target."""
    print(f"{'':12}{'seconds':>9}{'goal':>8}{'plain':>9}{'ratio':>8}{'memory':>10}")
    with tempfile.TemporaryDirectory() as place, postgresql() as url:
        folder = Path(place)
        for secure in ("true", "false"):
            (folder / "owner.duckdb").unlink(missing_ok=True)
            with kanon_duck.connect(folder / "owner.duckdb") as connection:
                connection.execute(PEOPLE.format(rows=rows))
                connection.execute(MASK.format(secure=secure))
                columns = len(connection.execute("DESCRIBE masked").fetchall())
                print(f"secure => {secure}: {rows:,} rows of {columns} columns")
            for kind, goal in GOALS.items():
                target = str(folder / f"published.{kind}") if kind != "postgresql" else url
                if target is None:
                    print(f"{kind:12}no server: install postgresql")
                    continue
                _report(kind, goal, folder, target, plain)


def _report(kind: str, goal: float | None, folder: Path, target: str, plain: Callable[[Path, str, str], float]) -> None:
    call = [sys.executable, "-m", "tests.benchmarks.publishing", "measure", str(folder), kind, target]
    printed = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    seconds, memory = map(float, printed.split())
    baseline = plain(folder, kind, target)
    for left in folder.glob(f"plain.{kind}"):
        if kind != "csv":
            left.unlink()
    shown = "" if goal is None else f"{goal:.1f}"
    over = " over its goal" if (goal is not None and seconds > goal) or memory > MOST_BYTES else ""
    print(
        f"{kind:12}{seconds:9.2f}{shown:>8}{baseline:9.2f}{seconds / baseline:8.2f}{memory / 1e6:8.0f} MB{over}",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)

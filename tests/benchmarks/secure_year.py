"""A year of daily refreshes of a secure masked view, through SQL: time, waiting, counterfeits and loss.

    python -m tests.benchmarks.secure_year OUTPUT [--rows 50000] [--days 365] [--on-delete counterfeit]

writes ``secure_year.md`` and ``secure_year.csv`` to the folder OUTPUT; the people are those of the table cup, whose
folder KANON_DUCK_DATA names. Each day 0.1% come, 0.1% leave, 0.05% change their sensitive value and 0.05% a
quasi-identifier. Every tenth day all certificates are looked at, and the released classes checked.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from tests.benchmarks import report
from tests.benchmarks.secure import CUP_SOURCE
from tests.benchmarks.tables import data_folder, open_table

DAYS_BETWEEN_CHECKS = 10


@dataclass(frozen=True)
class Day:
    """One refresh."""

    day: int
    seconds: float
    processor_seconds: float
    people: int
    waiting: float
    counterfeits: float
    loss: float
    fewest_candidates: int | None
    memory_gb: float


def change(connection: duckdb.DuckDBPyConnection, source: str, rows: int, day: int) -> None:
    """The changes of a day."""
    share = rows // 1000
    connection.execute(
        f"DELETE FROM register WHERE id IN (SELECT id FROM register ORDER BY hash(id + {day}) LIMIT {share})"
    )
    connection.execute(
        f"INSERT INTO register SELECT * REPLACE ({100_000_000 + day * share} + row_number() OVER () AS id) "
        f"FROM (FROM {source} ORDER BY hash(id * {day + 1}) LIMIT {share})"
    )
    for column, salt in (("INCOME", 7), ("AGE", 11)):
        connection.execute(
            f"UPDATE register SET {column} = other.value FROM (SELECT changed.id, given.value FROM "
            f"(SELECT id, row_number() OVER () AS n FROM (SELECT id FROM register ORDER BY hash(id + {salt * 1000 + day}) "
            f"LIMIT {share // 2})) AS changed JOIN (SELECT {column} AS value, row_number() OVER () AS n FROM "
            f"(FROM {source} ORDER BY hash(id + {salt * 2000 + day}) LIMIT {share // 2})) AS given USING (n)) AS other "
            "WHERE register.id = other.id"
        )


def year(folder: Path, rows: int, days: int, on_delete: str) -> list[Day]:
    """The days, one after the other."""
    source = CUP_SOURCE
    made = []
    with open_table(source.table, folder) as connection:
        name = source.table.name
        connection.execute(f"CREATE TABLE register AS FROM {name} ORDER BY hash(id) LIMIT {rows}")
        connection.execute(
            "CALL kanon.create_masked_view('masked', source => 'register', key => 'id', k => ?, l => ?, "
            f"quasi_identifiers => {source.quasi_identifiers}, sensitive => ['{source.sensitive}'], on_delete => ?)",
            [source.k, source.l, on_delete],
        )
        for day in range(1, days + 1):
            change(connection, name, rows, day)
            started, processor = time.perf_counter(), time.process_time()
            row = _row(connection, "FROM kanon.refresh('masked')")
            seconds, processor = time.perf_counter() - started, time.process_time() - processor
            fewest = _fewest_candidates(connection, source.l) if day % DAYS_BETWEEN_CHECKS == 0 else None
            people = row["rows"] - row["counterfeits"]
            made.append(
                Day(
                    day, seconds, processor, people, row["waiting"] / (people + row["waiting"]),
                    row["counterfeits"] / people, row["information_loss_per_row"], fewest,
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
                )
            )  # fmt: skip
            if day % DAYS_BETWEEN_CHECKS == 0:
                print(made[-1], flush=True)
    return made


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    cursor = connection.execute(query)
    assert cursor.description is not None
    return dict(zip([column[0] for column in cursor.description], cursor.fetchall()[0], strict=True))


def _fewest_candidates(connection: duckdb.DuckDBPyConnection, least: int) -> int:
    """The fewest candidate rows of anybody; asserts that everybody has enough values, and that classes pass."""
    query = "SELECT min(candidates), min(len(\"values\")) FROM kanon.certificates('masked')"
    fewest, values = connection.execute(query).fetchall()[0]
    assert values >= least
    failed = connection.execute("SELECT count(*) FROM kanon.check('masked') WHERE NOT passed").fetchall()[0][0]
    assert failed == 0
    return int(fewest)


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--on-delete", default="counterfeit")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    folder = data_folder()
    if folder is None:
        raise SystemExit("KANON_DUCK_DATA is not set")
    days = year(folder, options.rows, options.days, options.on_delete)
    report.write_csv(days, options.output / "secure_year.csv")
    times = np.array([each.processor_seconds for each in days])
    notes = [
        *report.machine(),
        f"processor seconds of a refresh: {np.median(times[:30]):.2f} in the first 30 days, "
        f"{np.median(times[-30:]):.2f} in the last",
    ]
    sections = [report.section("Every tenth day", report.table(days[DAYS_BETWEEN_CHECKS - 1 :: DAYS_BETWEEN_CHECKS]))]
    report.write("A year of secure releases", notes, sections, options.output / "secure_year.md")


if __name__ == "__main__":
    main()

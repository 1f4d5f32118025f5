"""Calls that make releases of one masked view through SQL: timed, and what they release is checked.

    python -m tests.benchmarks.one_call DATABASE TABLE QUASI_IDENTIFIERS K OPTIONS

makes the view and drops it again, twice in a process of its own, and prints what `NewProcess` holds as JSON. The
module loads nothing but the standard library, so that the process measures the time to load everything else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb


def mask(connection: duckdb.DuckDBPyConnection, table: str, quasi_identifiers: str, k: int, more: str = "") -> float:
    """Make the view ``benchmark`` of a table with a column ``id`` for its key; returns the seconds it took.

    ``more`` are further options, each with a comma before it.
    """
    started = time.perf_counter()
    connection.execute(
        f"CALL kanon.create_masked_view('benchmark', source => '{table}', key => 'id', k => {k}, "
        f"quasi_identifiers => {quasi_identifiers}, independent => true{more})"
    )
    return time.perf_counter() - started


def drop(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what `mask` made."""
    connection.execute("CALL kanon.drop_masked_view('benchmark')")


@dataclass(frozen=True)
class Release:
    """A release that has passed its check.

    Attributes
    ----------
    rows : int
    loss : float
        Per row.
    seconds, processor : float
        Of the wall clock, and of the processor in all threads.
    """

    rows: int
    loss: float
    seconds: float
    processor: float


def _checked(connection: duckdb.DuckDBPyConnection, call: str, seconds: float, processor: float) -> Release:
    """The current release of the view ``benchmark``, which a call made in some seconds."""
    [(rows, loss, passed)] = connection.execute(
        "SELECT r.rows, r.information_loss_per_row, c.passed "
        "FROM kanon.releases AS r JOIN kanon.check('benchmark') AS c USING (release) WHERE r.view_name = 'benchmark'"
    ).fetchall()
    if not passed:
        raise AssertionError(f"{call}: the release does not pass its check")
    return Release(rows, loss, seconds, processor)


def create(
    connection: duckdb.DuckDBPyConnection, table: str, quasi_identifiers: str, k: int, more: str = ""
) -> Release:
    """Make a view as `mask` does, check it, and drop it."""
    processor = time.process_time()
    seconds = mask(connection, table, quasi_identifiers, k, more)
    made = _checked(connection, f"{table}, k = {k}{more}", seconds, time.process_time() - processor)
    drop(connection)
    return made


def release(connection: duckdb.DuckDBPyConnection, verb: str) -> Release:
    """Let refresh, rebuild or optimize make the next release of the view that `mask` made, and check it."""
    started, processor = time.perf_counter(), time.process_time()
    connection.execute(f"CALL kanon.{verb}('benchmark')").fetchall()
    return _checked(connection, verb, time.perf_counter() - started, time.process_time() - processor)


@dataclass(frozen=True)
class NewProcess:
    """Two calls in a new process.

    Attributes
    ----------
    rows : int
    loss : float
        Per row.
    start : float
        Seconds to import kanon_duck and open the database.
    first, second : float
        Seconds of the two calls.
    processor : float
        Processor seconds of all threads from the start of the process to the end of the first call.
    memory_before, peak_memory : float
        Resident gigabytes before the first call, and the most until its end; 0 where the system does not tell.
    """

    rows: int
    loss: float
    start: float
    first: float
    second: float
    processor: float
    memory_before: float
    peak_memory: float


def in_new_process(
    database: Path, table: str, quasi_identifiers: str, k: int, more: str = "", numba_cache: Path | None = None
) -> NewProcess:
    """Make a masked view of a table in a database file, twice, in a new process."""
    environment = {"NUMBA_CACHE_DIR": str(numba_cache)} if numba_cache else {}
    arguments = [str(database), table, quasi_identifiers, str(k), more]
    return NewProcess(**printed_by("tests.benchmarks.one_call", arguments, environment))


def printed_by(module: str, arguments: list[str], environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What a module prints as JSON when it runs in a new process."""
    process = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(process.stdout)


def _memory(field: str) -> float:
    """Gigabytes from the status that Linux keeps of this process: the usage counters also count its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    [line] = [line for line in status.read_text().splitlines() if line.startswith(field + ":")]
    return int(line.split()[1]) * 1024 / 1e9


def _measure(database: str, table: str, quasi_identifiers: str, k: int, more: str) -> NewProcess:
    """What the new process does."""
    started = time.perf_counter()
    import kanon_duck

    with kanon_duck.connect(database) as connection:
        start = time.perf_counter() - started
        before = _memory("VmRSS")
        first = create(connection, table, quasi_identifiers, k, more)
        processor = time.process_time()
        peak = _memory("VmHWM")
        second = create(connection, table, quasi_identifiers, k, more)
    return NewProcess(first.rows, first.loss, start, first.seconds, second.seconds, processor, before, peak)


if __name__ == "__main__":
    _, database, table, quasi_identifiers, k, more = sys.argv
    print(json.dumps(asdict(_measure(database, table, quasi_identifiers, int(k), more))))

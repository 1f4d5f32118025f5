"""Refreshes of a made-up table of which one percent of the people leave and as many come, beside rebuilds."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

import kanon_duck
from tests.benchmarks import report
from tests.benchmarks.one_call import Release, drop, mask, release
from tests.benchmarks.one_refresh import refresh_in_new_process
from tests.benchmarks.synthetic import QUASI_IDENTIFIERS
from tests.benchmarks.tables import SENSITIVE, SPEED_K, create_synthetic

REPEATS = 3
"""Of what is timed after one churn."""

IN_A_ROW = 20
"""Refreshes without a rebuild between them."""

QUERIES = 20
"""Repeats of a query, of which the quickest counts."""

TRIGGERS = int(duckdb.__version__.split(".")[0]) >= 2
"""Whether this DuckDB has triggers."""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes
    ----------
    what : str
    rows : int
    value : float
    goal : str
    ratio : float or None
        Of the value to that of ``baseline``, which was measured in the same run.
    baseline : str
    processor_seconds : float or None
        Of the call that was timed, where it is one that makes a release.
    """

    what: str
    rows: int
    value: float
    goal: str = ""
    ratio: float | None = None
    baseline: str = ""
    processor_seconds: float | None = None


def _create_register(connection: duckdb.DuckDBPyConnection, rows: int, churns: int) -> None:
    """Make the table ``register``, and the table ``everybody`` with those who come later, too."""
    create_synthetic(connection, "everybody", rows + churns * (rows // 100))
    connection.execute(f"CREATE TABLE register AS FROM everybody WHERE id < {rows}")


def _mask(connection: duckdb.DuckDBPyConnection, more: str = "") -> None:
    mask(connection, "register", str(QUASI_IDENTIFIERS), SPEED_K, f"{SENSITIVE}, secure => false{more}")


def _churn(connection: duckdb.DuckDBPyConnection, rows: int, number: int) -> None:
    """Delete one percent of the first people, from all over the table, and insert as many new ones."""
    come = rows + number * (rows // 100)
    connection.execute(f"DELETE FROM register WHERE id % 100 = {number} AND id < {rows}")
    connection.execute(f"INSERT INTO register FROM everybody WHERE id >= {come} AND id < {come + rows // 100}")


def _seconds(connection: duckdb.DuckDBPyConnection, query: str) -> float:
    """Seconds of a query and of its rows."""
    started = time.perf_counter()
    connection.execute(query).fetchall()
    return time.perf_counter() - started


def _warm(connection: duckdb.DuckDBPyConnection, rows: int, numbers: range) -> tuple[float, list[Figure]]:
    """Refreshes, each beside a rebuild of the same rows; returns also the seconds of the quickest."""
    pending, refreshed, rebuilt = [], [], []
    for number in numbers:
        _churn(connection, rows, number)
        pending.append(_seconds(connection, "FROM kanon.pending('benchmark')"))
        refreshed.append(release(connection, "refresh"))
        rebuilt.append(release(connection, "rebuild"))
    warm, rebuild = _quickest(refreshed), _quickest(rebuilt)
    worst, base = max(zip(refreshed, rebuilt, strict=True), key=lambda pair: pair[0].loss / pair[1].loss)
    return warm.seconds, [
        Figure("seconds of a rebuild", rows, rebuild.seconds, processor_seconds=rebuild.processor),
        _timed("a warm refresh", warm, rebuild.seconds, "rebuild", "1.0; ratio 0.2"),
        _beside("seconds of kanon.pending", rows, min(pending), warm.seconds, "warm refresh"),
        _beside("loss per row after a refresh", rows, worst.loss, base.loss, "rebuild", "ratio 1.02"),
    ]


def _in_new_processes(file: Path, rows: int, numbers: range, warm: float) -> list[Figure]:
    """Refreshes, each the first call of its process."""
    refreshed = []
    for number in numbers:
        with kanon_duck.connect(str(file)) as connection:
            _churn(connection, rows, number)
        refreshed.append(refresh_in_new_process(file))
    first = min(refreshed, key=lambda each: each.start + each.seconds)
    whole = _beside("... with import and connect", rows, first.start + first.seconds, warm, "warm refresh", "2.5")
    return [
        _beside("seconds of the first refresh in a new process", rows, first.seconds, warm, "warm refresh"),
        replace(whole, processor_seconds=first.processor),
    ]


def _with_triggers(connection: duckdb.DuckDBPyConnection, rows: int, numbers: range, warm: float) -> Figure:
    """Refreshes of a view whose source notes its changes."""
    drop(connection)
    _mask(connection, ", capture => 'trigger'")
    refreshed = []
    for number in numbers:
        _churn(connection, rows, number)
        refreshed.append(release(connection, "refresh"))
    return _timed("a warm refresh, capture => 'trigger'", _quickest(refreshed), warm, "capture => 'diff'")


def _quickest(releases: list[Release]) -> Release:
    return min(releases, key=lambda each: each.seconds)


def _beside(what: str, rows: int, value: float, base: float, baseline: str, goal: str = "") -> Figure:
    return Figure(what, rows, value, goal, value / base, baseline)


def _timed(what: str, made: Release, base: float, baseline: str, goal: str = "") -> Figure:
    figure = _beside(f"seconds of {what}", made.rows, made.seconds, base, baseline, goal)
    return replace(figure, processor_seconds=made.processor)


def one_churn(file: Path, rows: int) -> list[Figure]:
    """A refresh after one churn: warm, in a new process, and with triggers; of each, the quickest call counts."""
    first, second, third = (range(start, start + REPEATS) for start in range(0, 3 * REPEATS, REPEATS))
    with kanon_duck.connect(str(file)) as connection:
        _create_register(connection, rows, 3 * REPEATS)
        _mask(connection)
        warm, figures = _warm(connection, rows, first)
    print(f"measured a churn of {rows:,} rows", flush=True)
    figures += _in_new_processes(file, rows, second, warm)
    if TRIGGERS:
        with kanon_duck.connect(str(file)) as connection:
            figures.append(_with_triggers(connection, rows, third, warm))
    return figures


def _group_by(connection: duckdb.DuckDBPyConnection, rows: int, when: str) -> Figure:
    """The same aggregation of the masked view and of its source."""
    view, source = (
        min(
            _seconds(connection, f"SELECT marital_status, diagnosis, count(*) FROM {relation} GROUP BY ALL")
            for _ in range(QUERIES)
        )
        for relation in ("benchmark", "register")
    )
    return _beside(
        f"seconds of a GROUP BY on the masked view, {when}", rows, view, source, "on the source", "ratio 1.5"
    )


def churns_in_a_row(file: Path, rows: int) -> tuple[list[Figure], list[Release]]:
    """Refreshes after one churn each, without a rebuild between them.

    Returns
    -------
    list of Figure
    list of Release
        The refreshes, then a rebuild.
    """
    with kanon_duck.connect(str(file)) as connection:
        _create_register(connection, rows, IN_A_ROW)
        _mask(connection)
        before = _group_by(connection, rows, "before")
        refreshed = []
        for number in range(IN_A_ROW):
            _churn(connection, rows, number)
            refreshed.append(release(connection, "refresh"))
        after = _group_by(connection, rows, "after")
        rebuilt = release(connection, "rebuild")
    print(f"measured {IN_A_ROW} churns of {rows:,} rows", flush=True)
    first, last = refreshed[0], refreshed[-1]
    return [
        _beside(f"loss per row after {IN_A_ROW} refreshes", rows, last.loss, rebuilt.loss, "rebuild", "ratio 1.05"),
        _timed("the first of them", first, rebuilt.seconds, "rebuild"),
        _timed("the last", last, first.seconds, "the first", "ratio 1"),
        before,
        after,
    ], [*refreshed, rebuilt]


def draw_plot(releases: list[Release], output: Path) -> None:
    """Loss and seconds of refreshes in a row, and those of the rebuild after them."""
    *refreshed, rebuilt = releases

    def draw(axes: Any) -> None:
        numbers = range(1, len(refreshed) + 1)
        for panel, name, title in zip(axes, ("loss", "seconds"), ("information loss per row", "seconds"), strict=True):
            panel.plot(numbers, [getattr(each, name) for each in refreshed], marker="o", label="refresh")
            panel.axhline(getattr(rebuilt, name), color="C1", linestyle="--", label="rebuild of the last state")
            panel.set(xlabel=f"refreshes, each of 1% churn of {rebuilt.rows:,} rows", ylabel=title)
            panel.set_ylim(bottom=0 if name == "seconds" else None)
            panel.legend()

    report.plot(output / "refreshes_in_a_row.png", draw, columns=2)

"""The experiment of Truta & Campan 2007, section 5, on Adult and through SQL: refresh beside rebuild.

Inserts begin with 10,000 rows, deletes end with them; people come and go in the order of the file. Each view is
refreshed, optimized, rebuilt, and optimized again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from tests.benchmarks import report
from tests.benchmarks.one_call import Release, drop, mask, release
from tests.benchmarks.tables import ADULT, QUALITY_K, open_table

ROWS = 10_000
INSERTED, DELETED = (0.5, 1, 2, 5, 10, 25, 50), (0.5, 1, 2, 5, 10, 25, 33)
"""Percent of the rows before the change."""

METHODS = ("k_member", "auto")


@dataclass(frozen=True)
class Change:
    """Rows before and after, of which one is ``ROWS``; ``percent`` is below 0 where rows are deleted."""

    percent: float
    before: int
    after: int


CHANGES = [
    *(Change(percent, ROWS, round(ROWS * (1 + percent / 100))) for percent in INSERTED),
    *(Change(-percent, round(ROWS / (1 - percent / 100)), ROWS) for percent in DELETED),
]


@dataclass(frozen=True)
class Comparison:
    """A refresh beside a rebuild of the same rows, before and after IL_Optimization; losses are per row.

    Attributes
    ----------
    percent : float
        As in `Change`.
    rows, k : int
    method : str
    refresh_loss, rebuild_loss, loss_ratio : float
    refresh_seconds, rebuild_seconds, seconds_ratio : float
    optimized_refresh_loss, optimized_rebuild_loss, optimized_loss_ratio : float
    optimize_refresh_seconds, optimize_rebuild_seconds : float
        Of the optimization alone.
    static_loss, static_seconds, append_loss, append_seconds : float or None
        Of refreshes by the other ways of maintenance, for inserts.
    """

    percent: float
    rows: int
    k: int
    method: str
    refresh_loss: float
    rebuild_loss: float
    loss_ratio: float
    refresh_seconds: float
    rebuild_seconds: float
    seconds_ratio: float
    optimized_refresh_loss: float
    optimized_rebuild_loss: float
    optimized_loss_ratio: float
    optimize_refresh_seconds: float
    optimize_rebuild_seconds: float
    static_loss: float | None = None
    static_seconds: float | None = None
    append_loss: float | None = None
    append_seconds: float | None = None


def _set_rows(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Let the table of people hold the first rows of Adult, by the fewest deletes and inserts."""
    connection.execute(f"DELETE FROM people WHERE id > {rows}")
    connection.execute(f"INSERT INTO people FROM adult WHERE id <= {rows} AND id NOT IN (SELECT id FROM people)")


def _changed(
    connection: duckdb.DuckDBPyConnection, change: Change, k: int, method: str, maintenance: str, verbs: list[str]
) -> list[Release]:
    """The releases that verbs make one after the other, once the source of a new view has changed."""
    _set_rows(connection, change.before)
    more = f", method => '{method}', maintenance => '{maintenance}', secure => false"
    mask(connection, "people", str(ADULT.quasi_identifiers), k, more)
    _set_rows(connection, change.after)
    made = [release(connection, verb) for verb in verbs]
    drop(connection)
    return made


def compare(connection: duckdb.DuckDBPyConnection, change: Change, k: int, method: str) -> Comparison:
    """All ways to bring one change into a view."""
    refresh, optimized, rebuild, optimized_rebuild = _changed(
        connection, change, k, method, "incremental", ["refresh", "optimize", "rebuild", "optimize"]
    )
    others = {}
    if change.percent > 0:
        for maintenance in ("static", "append"):
            [other] = _changed(connection, change, k, method, maintenance, ["refresh"])
            others |= {f"{maintenance}_loss": other.loss, f"{maintenance}_seconds": other.seconds}
    return Comparison(
        percent=change.percent,
        rows=refresh.rows,
        k=k,
        method=method,
        refresh_loss=refresh.loss,
        rebuild_loss=rebuild.loss,
        loss_ratio=refresh.loss / rebuild.loss,
        refresh_seconds=refresh.seconds,
        rebuild_seconds=rebuild.seconds,
        seconds_ratio=refresh.seconds / rebuild.seconds,
        optimized_refresh_loss=optimized.loss,
        optimized_rebuild_loss=optimized_rebuild.loss,
        optimized_loss_ratio=optimized.loss / optimized_rebuild.loss,
        optimize_refresh_seconds=optimized.seconds,
        optimize_rebuild_seconds=optimized_rebuild.seconds,
        **others,
    )


def on_adult(folder: Path) -> Iterator[Comparison]:
    """All changes, k and methods."""
    with open_table(ADULT, folder) as connection:
        connection.execute("CREATE TABLE people AS FROM adult LIMIT 0")
        for method in METHODS:
            compare(connection, CHANGES[0], QUALITY_K[0], method)  # compiles
            for k in QUALITY_K:
                for change in CHANGES:
                    yield compare(connection, change, k, method)
                print(f"measured adult, {method}, k = {k}", flush=True)


def summary(comparisons: list[Comparison]) -> list[str]:
    """One line for each method and kind of change: the medians over all k for the least change and for the most."""
    said = []
    for method in METHODS:
        for kind, percents in {"inserts": INSERTED, "deletes": [-percent for percent in DELETED]}.items():
            told = []
            for percent in (percents[0], percents[-1]):
                these = [each for each in comparisons if each.method == method and each.percent == percent]
                loss, optimized, seconds = (
                    median(getattr(each, name) for each in these)
                    for name in ("loss_ratio", "optimized_loss_ratio", "seconds_ratio")
                )
                told.append(
                    f"of {abs(percent)}% refreshed in {seconds:.2f} of the time of a rebuild, with {loss:.3f} of its "
                    f"loss ({optimized:.3f} if both are optimized)"
                )
            said.append(f"adult, {method}: {kind} {'; '.join(told)}")
    return said


def draw_plots(comparisons: list[Comparison], output: Path) -> None:
    """The shapes of Figures 4 to 6, for each method."""
    for method in METHODS:
        these = [each for each in comparisons if each.method == method]
        report.plot(output / f"adult_{method}.png", partial(_draw, these), rows=3, columns=2)


def _draw(comparisons: list[Comparison], axes: Any) -> None:
    """Loss after optimization, seconds, and what optimization gains, against the share inserted and deleted."""
    shown = {
        "information loss per row, optimized": ("optimized_refresh_loss", "optimized_rebuild_loss"),
        "seconds": ("refresh_seconds", "rebuild_seconds"),
        "information loss per row, refreshed": ("refresh_loss", "optimized_refresh_loss"),
    }
    labels = ("refresh", "rebuild"), ("refresh", "rebuild"), ("before optimization", "after")
    for row, (title, names) in enumerate(shown.items()):
        for column, kind in enumerate(("inserted", "deleted")):
            panel = axes[row, column]
            for number, k in enumerate(QUALITY_K):
                these = [each for each in comparisons if each.k == k and (each.percent > 0) == (kind == "inserted")]
                percents = [abs(each.percent) for each in these]
                for name, label, style in zip(names, labels[row], ("-o", "--x"), strict=True):
                    values = [getattr(each, name) for each in these]
                    panel.plot(percents, values, style, color=f"C{number}", label=f"{label}, k = {k}")
            panel.set(xscale="log", xlabel=f"percent {kind}", ylabel=title)
        axes[row, 1].legend(loc="upper left", bbox_to_anchor=(1, 1))  # beside the lines, the same for both

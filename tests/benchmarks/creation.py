"""Figures of creating a masked view, each beside its goal and a baseline measured in the same run.

    python -m tests.benchmarks.creation OUTPUT [--rows 1000000]

writes ``creation.md``, ``creation.csv`` and a plot of seconds against rows to the folder OUTPUT. With the real data
sets, which are looked for in the folder that KANON_DUCK_DATA names, there are their figures too, and a plot of loss
against seconds on Adult. Everything goes through SQL; times are of the wall clock, warm unless said otherwise. Other
tools are looked for in the Python that KANON_DUCK_PEERS names; what is missing is left out, and said so.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import kanon_duck
from kanon_duck.clustering.order import order
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.runtime.call import no_checkpoint
from tests.benchmarks import peers, phases, report, synthetic
from tests.benchmarks.one_call import create, drop, in_new_process, mask
from tests.benchmarks.tables import (
    ADULT,
    CHOOSING,
    HELD_OUT,
    QUALITY_K,
    SENSITIVE,
    SPEED_K,
    Table,
    create_synthetic,
    data_folder,
    encoded,
    loss_per_row,
    open_table,
)

METHODS = {
    "k_member": ", method => 'k_member'",
    "oka": ", method => 'oka'",
    "auto light": ", effort => 'light'",
    "auto medium": "",
    "auto heavy": ", effort => 'heavy'",
}
ADULT_GOALS = {3: "0.24", 5: "0.38, 2 s", 10: "0.60", 25: "0.98"}
PEERS = {"anonypy": [0.0], "anjana": [0.0, 10.0]}
"""The tools beside ours, and the percent of the rows that they may leave out."""

SIZES = "synthetic"
"""The made-up tables of rising size."""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes
    ----------
    data, half : str
        The table, and which half of the tables it belongs to, if any.
    rows, k : int
    method : str
    loss : float
        Information loss per row.
    seconds : float
    goal : str
    ratio : float or None
        Of the loss to that of ``baseline``, which was measured in the same run.
    baseline : str
    memory : str
        Peak of the process, where it was measured.
    """

    data: str
    half: str
    rows: int
    k: int
    method: str
    loss: float
    seconds: float
    goal: str = ""
    ratio: float | None = None
    baseline: str = ""
    memory: str = ""


def measured(connection: duckdb.DuckDBPyConnection, table: Table, half: str, k: int, method: str) -> Figure:
    """The quicker of two calls: the first may have to compile."""
    calls = [create(connection, table.name, str(table.quasi_identifiers), k, METHODS[method]) for _ in range(2)]
    quicker = min(calls, key=lambda call: call.seconds)
    return Figure(table.name, half, quicker.rows, k, method, quicker.loss, quicker.seconds)


def quality(connection: duckdb.DuckDBPyConnection, table: Table, half: str, k: int) -> list[Figure]:
    """All our methods on a table; the loss of `auto` beside that of the best other one."""
    figures = {method: measured(connection, table, half, k, method) for method in METHODS}
    others = [figure for method, figure in figures.items() if not method.startswith("auto")]
    best = min(others, key=lambda figure: figure.loss)
    for method in set(METHODS) - {other.method for other in others}:
        figures[method] = replace(figures[method], ratio=figures[method].loss / best.loss, baseline=best.method)
    goal = ADULT_GOALS[k] if table is ADULT else "ratio below 1"
    figures["auto medium"] = replace(figures["auto medium"], goal=goal)
    return list(figures.values())


def other_tools(connection: duckdb.DuckDBPyConnection, k: int) -> tuple[list[Figure], list[str]]:
    """Other tools on Adult, and notes on them; a row that a tool leaves out counts as lost whole."""
    microdata, snapshot_row, _ = encoded(connection, ADULT.name, ADULT.quasi_identifiers)
    figures, notes = [], []
    for tool, shares in PEERS.items():
        for share in shares:
            made = peers.partition(connection, ADULT.name, list(ADULT.quasi_identifiers), k, tool, share)
            if made is None:
                notes.append(f"{tool} is not installed in {peers.PYTHON}: left out")
                break
            name = f"{tool} {made.version}" + (f", {share:.0f}% suppression" if share else "")
            # the encoded rows stand in the order of a hash
            loss = loss_per_row(microdata, made.labels[snapshot_row - snapshot_row.min()])
            figures.append(Figure(ADULT.name, "", len(made.labels), k, name, loss, made.seconds))
            absent = np.count_nonzero(made.labels < 0)
            smallest = np.bincount(made.labels[made.labels >= 0]).min()
            notes.append(
                f"{name}: {absent:,} rows left out, each counted as lost whole ({len(microdata.attributes)}); "
                f"smallest class {smallest}; measured on its partition, whose cells we make as narrow as they can be"
            )
    return figures, notes


def on_real_tables(folder: Path) -> tuple[list[Figure], list[str]]:
    """The quality of all methods on both halves of the tables, and other tools on Adult."""
    figures, notes = [], []
    for half, tables in {"choosing": CHOOSING, "held out": HELD_OUT}.items():
        for table in tables:
            with open_table(table, folder) as connection:
                for k in (*QUALITY_K, 25) if table is ADULT else QUALITY_K:
                    figures += quality(connection, table, half, k)
                    print(f"measured {table.name}, k = {k}", flush=True)
                if table is ADULT:
                    made, told = other_tools(connection, SPEED_K)
                    [ours] = [each for each in figures if each.k == SPEED_K and each.method == "auto medium"]
                    figures += [replace(each, ratio=each.loss / ours.loss, baseline="auto medium") for each in made]
                    notes += told
    return figures, notes


def summary(figures: list[Figure]) -> list[str]:
    """One line for each half: `auto` at medium effort beside the best other method."""
    said = []
    for half in ("choosing", "held out"):
        ratios = [each.ratio for each in figures if each.half == half and each.method == "auto medium" and each.ratio]
        better = sum(ratio < 1 for ratio in ratios)
        said.append(
            f"auto medium on the half '{half}': loss {np.mean(ratios):.3f} of the best other method's on average, "
            f"{min(ratios):.3f} to {max(ratios):.3f}; lower in {better} of {len(ratios)} cases"
        )
    return said


def every_k_rows(microdata: Microdata, k: int) -> float:
    """Loss per row of the order that `auto` begins with, cut every k rows."""
    rows = microdata.encoding.rows
    labels = np.empty(rows, np.int64)
    labels[order(microdata.encoding, k, no_checkpoint)] = np.minimum(np.arange(rows) // k, rows // k - 1)
    return loss_per_row(microdata, labels)


def on_many_rows(folder: Path, sizes: list[int]) -> Iterator[Figure]:
    """Made-up tables of rising size, each in a file; a million rows beside its goals."""
    for rows in sizes:
        file = folder / f"{rows}.db"
        with kanon_duck.connect(str(file)) as connection:
            create_synthetic(connection, SIZES, rows)
        call = in_new_process(file, SIZES, str(synthetic.QUASI_IDENTIFIERS), SPEED_K, SENSITIVE)
        with kanon_duck.connect(str(file)) as connection:
            fixed = every_k_rows(encoded(connection, SIZES, synthetic.QUASI_IDENTIFIERS).microdata, SPEED_K)
        goal = "5 s, 1.5 GB, ratio 0.80" if rows == 1_000_000 else ""
        memory = f"{call.peak_memory:.2f} GB ({call.memory_before:.2f} before)" if call.peak_memory else ""
        figure = Figure(SIZES, "", call.rows, SPEED_K, "auto medium", call.loss, call.second, goal, memory=memory)
        yield replace(figure, ratio=call.loss / fixed, baseline="same order cut every k rows")


def starting(database: Path, folder: Path) -> str:
    """Seconds of the first call ever, with nothing compiled, and what a later process adds to a warm call."""
    cold, later = (
        in_new_process(database, SIZES, str(synthetic.QUASI_IDENTIFIERS), SPEED_K, SENSITIVE, folder / "numba")
        for _ in range(2)
    )
    rows = [
        ["first call ever: import, connect, compile, create", f"{cold.start + cold.first:.2f}", "10"],
        ["... of the processor", f"{cold.processor:.2f}", ""],
        ["later process, beyond a warm call", f"{later.start + later.first - later.second:.2f}", "1"],
        ["... of which import and connect", f"{later.start:.2f}", ""],
        ["warm call", f"{later.second:.2f}", ""],
    ]
    return f"A made-up table of {later.rows:,} rows.\n\n" + report.lines(["what", "seconds", "goal"], rows)


def profile(
    connection: duckdb.DuckDBPyConnection, table: str, quasi_identifiers: list[str] | dict[str, str], more: str = ""
) -> list[str]:
    """Seconds of each phase of a warm call, what is left, and the sum."""
    arguments = connection, table, str(quasi_identifiers), SPEED_K, more
    create(*arguments)
    with phases.measured() as seconds:
        whole = mask(*arguments)
    drop(connection)
    return [f"{each:.3f}" for each in (*seconds.values(), whole - sum(seconds.values()), whole)]


def profiles(folder: Path, real: Path | None, rows: int) -> str:
    """Phases of a call on Adult, where it is there, and on the largest made-up table."""
    columns = {}
    if real is not None:
        with open_table(ADULT, real) as connection:
            columns["Adult, 30,162 rows"] = profile(connection, ADULT.name, ADULT.quasi_identifiers)
    with kanon_duck.connect(str(folder / f"{rows}.db")) as connection:
        columns[f"made-up, {rows:,} rows"] = profile(connection, SIZES, synthetic.QUASI_IDENTIFIERS, SENSITIVE)
    names = [*phases.FUNCTIONS, "everything else", "whole call"]
    return report.lines(["seconds", *columns], [list(row) for row in zip(names, *columns.values(), strict=True)])


def draw_plots(figures: list[Figure], output: Path) -> None:
    """Loss against seconds on Adult, where it was measured, and seconds against rows."""

    def loss(axes: Any) -> None:
        for each in on_adult:
            axes.scatter(each.seconds, each.loss, label=each.method)
        axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="information loss per row", title="Adult, k = 5")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))  # beside the points, not over them

    def sizes(axes: Any) -> None:
        axes.plot([each.rows for each in made_up], [each.seconds for each in made_up], marker="o")
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="auto, k = 5, 10 quasi-identifiers")

    on_adult = [each for each in figures if each.data == ADULT.name and each.k == SPEED_K]
    made_up = [each for each in figures if each.data == SIZES and not each.half]
    if on_adult:
        report.plot(output / "loss_against_seconds.png", loss)
    report.plot(output / "seconds_against_rows.png", sizes)


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    before = report.busy()
    figures: list[Figure] = []
    parts: list[str] = []
    notes = report.machine()
    real = data_folder()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = sorted({options.rows // 100, options.rows // 10, options.rows // 3, options.rows})
        figures += on_many_rows(folder, sizes)
        parts.append(report.section("Starting", starting(folder / f"{sizes[0]}.db", folder)))
        parts.append(report.section("Where the time goes", profiles(folder, real, sizes[-1])))
    if real is None:
        notes.append("KANON_DUCK_DATA is not set: the quality of the methods was left out")
    else:
        made, told = on_real_tables(real)
        figures, notes = made + figures, notes + summary(made) + told
    notes.append(f"load of the machine: {before} at the beginning, {report.busy()} at the end")
    report.write_csv(figures, options.output / "creation.csv")
    draw_plots(figures, options.output)
    parts = [report.table(figures), *parts]
    print(report.write("Creating a masked view", notes, parts, options.output / "creation.md"))


if __name__ == "__main__":
    main()

"""Every method on Adult, side by side by `kanon.compare`.

    python -m tests.benchmarks.methods OUTPUT

writes ``methods.md`` and ``methods.csv`` to the folder OUTPUT: loss, error of random counts, classes, time by the wall
clock and peak memory of each method at each k, and with l-diversity of the occupations, which are then no
quasi-identifier. Every method has a process of its own, so that peaks are its own, and is tried once before it is
measured, so that its kernels are loaded. The data set is looked for in the folder that KANON_DUCK_DATA names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb

from kanon_duck.clustering import METHODS
from tests.benchmarks import report
from tests.benchmarks.tables import ADULT, QUALITY_K, SPEED_K, data_folder, open_table

SENSITIVE = "occupation"

LONGEST = 1800
"""Seconds after which a method is given up."""


@dataclass(frozen=True)
class Figure:
    """One run.

    Attributes
    ----------
    method, models : str
    loss : float or None
        Information loss per row; None, as all figures, for a run that failed.
    query_error : float or None
        Median relative error of random counts.
    classes : int or None
    seconds : float or None
    memory : str
        Peak of the process so far, in MB.
    error : str
        Why a run failed.
    """

    method: str
    models: str
    loss: float | None = None
    query_error: float | None = None
    classes: int | None = None
    seconds: float | None = None
    memory: str = ""
    error: str = ""


def run(method: str) -> list[Figure]:
    """One method at each k, and at one of them with l-diversity."""
    folder = data_folder()
    assert folder is not None
    figures = []
    with open_table(ADULT, folder) as connection:
        compared(connection, method, f"k => {SPEED_K}")
        for options in (f"k => {[*QUALITY_K, 25]}", f"k => {SPEED_K}, sensitive => '{SENSITIVE}', l => 3"):
            figures += compared(connection, method, options)
    return figures


def compared(connection: duckdb.DuckDBPyConnection, method: str, options: str) -> list[Figure]:
    """What `kanon.compare` says of a method; a sensitive attribute is no quasi-identifier."""
    columns = [name for name in ADULT.quasi_identifiers if f"'{name}'" not in options]
    runs = connection.execute(
        f"SELECT k, l, error, peak_memory_bytes, information_loss_per_row, query_error, classes, seconds FROM "
        f"kanon.compare('{ADULT.name}', key => 'id', quasi_identifiers => {columns}, methods => '{method}', {options})"
    ).fetchall()
    return [
        Figure(
            method,
            f"k = {k}" + ("" if l is None else f", l = {l}"),
            *figures,
            memory=f"{peak / 1e6:.0f}" if peak else "",
            error=error or "",
        )
        for k, l, error, peak, *figures in runs  # noqa: E741
    ]


def in_new_process(method: str) -> list[Figure]:
    """The same in a process of its own, given up when it takes too long."""
    call = (
        "import json; from dataclasses import asdict; from tests.benchmarks.methods import run; "
        f"print(json.dumps([asdict(each) for each in run({method!r})]))"
    )
    try:
        done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return [Figure(method, f"k = {SPEED_K}", error=f"not done in {LONGEST} s")]
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [Figure(**each) for each in json.loads(done.stdout.splitlines()[-1])]


def side_by_side(figures: list[Figure]) -> str:
    """Loss per row, a line for each method and a column for each combination of models."""
    models = list(dict.fromkeys(each.models for each in figures))
    found = {(each.method, each.models): each for each in figures}
    lines = []
    for method in dict.fromkeys(each.method for each in figures):
        own = [found.get((method, each), Figure(method, each)) for each in models]
        losses, errors = (
            ["" if value is None else form.format(value) for value in values]
            for form, values in (
                ("{:.3f}", [each.loss for each in own]),
                ("{:.1%}", [each.query_error for each in own]),
            )
        )
        lines.append([f"`{method}`", *losses, ", ".join(errors)])
    return report.lines(["method", *models, "error of counts"], lines)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    if data_folder() is None:
        parser.error("KANON_DUCK_DATA is not set: it names the folder of the real data sets")
    figures = []
    for method in METHODS:
        figures += in_new_process(method)
        print(side_by_side(figures), flush=True)
    output.mkdir(parents=True, exist_ok=True)
    notes = [*report.machine(), f"load of the machine in the last minute: {report.busy()}"]
    parts = [
        report.section("Information loss per row", side_by_side(figures)),
        report.section("All figures", report.table(figures)),
    ]
    report.write("Methods on Adult", notes, parts, output / "methods.md")
    report.write_csv(figures, output / "methods.csv")


if __name__ == "__main__":
    main()

"""Every method on Adult, side by side by `kanon.compare`.

    python -m tests.benchmarks.methods OUTPUT

writes ``methods.md`` and ``methods.csv`` to the folder OUTPUT: loss, error of random counts, classes, time by the wall clock
and peak memory of each method at each k, and with l-diversity of the occupations, which are then no
quasi-identifier. Every run has a process of its own, so that the peak is its own, and is made twice in it: the figures
are those of the second, whose kernels are loaded. The data set is looked for in the folder that KANON_DUCK_DATA names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from kanon_duck.clustering import METHODS
from tests.benchmarks import report
from tests.benchmarks.tables import ADULT, QUALITY_K, data_folder, open_table

SENSITIVE = "occupation"

LONGEST = 900
"""Seconds after which a run is given up."""


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
        Peak of the process, in MB.
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


def run(method: str, k: int, l: int | None) -> Figure:  # noqa: E741 - the field's name for it
    """One method at one k, with l-diversity or without."""
    folder = data_folder()
    assert folder is not None
    columns = [name for name in ADULT.quasi_identifiers if l is None or name != SENSITIVE]
    options = f"quasi_identifiers => {columns}, methods => '{method}', k => [{k}, {k}]"
    if l is not None:
        options += f", sensitive => '{SENSITIVE}', l => {l}"
    models = f"k = {k}" + ("" if l is None else f", l = {l}")
    query = (
        "SELECT information_loss_per_row, query_error, classes, seconds, peak_memory_bytes, error "
        f"FROM kanon.compare('{ADULT.name}', key => 'id', {options})"
    )
    with open_table(ADULT, folder) as connection:
        *figures, peak, error = connection.execute(query).fetchall()[1]
    if error is not None:
        return Figure(method, models, error=error)
    return Figure(method, models, *figures, memory=f"{peak / 1e6:.0f}")


def in_new_process(method: str, k: int, l: int | None) -> Figure:  # noqa: E741
    """The same in a process of its own, given up when it takes too long."""
    call = f"import json; from dataclasses import asdict; from tests.benchmarks.methods import run; print(json.dumps(asdict(run({method!r}, {k}, {l}))))"
    try:
        done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return Figure(method, f"k = {k}" + ("" if l is None else f", l = {l}"), error=f"not done in {LONGEST} s")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Figure(**json.loads(done.stdout.splitlines()[-1]))


def side_by_side(figures: list[Figure]) -> str:
    """Loss per row, a line for each method and a column for each combination of models."""
    models = list(dict.fromkeys(each.models for each in figures))
    found = {(each.method, each.models): each for each in figures}
    lines = []
    for method in dict.fromkeys(each.method for each in figures):
        own = [found[method, each] for each in models]
        seconds = ", ".join(f"{each.seconds:.2g}" if each.seconds is not None else "-" for each in own)
        errors = ", ".join(f"{each.query_error:.1%}" if each.query_error is not None else "-" for each in own)
        losses = [f"{each.loss:.3f}" if each.loss is not None else "-" for each in own]
        lines.append([f"`{method}`", *losses, errors, seconds])
    return report.lines(["method", *models, "error of counts", "seconds"], lines)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    if data_folder() is None:
        parser.error("KANON_DUCK_DATA is not set: it names the folder of the real data sets")
    figures = []
    for method in METHODS:
        for k, l in [*((k, None) for k in (*QUALITY_K, 25)), (5, 3)]:  # noqa: E741
            figures.append(in_new_process(method, k, l))
            print(asdict(figures[-1]), flush=True)
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

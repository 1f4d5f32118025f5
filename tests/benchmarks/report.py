"""The report of a benchmark: a table as Markdown and CSV, plots of it, and where it ran."""

from __future__ import annotations

import csv
import os
import platform
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import duckdb
import matplotlib
import numba
import numpy as np

import kanon_duck

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

ADULT, SIZES = "adult", "synthetic"
"""The tables that have a plot, where they were measured."""


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


def machine() -> list[str]:
    """Versions of what takes part, and the machine."""
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        models = [line.split(":")[1].strip() for line in information.read_text().splitlines() if "model name" in line]
        processor = models[0] if models else processor
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return [
        f"kanon_duck {kanon_duck.__version__}, Python {platform.python_version()}, DuckDB {duckdb.__version__}, "
        f"numba {numba.__version__}, NumPy {np.__version__}",
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB of memory, {platform.system()} {platform.release()}",
    ]


def busy() -> str:
    """Load of the machine in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def lines(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [headings, ["---"] * len(headings), *rows])


def _cells(figure: Figure) -> list[str]:
    shown: dict[str, Any] = vars(figure) | {
        "rows": f"{figure.rows:,}",
        "loss": f"{figure.loss:.4f}",
        "seconds": f"{figure.seconds:.2f}",
        "ratio": "" if figure.ratio is None else f"{figure.ratio:.3f}",
    }
    return [str(value) for value in shown.values()]


def write(figures: list[Figure], sections: list[tuple[str, str]], notes: list[str], output: Path) -> str:
    """Write ``creation.md``, ``creation.csv`` and the plots; returns the Markdown.

    Parameters
    ----------
    figures : list of Figure
    sections : list of (heading, Markdown)
        Further parts of the report.
    notes : list of str
        What stands above it.
    output : Path
        An existing folder.
    """
    headings = [field.name for field in fields(Figure)]
    with (output / "creation.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows(vars(figure).values() for figure in figures)
    parts = [
        "# Creating a masked view",
        "\n".join(f"- {note}" for note in notes),
        lines(["loss per row" if name == "loss" else name for name in headings], [_cells(each) for each in figures]),
        *(f"## {heading}\n\n{text}" for heading, text in sections),
    ]
    text = "\n\n".join(parts) + "\n"
    (output / "creation.md").write_text(text, encoding="utf-8")
    on_adult = [each for each in figures if each.data == ADULT and each.k == 5]
    if on_adult:
        _plot_loss(on_adult, output / "loss_against_seconds.png")
    _plot_sizes([each for each in figures if each.data == SIZES and not each.half], output / "seconds_against_rows.png")
    return text


def _plot_loss(figures: list[Figure], file: Path) -> None:
    plot, axes = pyplot.subplots(layout="constrained")
    for each in figures:
        axes.scatter(each.seconds, each.loss, label=each.method)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="information loss per row", title="Adult, k = 5")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))  # beside the points, not over them
    plot.savefig(file)


def _plot_sizes(figures: list[Figure], file: Path) -> None:
    plot, axes = pyplot.subplots(layout="constrained")
    axes.plot([each.rows for each in figures], [each.seconds for each in figures], marker="o")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="auto, k = 5, 10 quasi-identifiers")
    plot.savefig(file)

"""The report of a benchmark: tables as Markdown and CSV, plots, and where it ran."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numba
import numpy as np

import kanon_duck

FORMATS = {"rows": ",", "loss": ".4f", "seconds": ".3g", "ratio": ".3f", "value": ".4g"}
"""How numbers are shown, by the last word of their name."""

PLOTS = find_spec("matplotlib") is not None


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
        *([] if PLOTS else ["matplotlib is not installed: the plots were left out"]),
    ]


def busy() -> str:
    """Load of the machine in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def lines(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [headings, ["---"] * len(headings), *rows])


def _cell(name: str, value: Any) -> str:
    return "" if value is None else format(value, FORMATS.get(name.split("_")[-1], ""))


def table(figures: Sequence[Any]) -> str:
    """Dataclasses of one kind as a table in Markdown, a line for each."""
    names = [field.name for field in fields(figures[0])]
    headings = ["loss per row" if name == "loss" else name.replace("_", " ") for name in names]
    return lines(headings, [[_cell(name, getattr(each, name)) for name in names] for each in figures])


def write_csv(figures: Sequence[Any], file: Path) -> None:
    """Write dataclasses of one kind, a line for each."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(field.name for field in fields(figures[0]))
        writer.writerows(vars(each).values() for each in figures)


def write(title: str, notes: list[str], parts: list[str], file: Path) -> str:
    """Write the report as Markdown, and return it.

    Parameters
    ----------
    title : str
    notes : list of str
        What stands at its beginning.
    parts : list of str
        Its tables and `section`s.
    file : Path
        In an existing folder.
    """
    text = "\n\n".join([f"# {title}", "\n".join(f"- {note}" for note in notes), *parts]) + "\n"
    file.write_text(text, encoding="utf-8")
    return text


def section(heading: str, text: str) -> str:
    """A part of a report under a heading."""
    return f"## {heading}\n\n{text}"


def plot(file: Path, draw: Callable[[Any], None], rows: int = 1, columns: int = 1) -> None:
    """Write a plot, where matplotlib is installed.

    Parameters
    ----------
    file : Path
        In an existing folder.
    draw : function
        Draws into the axes, of which there are several if there are several rows or columns of them.
    """
    if not PLOTS:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4 * columns, 4.8 * rows), layout="constrained")
    draw(figure.subplots(rows, columns))
    figure.savefig(file)

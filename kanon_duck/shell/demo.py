"""The demonstration: runs scripts of the folder ``examples``, which can also be read and run by themselves."""

from __future__ import annotations

from pathlib import Path

import duckdb
from rich.console import Console

from kanon_duck.shell.script import run_script

EXAMPLES_FOLDER = Path(__file__).parents[1] / "examples"
if not EXAMPLES_FOLDER.is_dir():  # a source checkout: the wheel carries the folder inside the package
    EXAMPLES_FOLDER = Path(__file__).parents[2] / "examples"


def run_demo(connection: duckdb.DuckDBPyConnection, console: Console) -> None:
    """Make a clinic's table ``patients``, mask it as ``patients_masked`` and show each step.

    Raises
    ------
    duckdb.Error
        When the database already has tables of these names, among others.
    """
    run_script(connection, _example("patients.sql"), console)
    run_script(connection, _example("clinic.sql"), console, echo=True)


def _example(name: str) -> str:
    return (EXAMPLES_FOLDER / name).read_text(encoding="utf-8")

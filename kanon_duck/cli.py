"""The kanon-duck command: it runs SQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import duckdb
import typer
from rich.console import Console

import kanon_duck
from kanon_duck.demo import demo_script
from kanon_duck.errors import KanonError
from kanon_duck.script import error_message, print_error, run_script
from kanon_duck.shell import run_shell

app = typer.Typer(
    help="k-anonymous views of DuckDB tables.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

Database = Annotated[str, typer.Argument(metavar="DB", help="A database file, or :memory:.")]


@app.command()
def sql(
    database: Database,
    command: Annotated[str | None, typer.Option("-c", metavar="SQL", help="Run these statements.")] = None,
    file: Annotated[
        Path | None, typer.Option("-f", metavar="FILE", exists=True, dir_okay=False, help="Run this script.")
    ] = None,
) -> None:
    """Run SQL on a database; without -c and -f, in an interactive shell."""
    if command is not None and file is not None:
        raise typer.BadParameter("-c and -f exclude each other: give one of them.")
    with _open(database) as connection:
        if command is not None:
            _run(connection, command)
        elif file is not None:
            _run(connection, _text(file))
        elif sys.stdin.isatty():
            run_shell(connection, console, errors)
        else:
            _run(connection, sys.stdin.read())


@app.command()
def demo(database: Database = ":memory:") -> None:
    """Mask a clinic's table of 10,000 made-up patients, and show what readers and the owner see."""
    with _open(database) as connection:
        _run(connection, demo_script(), echo=True)


def _open(database: str) -> duckdb.DuckDBPyConnection:
    try:
        return kanon_duck.connect(database)
    except (duckdb.Error, KanonError) as error:
        if "Conflicting lock" in str(error):
            _fail(f"{database} is open in another process: close it there, or open a copy of the file.")
        _fail(error_message(error))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        _fail(f"{file} is not UTF-8 text (byte {error.start}): save it as UTF-8.")


def _run(connection: duckdb.DuckDBPyConnection, text: str, echo: bool = False) -> None:
    try:
        run_script(connection, text, console, echo=echo)
    except duckdb.Error as error:
        _fail(error_message(error))
    except KeyboardInterrupt as stopped:
        _fail(str(stopped) or "Stopped.", code=130)


def _fail(message: str, code: int = 1) -> NoReturn:
    print_error(errors, message)
    raise typer.Exit(code)

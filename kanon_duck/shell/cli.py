"""The kanon-duck command and its options."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console

import kanon_duck
from kanon_duck.errors import KanonError
from kanon_duck.shell.demo import run_demo
from kanon_duck.shell.prompt import run_shell
from kanon_duck.shell.script import error_message, print_error, print_stopped, run_script

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
    with _failures_in_one_message(), _open(database) as connection:
        if command is not None:
            run_script(connection, command, console)
        elif file is not None:
            run_script(connection, _text(file), console)
        elif sys.stdin.isatty():
            run_shell(connection, console, errors)
        else:
            run_script(connection, sys.stdin.read(), console)


@app.command()
def demo(database: Database = ":memory:") -> None:
    """Mask a clinic's table of 10,000 made-up patients, and show what readers and the owner see."""
    with _failures_in_one_message(), _open(database) as connection:
        run_demo(connection, console)


@contextmanager
def _failures_in_one_message() -> Iterator[None]:
    """On failure, end the command with one message on standard error and an exit code."""
    try:
        yield
    except (duckdb.Error, KanonError) as error:
        print_error(errors, error_message(error))
        raise typer.Exit(1) from error
    except KeyboardInterrupt as interrupt:
        print_stopped(errors, interrupt)
        raise typer.Exit(130) from interrupt


def _open(database: str) -> duckdb.DuckDBPyConnection:
    try:
        return kanon_duck.connect(database)
    except duckdb.IOException as error:
        if "Conflicting lock" not in str(error):
            raise
        raise KanonError(
            f"{database} is open in another process: close it there, or open a copy of the file."
        ) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise KanonError(f"{file} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error

"""The kanon-duck command: its subcommands, their options and their exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console

from kanon_duck.errors import KanonError
from kanon_duck.shell.demo import run_demo
from kanon_duck.shell.findings import Output, columns, entries, print_findings
from kanon_duck.shell.of_views import (
    Finding,
    channels_of_views,
    check_views,
    publish_views,
    refresh_views,
    status_of_views,
)
from kanon_duck.shell.opening import open_database, open_existing
from kanon_duck.shell.prompt import run_shell
from kanon_duck.shell.script import error_message, print_error, print_stopped, run_script

NOT_WELL, ERROR, INTERRUPTED = 1, 2, 130
"""How a command ends that has found something that is not well, that could not do its work, that was stopped."""

EXIT_CODES = (
    "Exit codes: 0 all is well; 1 a requirement is not met, or a masked view is held or broken, or was not "
    "refreshed or published; "
    "2 wrong usage or an error; 130 stopped by Ctrl-C."
)

app = typer.Typer(
    help="k-anonymous views of DuckDB tables.",
    epilog=EXIT_CODES,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

Database = Annotated[str, typer.Argument(metavar="DB", help="A database file, or :memory:.", show_default=False)]
DatabaseFile = Annotated[str, typer.Argument(metavar="DB", help="A database file.", show_default=False)]
Views = Annotated[
    list[str] | None, typer.Argument(metavar="VIEW", help="Masked views; all if none is named.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per masked view, each on a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only what is not well.")]
Wait = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.0, help="How long to wait if another process has the database open."),
]


@app.command(epilog="Example: kanon-duck sql clinic.duckdb -c 'FROM kanon.masked_views'")
def sql(
    database: Database,
    commands: Annotated[
        list[str] | None,
        typer.Option("-c", metavar="SQL", help="Run these statements; several -c run in order.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-f", metavar="FILE", exists=True, dir_okay=False, help="Run this script.")
    ] = None,
    wait: Wait = 0.0,
) -> None:
    """Run SQL on a database; without -c and -f, in an interactive shell."""
    if commands and file is not None:
        raise typer.BadParameter("-c and -f exclude each other: give one of them.")
    with _failures_in_one_message(), open_database(database, wait) as connection:
        if commands:
            outcomes = [run_script(connection, text, console) for text in commands]  # each runs, whatever came before
            well = all(outcomes)
        elif file is not None:
            well = run_script(connection, _text(file), console)
        elif sys.stdin.isatty():
            run_shell(connection, console, errors)
            return
        else:
            well = run_script(connection, sys.stdin.read(), console)
    _end(well)


@app.command(epilog="Example: kanon-duck refresh clinic.duckdb --quiet --wait 600")
def refresh(
    database: DatabaseFile, views: Views = None, as_json: Json = False, quiet: Quiet = False, wait: Wait = 0.0
) -> None:
    """Bring masked views up to date with their sources; without VIEW all, each after those that its source reads."""
    shown = columns("view_name", "cause", "release", "rows", "waiting", "inserted", "updated", "deleted", "seconds")
    _print_of_views(refresh_views, database, views, shown, as_json, quiet, wait, read_only=False)


@app.command(epilog="Example: kanon-duck publish clinic.duckdb patients_masked --to bi/masked.duckdb")
def publish(
    database: DatabaseFile,
    views: Views = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="TARGET", help="A file, a folder, or what else kanon.publish takes.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    wait: Wait = 0.0,
) -> None:
    """Publish masked views into a target; without --to, publish again whatever has changed since."""
    if views and target is None:
        raise typer.BadParameter("VIEW needs --to TARGET; without both, whatever has changed is published again.")
    find = partial(publish_views, target=target)
    _print_of_views(find, database, views, entries("targets"), as_json, quiet, wait, read_only=False)


@app.command(epilog="Example: kanon-duck check clinic.duckdb patients_masked --json")
def check(
    database: DatabaseFile, views: Views = None, as_json: Json = False, quiet: Quiet = False, wait: Wait = 0.0
) -> None:
    """Recompute what masked views promise from what readers see of them."""
    _print_of_views(check_views, database, views, entries("requirements"), as_json, quiet, wait)


@app.command(epilog="Example: kanon-duck channels clinic.duckdb")
def channels(
    database: DatabaseFile, views: Views = None, as_json: Json = False, quiet: Quiet = False, wait: Wait = 0.0
) -> None:
    """List what the releases of masked views tell together and none tells alone."""
    _print_of_views(channels_of_views, database, views, entries("channels"), as_json, quiet, wait)


@app.command(epilog="Example: kanon-duck status clinic.duckdb --json")
def status(
    database: DatabaseFile, views: Views = None, as_json: Json = False, quiet: Quiet = False, wait: Wait = 0.0
) -> None:
    """Say how masked views are, as of the last time that somebody looked; nothing is computed."""
    shown = columns("view_name", "status", "release", "released_at", "rows", "waiting", "checked_at")
    _print_of_views(status_of_views, database, views, shown, as_json, quiet, wait)


@app.command("warm-up", epilog="Example: NUMBA_CACHE_DIR=/opt/kernels kanon-duck warm-up")
def compile_ahead(quiet: Quiet = False) -> None:
    """Compile ahead what masked views use, so that no later call has to: a minute or two, once per machine."""
    from kanon_duck.kernels.cache import kept_for_others, kept_in  # not before: it loads the compiler
    from kanon_duck.shell.warm_up import warm_up

    with _failures_in_one_message():
        if not kept_for_others():
            raise KanonError(
                "no folder for compiled code can be written: let NUMBA_CACHE_DIR name one that this user can write"
            )
        for warmed in warm_up():
            if not quiet:
                console.print(f"{warmed.name}: {warmed.compiled} compiled in {warmed.seconds:.0f} s")
        if not quiet:
            console.print(f"The compiled code is in {kept_in()}.", soft_wrap=True)


@app.command(epilog="Example: kanon-duck demo clinic.duckdb")
def demo(database: Database = ":memory:") -> None:
    """Mask a clinic's table of 10,000 made-up patients, and show what readers and the owner see."""
    with _failures_in_one_message(), open_database(database, wait=0.0) as connection:
        run_demo(connection, console)


def _print_of_views(
    find: Callable[[duckdb.DuckDBPyConnection, Sequence[str]], Iterator[Finding]],
    database: str,
    views: list[str] | None,
    shown: Callable[[Finding], list[Finding]],
    as_json: bool,
    quiet: bool,
    wait: float,
    read_only: bool = True,
) -> None:
    """Print what a command finds of masked views, and end it with the exit code that says whether all is well."""
    output = Output(console, errors, as_json, quiet)
    with _failures_in_one_message(), open_existing(database, wait, read_only) as connection:
        well = print_findings(output, find(connection, views or []), shown)
    _end(well)


def _end(well: bool) -> None:
    if not well:
        raise typer.Exit(NOT_WELL)


@contextmanager
def _failures_in_one_message() -> Iterator[None]:
    """On failure, end the command with one message on standard error and an exit code."""
    try:
        yield
    except (duckdb.Error, KanonError) as error:
        print_error(errors, error_message(error))
        raise typer.Exit(ERROR) from error
    except KeyboardInterrupt as interrupt:
        print_stopped(errors, interrupt)
        raise typer.Exit(INTERRUPTED) from interrupt


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise KanonError(f"{file} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error

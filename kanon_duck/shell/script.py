"""Runs a user's statements one after the other; Ctrl-C can stop each of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

import duckdb
from rich.console import Console
from rich.syntax import Syntax

from kanon_duck.runtime import shortfalls
from kanon_duck.shell import misspelled
from kanon_duck.shell.rendering import TABLE_ROWS, Result, print_result

SLOW = 1.0
"""A statement that takes at least this many seconds has its time printed, on a terminal."""

FETCHED_ROWS = 10_000

SECONDS_TO_UNDO = 0.5
"""How long a call of a procedure has, after Ctrl-C, to notice it and to undo its work. A call whose statement is gone
undoes it later, and as long the connection cannot be closed."""

T = TypeVar("T")


class Stopped(KeyboardInterrupt):
    """Ctrl-C, raised after the statement has ended; the message says what became of the statement."""


def run_script(connection: duckdb.DuckDBPyConnection, text: str, console: Console, echo: bool = False) -> bool:
    """Run every statement of a text and print what each returns.

    A text that DuckDB cannot parse is refused before its first statement runs. Any other error ends the script at
    its statement; the effects of earlier statements stay.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Not in use by anybody else.
    text : str
        SQL statements, separated by semicolons.
    console : Console
        Where results are printed.
    echo : bool
        Print each statement, with the comments before it, before it runs.

    Returns
    -------
    bool
        Whether all is well: False if a call could not refresh a masked view or publish into a target, whether or not
        the statement shows the row that says so.

    Raises
    ------
    duckdb.Error
        From the first statement that fails.
    Stopped
        When Ctrl-C was pressed. The connection can still be used.
    """
    well = True
    for statement in connection.extract_statements(text):
        if echo:
            highlighted = Syntax("", "sql", theme="ansi_dark").highlight(statement.query.strip())
            console.print(highlighted, soft_wrap=True)
        started = time.monotonic()
        try:
            with shortfalls.listen() as heard:
                result = run_in_thread(connection, partial(_fetch, connection, statement))
        except duckdb.BinderException as error:
            raise duckdb.BinderException(misspelled.told(statement.query, str(error)) or str(error)) from error
        seconds = time.monotonic() - started
        well = well and not heard
        _print_outcome(console, statement, result)
        if console.is_terminal and seconds >= SLOW:
            console.print(f"{seconds:.1f} s", style="dim")
    return well


def error_message(error: BaseException) -> str:
    """The message for a user: DuckDB's own, or the one sentence of a kanon_duck procedure."""
    return str(error).strip().removeprefix("Invalid Input Error: ")


def print_error(console: Console, message: str) -> None:
    """Print a message in red without wrapping its lines, because DuckDB points into the statement with a caret."""
    console.print(message, style="red", markup=False, soft_wrap=True)


def print_stopped(console: Console, interrupt: KeyboardInterrupt) -> None:
    """Say what Ctrl-C did; on a terminal, on the line below the ^C."""
    if console.is_terminal:
        console.print()
    print_error(console, str(interrupt) or "Stopped.")


def _print_outcome(console: Console, statement: duckdb.Statement, result: Result) -> None:
    """Print the rows of a query, or how many rows a statement changed; nothing for other statements."""
    changes = duckdb.ExpectedResultType.CHANGED_ROWS in statement.expected_result_type
    if changes and result.columns == ["Count"]:
        for (rows,) in result.rows:
            console.print("1 row" if rows == 1 else f"{rows:,} rows", style="dim")
    elif result.total or result.columns != ["Success"]:
        print_result(console, result)


def run_in_thread(connection: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """Let a statement of the connection run in a thread of its own, so that the main thread can notice Ctrl-C.

    Raises
    ------
    Stopped
        When Ctrl-C was pressed.
    """
    with ThreadPoolExecutor(max_workers=1) as executor:
        running = executor.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            wait([running], timeout=SECONDS_TO_UNDO)
            while not running.done():
                connection.interrupt()  # again and again: one that comes before the statement begins is lost
                wait([running], timeout=0.05)
            if running.exception() is None:
                raise Stopped("Stopped; this statement had already finished.") from None
            raise Stopped("Stopped.") from None


def _fetch(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> Result:
    """What a statement returned."""
    cursor = connection.execute(statement)
    columns = [str(column[0]) for column in cursor.description or []]
    types = [str(column[1]) for column in cursor.description or []]
    rows = cursor.fetchmany(TABLE_ROWS)
    total, read = 0, rows
    while read:
        total += len(read)
        read = cursor.fetchmany(FETCHED_ROWS)
    return Result(columns, types, rows, total)

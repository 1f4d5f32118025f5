"""Opens the database of a command, and says who may hold it if another process has it open."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path

import duckdb

import kanon_duck
from kanon_duck.errors import KanonError

SECONDS_BETWEEN_TRIES = 0.2

_HOLDER = re.compile(r"Conflicting lock is held in (?P<program>.+) \(PID (?P<pid>\d+)\)")


def open_database(database: str, wait: float) -> duckdb.DuckDBPyConnection:
    """Open a database for writing; it is made if it does not exist.

    Parameters
    ----------
    database : str
        A file, or ``:memory:``.
    wait : float
        For how many seconds to wait if another process has it open.

    Raises
    ------
    KanonError
        When another process has it open all the time, and as `kanon_duck.connect`.
    duckdb.Error
        When the file cannot be opened.
    """
    return _open(database, wait, read_only=False)


def open_existing(database: str, wait: float, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open a database that exists already, as `open_database` does; read-only, several processes can at once.

    Raises
    ------
    KanonError
        When there is no such file, among others.
    """
    if database == ":memory:":
        raise KanonError(":memory: has no masked views, because it begins empty: name a database file")
    if not Path(database).is_file():
        raise KanonError(f"there is no database {database}: kanon-duck sql {shlex.quote(database)} makes one")
    return _open(database, wait, read_only)


def _open(database: str, wait: float, read_only: bool) -> duckdb.DuckDBPyConnection:
    until = time.monotonic() + wait
    while True:
        try:
            return kanon_duck.connect(database, read_only=read_only)
        except duckdb.IOException as error:
            if "Conflicting lock" not in str(error):
                raise
            left = until - time.monotonic()
            if left <= 0:
                raise KanonError(_held(database, str(error), wait)) from error
        time.sleep(min(SECONDS_BETWEEN_TRIES, left))


def _held(database: str, message: str, wait: float) -> str:
    """What to do about a database that another process holds."""
    found = _HOLDER.search(message)
    holder = f"another process ({found['program']}, PID {found['pid']})" if found else "another process"
    if wait > 0:
        return f"{database} was open in {holder} for all of {wait:g} s: close it there, or wait longer."
    return f"{database} is open in {holder}: close it there, open a copy of the file, or wait with --wait SECONDS."

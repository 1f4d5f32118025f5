"""kanon_duck: masked views of personal data inside DuckDB, kept anonymous while the data changes."""

from __future__ import annotations

from typing import Any

import duckdb

from kanon_duck.errors import KanonError
from kanon_duck.installation import install

__version__ = "0.1.0"
__all__ = ["KanonError", "connect", "install"]


def connect(database: str = ":memory:", **options: Any) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB database with kanon_duck installed.

    Parameters
    ----------
    database : str, default ":memory:"
        Path of the database file.
    **options
        Passed on to `duckdb.connect` (``read_only``, ``config``).

    Returns
    -------
    duckdb.DuckDBPyConnection
        An ordinary connection.

    Raises
    ------
    KanonError
        As `install`.
    duckdb.Error
        When the file cannot be opened.
    """
    connection = duckdb.connect(database, **options)
    try:
        return install(connection)
    except BaseException:
        connection.close()
        raise

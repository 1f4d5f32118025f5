"""k-anonymous views inside DuckDB: a table about people is masked, and kept up to date, in SQL.

kanon_duck groups similar rows of a table into classes of at least k, shows each class as one common row, and makes an
ordinary view of that, which any DuckDB client can read. A refresh brings the view up to date when the table changes.

>>> import kanon_duck
>>> connection = kanon_duck.connect()  # or the path of a database file
>>> table = connection.execute('''CREATE TABLE people AS FROM (VALUES
...     (1, 31, 'Flu'), (2, 34, 'Cold'), (3, 52, 'Flu'), (4, 58, 'Gout')) AS t(id, age, disease)''')
>>> release = connection.execute('''CALL kanon.create_masked_view('people_masked', source => 'people', key => 'id',
...     quasi_identifiers => {'age': 'numeric'}, sensitive => ['disease'], k => 2, l => 2)''')
>>> connection.execute("FROM people_masked ORDER BY age_min, disease").fetchall()
[('[31, 34]', 31, 34, 'Cold'), ('[31, 34]', 31, 34, 'Flu'), ('[52, 58]', 52, 58, 'Flu'), ('[52, 58]', 52, 58, 'Gout')]

`connect` opens a database, and `install` adds kanon_duck to a connection that is open already. Everything else is SQL:
``FROM kanon.masked_views`` lists what there is, and ``kanon-duck demo`` in a terminal shows it at work.
"""

from __future__ import annotations

import os
from typing import Any

import duckdb

from kanon_duck.errors import KanonError
from kanon_duck.installation import install

__version__ = "0.1.0"
__all__ = ["KanonError", "connect", "install"]


def connect(database: str | os.PathLike[str] = ":memory:", **options: Any) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB database with kanon_duck installed.

    Parameters
    ----------
    database : str or path, default ":memory:"
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
    connection = duckdb.connect(os.fspath(database), **options)
    try:
        return install(connection)
    except BaseException:
        connection.close()
        raise

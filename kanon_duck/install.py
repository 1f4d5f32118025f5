"""Puts kanon_duck into a DuckDB database: the catalog's tables, the SQL interface, the procedures."""

from __future__ import annotations

import duckdb
from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.procedures import PROCEDURES
from kanon_duck.runner import serve
from kanon_duck.sql import Database, script

CATALOG_VERSION = 1
"""Raised whenever the persistent tables change, together with a script that upgrades the version before."""

SCRIPTS = ("catalog.sql", "hierarchies.sql", "readers.sql", "views.sql", "procedures.sql")


def install(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Install kanon_duck in the current database of a connection.

    The tables and macros of the folder ``sql`` are created where they are missing, in one transaction, and
    the procedures become callable on every connection to this database in this process. Safe to repeat.
    A database opened read-only that already has kanon_duck can be installed on too.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Any open connection, not inside a transaction. Keep it open as long as procedures are called.

    Returns
    -------
    duckdb.DuckDBPyConnection
        The same connection.

    Raises
    ------
    KanonError
        When the database was written by a newer kanon_duck, is read-only and has no kanon_duck yet, or
        has a schema of ours that kanon_duck did not make.
    """
    [(catalog,)] = connection.execute("SELECT current_database()").fetchall()
    serve(connection, PROCEDURES)  # first: DuckDB looks the function up when a macro is created
    database = Database(connection.cursor())
    try:
        _install_catalog(database, catalog)
    finally:
        database.close()
    return connection


def _install_catalog(database: Database, catalog: str) -> None:
    """Create or refresh the persistent part, whole or not at all."""
    database.execute(exp.Use(this=exp.to_identifier(catalog, quoted=True)))
    version = _installed_version(database, catalog)
    read_only = database.value("SELECT readonly FROM duckdb_databases() WHERE database_name = ?", [catalog])
    if version is not None and version > CATALOG_VERSION:
        raise KanonError(
            f"database {catalog} was written by a newer kanon_duck (catalog version {version}, this one "
            f"knows {CATALOG_VERSION}): upgrade the package kanon_duck"
        )
    if read_only:
        if version is None:
            raise KanonError(
                f"database {catalog} is read-only and has no kanon_duck: open it for writing once to install"
            )
        return
    database.execute("BEGIN TRANSACTION")
    for name in SCRIPTS:
        database.execute(script(name))
    database.execute("DELETE FROM kanon_private.catalog")
    database.execute("INSERT INTO kanon_private.catalog VALUES (?)", [CATALOG_VERSION])
    database.execute("COMMIT")


def _installed_version(database: Database, catalog: str) -> int | None:
    """The catalog version in the database, None where kanon_duck was never installed."""
    ours = ("kanon", "kanon_private", "kanon_released")
    schemas = database.rows(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = ? AND schema_name IN (?, ?, ?)",
        [catalog, *ours],
    )
    if not schemas:
        return None
    marked = database.value(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'kanon_private' "
        "AND table_name = 'catalog'",
        [catalog],
    )
    if not marked:
        raise KanonError(
            f"database {catalog} already has a schema {schemas[0][0]} that kanon_duck did not make: "
            "rename it, or install into another database"
        )
    version: int | None = database.value("SELECT version FROM kanon_private.catalog")
    return version

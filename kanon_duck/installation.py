"""Installs kanon_duck in a DuckDB database: the catalog's tables, the SQL interface, the procedures."""

from __future__ import annotations

import hashlib

import duckdb
from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.procedures import procedure
from kanon_duck.runtime.call import OURS
from kanon_duck.runtime.database import Database, script
from kanon_duck.runtime.runner import serve

CATALOG_VERSION = 4
"""Raised whenever the persistent tables change."""

SCRIPTS = ("catalog.sql", "hierarchies.sql", "readers.sql", "views.sql", "procedures.sql")


def install(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Install kanon_duck in the current database of a connection.

    The tables and macros of the folder ``sql`` are created where they are missing, in one transaction, and
    the procedures become callable on every connection to this database in this process. Safe to repeat.
    A database opened read-only that already has this kanon_duck can be installed on too.

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
    serve(connection, procedure)  # first: DuckDB looks the function up when a macro is created
    database = Database(connection.cursor())
    try:
        _install_catalog(database, catalog)
    finally:
        database.close()
    return connection


def _install_catalog(database: Database, catalog: str) -> None:
    """Create or refresh the persistent part, whole or not at all; nothing is written where it is up to date."""
    database.execute(exp.Use(this=exp.to_identifier(catalog, quoted=True)))
    version, installed = _installed(database, catalog)
    if version is not None and version > CATALOG_VERSION:
        raise KanonError(
            f"database {catalog} was written by a newer kanon_duck (catalog version {version}, this one "
            f"knows {CATALOG_VERSION}): upgrade the package kanon_duck"
        )
    if version is not None and version < CATALOG_VERSION:
        raise KanonError(
            f"database {catalog} was written by an earlier kanon_duck (catalog version {version}), which kept too "
            "little to bring its masked views up to date: drop these and the schemas kanon, kanon_private and "
            "kanon_released, and make the masked views again"
        )
    scripts = [script(name) for name in SCRIPTS]
    digest = hashlib.sha256("\0".join(scripts).encode()).hexdigest()
    if installed == digest:
        return
    if database.value("SELECT readonly FROM duckdb_databases() WHERE database_name = ?", [catalog]):
        what = "no kanon_duck" if version is None else "the SQL of another kanon_duck"
        raise KanonError(f"database {catalog} is read-only and has {what}: open it for writing once to install")
    database.execute("BEGIN TRANSACTION")
    for text in scripts:
        database.execute(text)
    database.execute("DELETE FROM kanon_private.catalog")
    database.execute("INSERT INTO kanon_private.catalog VALUES (?, ?)", [CATALOG_VERSION, digest])
    database.execute("COMMIT")


def _installed(database: Database, catalog: str) -> tuple[int | None, str | None]:
    """Catalog version and digest of the scripts in the database, None where kanon_duck was never installed."""
    schemas = database.rows(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = ? "
        "AND schema_name IN (SELECT unnest(?)) ORDER BY schema_name",
        [catalog, list(OURS)],
    )
    if not schemas:
        return None, None
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
    row = database.row("SELECT version, scripts FROM kanon_private.catalog")
    return (None, None) if row is None else (row[0], row[1])

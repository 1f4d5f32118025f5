"""Installs kanon_duck in a DuckDB database: the catalog's tables, the SQL interface, the procedures."""

from __future__ import annotations

import hashlib
import logging
import threading

import duckdb
from sqlglot import exp

from kanon_duck.catalog.migrations import run_steps, steps_between
from kanon_duck.errors import KanonError
from kanon_duck.procedures import procedure
from kanon_duck.runtime.call import OURS
from kanon_duck.runtime.database import Database, script
from kanon_duck.runtime.runner import serve

CATALOG_VERSION = 5
"""Raised whenever the persistent tables change, together with a step in ``sql/migrations``."""

SCRIPTS = ("catalog.sql", "hierarchies.sql", "readers.sql", "views.sql", "procedures.sql")

_logger = logging.getLogger(__name__)
_turn = threading.Lock()
"""Held while a thread installs: several that connect to one database at once do not collide."""


def install(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Install kanon_duck in the current database of a connection.

    The tables and macros of the folder ``sql`` are created where they are missing, in one transaction, and
    the procedures become callable on every connection to this database in this process. Safe to repeat.
    A database opened read-only that already has this kanon_duck can be installed on too.

    A database of an earlier catalog version is upgraded, in the same transaction. That is logged as a warning,
    because an earlier kanon_duck refuses the database from then on.

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
        When the database was written by a newer kanon_duck, is read-only and has an earlier kanon_duck or none,
        or has a schema of ours that kanon_duck did not make; and when an upgrade fails.
    """
    with _turn:
        [(catalog,)] = connection.execute("SELECT current_database()").fetchall()
        serve(connection, procedure)  # first: DuckDB looks the function up when a macro is created
        database = Database(connection.cursor())
        try:
            _install_catalog(database, catalog)
        finally:
            database.close()  # rolls back whatever was not committed
    return connection


def _install_catalog(database: Database, catalog: str) -> None:
    """Create, upgrade or refresh the persistent part; nothing is written where it is up to date.

    Guarantee: it happens whole or not at all. The version is read, the steps of an upgrade and all scripts are run,
    and the new version is written in one transaction.
    """
    use = exp.Use(this=exp.to_identifier(catalog, quoted=True))
    database.execute(use)
    database.execute("BEGIN TRANSACTION")
    version, installed = _installed(database, catalog)
    if version is not None and version > CATALOG_VERSION:
        raise KanonError(
            f"database {catalog} was written by a newer kanon_duck (catalog version {version}, this one "
            f"knows {CATALOG_VERSION}): upgrade the package kanon_duck"
        )
    steps = steps_between(catalog, CATALOG_VERSION if version is None else version, CATALOG_VERSION)
    scripts = [script(name) for name in SCRIPTS]
    digest = hashlib.sha256("\0".join(scripts).encode()).hexdigest()
    if installed == digest and not steps:
        return
    if database.value("SELECT readonly FROM duckdb_databases() WHERE database_name = ?", [catalog]):
        raise KanonError(_read_only(catalog, version))
    if steps:
        run_steps(database, catalog, steps)
        database.execute(use)
    for text in scripts:
        database.execute(text)
    database.execute("DELETE FROM kanon_private.catalog")
    database.execute("INSERT INTO kanon_private.catalog VALUES (?, ?)", [CATALOG_VERSION, digest])
    database.execute("COMMIT")
    if steps:
        _logger.warning(
            "kanon_duck has upgraded database %s from catalog version %s to %s (%s). Its masked views and releases "
            "are as before; an earlier kanon_duck can no longer open it.",
            catalog,
            version,
            CATALOG_VERSION,
            "; ".join(step.changes for step in steps),
        )


def _read_only(catalog: str, version: int | None) -> str:
    """What to do about a read-only database that is not up to date."""
    if version is None:
        return f"database {catalog} is read-only and has no kanon_duck: open it for writing once to install"
    if version < CATALOG_VERSION:
        return (
            f"database {catalog} is read-only and was written by an earlier kanon_duck (catalog version {version}, "
            f"this one needs {CATALOG_VERSION}): open it for writing once to upgrade it, or read its masked views with "
            "duckdb.connect"
        )
    return f"database {catalog} is read-only and has the SQL of another kanon_duck: open it for writing once to install"


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
    if not marked and _has_our_macros(database, catalog):
        raise KanonError(
            f"database {catalog} has kanon_duck's schema {schemas[0][0]}, but somebody has dropped kanon_private or "
            "what is in it, and with it all that was known of masked views: bring back a copy of the file, or drop the "
            f"schemas {', '.join(name for (name,) in schemas)} as well and make the masked views again"
        )
    if not marked:
        raise KanonError(
            f"database {catalog} already has a schema {schemas[0][0]} that kanon_duck did not make: "
            "rename it, or install into another database"
        )
    row = database.row("SELECT version, scripts FROM kanon_private.catalog")
    if row is None:
        return None, None
    return row[0], row[1] if len(schemas) == len(OURS) else None  # what somebody has dropped is made again


def _has_our_macros(database: Database, catalog: str) -> bool:
    """Whether the interface is that of kanon_duck."""
    return bool(
        database.value(
            "SELECT count(*) FROM duckdb_functions() WHERE database_name = ? AND schema_name = 'kanon' "
            "AND function_name = 'create_masked_view'",
            [catalog],
        )
    )

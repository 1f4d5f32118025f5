"""Publishes into tables of an attached catalog: another DuckDB database, a DuckLake, or what else DuckDB can write."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import MARK, Content
from kanon_duck.publishing.tables import fingerprint, refuse_other_rows, write_table
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import StatementError

HAVE_COMMENTS = ("duckdb", "ducklake")
"""Types of catalogs whose tables have comments."""

Place = tuple[str, ...]
"""Catalog and schema, and the name of one table or none."""


def attached_place(call: Call, text: str) -> Place | None:
    """The place in an attached catalog that a target names; None where its first part is no attached database.

    Raises
    ------
    KanonError
        When it is the owner's own database, or has too many parts.
    """
    parts = names.parse(text)
    attached = dict(
        call.database.rows("SELECT lower(database_name), database_name FROM duckdb_databases() WHERE NOT internal")
    )
    catalog = attached.get(parts[0].lower())
    if catalog is None:
        return None
    if catalog == call.catalog:
        raise KanonError(f"target {text} is in the database of the masked views itself: attach another, or name a file")
    if len(parts) > 3:
        raise KanonError(f"target {text} has {len(parts)} parts: write at most catalog.schema.table")
    return (catalog, *(parts[1:] or ("main",)))


def is_ours(call: Call, place: Place, contents: list[str]) -> bool:
    """Whether the tables of these names, where they are there, were published by kanon_duck."""
    comments = call.database.rows(
        "SELECT comment FROM duckdb_tables() WHERE lower(database_name) = lower(?) AND lower(schema_name) = lower(?) "
        "AND list_contains(list_transform(?::VARCHAR[], lambda name: lower(name)), lower(table_name))",
        [*place[:2], list(place[2:]) or contents],
    )
    return all(MARK in (comment or "") for (comment,) in comments)


def publish_attached(call: Call, text: str, place: Place, contents: list[Content]) -> None:
    """Let tables of an attached catalog hold releases.

    Guarantee: it is one transaction of that catalog, so a reader sees the old release or the new one, and a DuckLake
    has one snapshot for each publication.

    Raises
    ------
    KanonError
        With the target and DuckDB's words.
    """
    database = call.database
    if len(place) == 3 and len(contents) > 1:
        raise KanonError(
            f"target {text} is one table, but view_name names {len(contents)} masked views: name catalog and schema"
        )
    kind = database.value("SELECT type FROM duckdb_databases() WHERE database_name = ?", [place[0]])
    call.commit_so_far()  # a transaction writes into one database alone
    try:
        for content in contents:
            table = exp.table_(
                place[-1] if len(place) == 3 else content.table, db=place[1], catalog=place[0], quoted=True
            )
            write_table(database, content, table, comments=kind in HAVE_COMMENTS)
            rows = exp.select("*").from_(table)
            refuse_other_rows(database, fingerprint(database, content, content.rows), content, rows)
        call.commit_so_far()
    except StatementError as error:
        raise KanonError(
            f"target {text} was not published, and what was there stays as it was: {error.reason}"
        ) from error

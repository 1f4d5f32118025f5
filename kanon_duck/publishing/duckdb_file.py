"""Publishes into a DuckDB file of its own: tables, the functions of readers, and what was published."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from kanon_duck.catalog.views import now
from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import EARLIER, MARK, Content, model_text
from kanon_duck.publishing.files import new_files
from kanon_duck.publishing.hierarchies import reader_functions, released_part
from kanon_duck.publishing.tables import fingerprint, refuse_other_rows, refuse_violations, write_table
from kanon_duck.publishing.verify import verification_of, write_verification
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import StatementError, open_file

STORAGE_VERSION = "v1.2.0"
"""What present drivers of BI tools open."""

LOGS = (".wal", ".wal.checkpoint", ".wal.recovery", ".checkpoint.wal", ".recovery.wal")
"""What DuckDB 1.5 and 2.0 add to the name of a database file for its log, which they replay into the file."""

PUBLISHED = """
    CREATE TABLE kanon.published (
        view_name     VARCHAR,
        release       BIGINT,
        released_at   TIMESTAMP,
        is_current    BOOLEAN,
        table_schema  VARCHAR,
        table_name    VARCHAR,
        model         VARCHAR,
        published_at  TIMESTAMP
    )
"""
"""The table that says what is in a published file."""


def publish_duckdb_file(call: Call, path: Path, contents: list[Content], storage_version: str | None) -> None:
    """Write releases into a new database file, read it back, and let it take the place of the old one.

    Guarantee: the file holds released rows, the declared models, and the released part of the hierarchies. It is
    written from nothing, so no free block holds anything else. What others have written into the old file, or into
    its log, is not in the new one.

    Raises
    ------
    KanonError
        When the file holds something else; where that is found under its final name, the old one is gone.
    """
    database = call.database
    verification = verification_of(path)
    with new_files(call, verification, path, logs=LOGS) as (new_verification, new):
        call.commit_so_far()  # a transaction writes into one database alone
        with _attached(call, new, storage_version or STORAGE_VERSION) as name:
            earlier = exp.table_(EARLIER, db=name, quoted=True)
            if not all(content.is_current for content in contents):
                database.execute(exp.Create(this=earlier, kind="SCHEMA"))
            for content in contents:
                write_table(database, content, _table(content, name))
                call.checkpoint(None)
            expected = [fingerprint(database, content, content.rows) for content in contents]
            hierarchies, leaves = released_part(database, contents)
        _add_what_readers_use(new, contents, hierarchies, leaves)
        call.checkpoint(None)
        how = f"Run it in the folder of the file: duckdb -readonly {path.name} < {verification.name}"
        text = write_verification(database, [(content, _table(content)) for content in contents], how)
        new_verification.write_text(text, encoding="utf-8")
        _read_back(new, contents, expected, text)
    try:
        _read_back(path, contents, expected, text)
    except (KanonError, StatementError) as error:
        raise KanonError(
            f"target {path} was written, but does not read back under its name, so somebody else writes into it: let "
            f"readers open it with read_only, and publish again ({error.reason})"
        ) from error


def is_published(path: Path) -> bool:
    """Whether a file is a database that kanon_duck has published."""
    try:
        database = open_file(path, read_only=True)
    except StatementError:
        return False
    try:
        found = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'kanon' AND table_name = 'published'"
        return bool(database.value(found))
    finally:
        database.close()


def _table(content: Content, catalog: str | None = None) -> exp.Table:
    """Where a release is in the file."""
    return exp.table_(content.table, db="main" if content.is_current else EARLIER, catalog=catalog, quoted=True)


@contextmanager
def _attached(call: Call, path: Path, storage_version: str) -> Iterator[str]:
    """Attach a new file; commit what the body writes into it, and close the file, however the body ends."""
    name, database = f"kanon_new_{uuid.uuid4().hex}", call.database
    literal = exp.Literal.string(str(path)).sql(dialect="duckdb")
    version = exp.Literal.string(storage_version).sql(dialect="duckdb")
    try:
        database.execute(f"ATTACH {literal} AS {name} (STORAGE_VERSION {version})")
    except StatementError as error:
        if "is not a known DuckDB version" in error.reason or "storage" in error.reason.lower():
            raise KanonError(
                f"storage_version is {read.shown(storage_version)}: name a version of DuckDB that readers have, "
                f"such as '{STORAGE_VERSION}' ({error.reason.partition(', valid')[0]})"
            ) from error
        raise
    try:
        yield name
        call.commit_so_far()
    except BaseException:
        call.begin_again()
        with suppress(StatementError):  # what was raised first counts
            database.execute(f"DETACH {name}")
        raise
    database.execute(f"DETACH {name}")


def _add_what_readers_use(path: Path, contents: list[Content], hierarchies: pa.Table, leaves: pa.Table) -> None:
    """Put the functions of readers, their hierarchies and the list of what was published into the new file."""
    database = open_file(path)
    try:
        database.execute("BEGIN TRANSACTION; CREATE SCHEMA kanon; CREATE SCHEMA kanon_readers")
        for text in reader_functions():
            database.execute(text)
        database.execute("DROP TABLE kanon_readers.hierarchy_uses")
        for table, rows in (("hierarchies", hierarchies), ("hierarchy_leaves", leaves)):
            database.register("rows_of_readers", rows)
            database.execute(f"INSERT INTO kanon_readers.{table} BY NAME FROM rows_of_readers")
            database.unregister("rows_of_readers")
        database.execute(PUBLISHED)
        published_at = now()
        for each in contents:
            row = [each.view.name, each.release, each.released_at, each.is_current, _table(each).db, each.table]
            row += [model_text(each.model), published_at]
            database.execute("INSERT INTO kanon.published VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        told = exp.Literal.string(f"{MARK}list of what is in this file")
        database.execute(exp.Comment(this=exp.table_("published", db="kanon"), kind="TABLE", expression=told))
        database.execute("COMMIT")
    finally:
        database.close()


def _read_back(path: Path, contents: list[Content], expected: list[tuple[int, int]], verification: str) -> None:
    """Read the new file as readers will, and refuse it where it is not what it should be.

    Raises
    ------
    KanonError
        When its rows are others than the releases', or break a declared model.
    """
    database = open_file(path, read_only=True)
    try:
        for content, rows in zip(contents, expected, strict=True):
            refuse_other_rows(database, rows, content, exp.select("*").from_(_table(content)))
        refuse_violations(database, verification)
    finally:
        database.close()

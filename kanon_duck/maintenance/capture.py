"""Finds what has changed in the source since the last release, by comparing or from what triggers noted.

Idea: members keep a hash of their quasi-identifiers and one of what is released as it is, so source and members
are joined by key and only rows whose hashes differ come out. Without a key, rows with equal hashes are paired
one to one, and what finds no partner was inserted or deleted. Works after any kind of write to any kind of
source. Cost: one pass over source and members inside DuckDB, and a count of the source.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from kanon_duck.catalog.columns import columns_by_role, private_names
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table
from kanon_duck.intake.snapshot import create_temporary, refuse_null_keys, repeated_keys
from kanon_duck.maintenance.triggers import noted_keys, notes_are_complete, triggers_stand
from kanon_duck.release.members import hashes, identified
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database

GONE = "quasi_hash IS NULL"
NEW = "member IS NULL"
CHANGED = "(quasi_hash <> member_quasi_hash OR other_hash <> member_other_hash)"
ENCODED = f"(NOT {GONE} AND (quasi_hash IS DISTINCT FROM member_quasi_hash OR waiting_since IS NOT NULL))"
REVALUED = f"(NOT {GONE} AND NOT {ENCODED})"


@dataclass(frozen=True)
class Found:
    """How many rows of the source have changed since the members were written.

    Attributes
    ----------
    inserted, updated, deleted : int
    returning : int
        Members that wait, and have not changed.
    table : str
        Temporary table with one row for every difference: the source's columns by role, their hashes, and the
        ``member`` it is about. ``quasi_hash`` is NULL where the source has no such row any more, ``member`` where it
        has a new one. Members that wait are always among them, changed or not.
    warnings : list of str
        What the owner should know of how this was found.
    """

    inserted: int
    updated: int
    deleted: int
    returning: int
    table: str
    warnings: list[str]

    @property
    def nothing(self) -> bool:
        """Whether source and members are the same."""
        return not (self.inserted or self.updated or self.deleted)

    def in_words(self) -> str:
        """In words."""
        return f"{self.inserted} rows inserted, {self.updated} updated, {self.deleted} deleted"


def compare(call: Call, settings: Settings, view_number: int) -> Found:
    """Find all differences between source and members.

    Raises
    ------
    KanonError
        When a key is NULL or stands in several rows.
    """
    noted = settings.capture == "trigger"
    lost = noted and not triggers_stand(call, view_number)
    if noted and not lost and notes_are_complete(call, view_number):
        found = _compared(call, settings, view_number, noted_keys(settings, view_number))
        if _rows_agree(call, settings, view_number, found):
            _refuse_bad_keys(call, settings, found, True)
            return found
        lost = True
    found = _compared(call, settings, view_number, None)
    if settings.key:
        _refuse_bad_keys(call, settings, found, _rows_agree(call, settings, view_number, found))
    if lost:
        found.warnings.append("what the triggers noted is not complete: source and members were compared row by row")
    return found


def _compared(call: Call, settings: Settings, view_number: int, noted: str | None) -> Found:
    """Join source and members, all of them or those with keys that were noted and those that wait."""
    quasi_hash, other_hash = hashes(settings)
    source = exp.select(*columns_by_role(settings)).from_(settings.query.subquery("source"))
    members, keys = identified(settings, members_table(view_number))
    if not settings.key:
        # rows with equal hashes are numbered: for that the source must be read first, in the caller's schema
        source = exp.select("*").from_(exp.to_table(create_temporary(call, "temp.kanon_source", source)))
    source = exp.select("*", f"{quasi_hash} AS quasi_hash", f"{other_hash} AS other_hash", dialect="duckdb").from_(
        source.subquery("source")
    )
    if noted is not None:
        waiting = f"SELECT {', '.join(keys)} FROM {members} WHERE waiting_since IS NOT NULL"
        only = f"SEMI JOIN ({noted} UNION {waiting}) AS noted USING ({', '.join(keys)})"
        source = exp.select("source.*").from_(source.subquery("source")).join(only, dialect="duckdb")
        members = f"(SELECT members.* FROM {members} AS members {only})"
    if not settings.key:
        relation, _ = identified(settings, f"({source.sql(dialect='duckdb')})")
        source = exp.select("*").from_(exp.maybe_parse(relation, dialect="duckdb").subquery("source"))
    names = private_names(settings, *settings.roles())
    same = " AND ".join(f"source.{name} = members.{name}" for name in keys)
    query = (
        exp.select(
            *(f"source.{name}" for name in names),
            "source.quasi_hash",
            "source.other_hash",
            "members.row AS member",
            "members.quasi_hash AS member_quasi_hash",
            "members.other_hash AS member_other_hash",
            "members.waiting_since",
        )
        .from_(source.subquery("source"))
        .join(f"{members} AS members", on=same, join_type="full", dialect="duckdb")
        .where(
            "source.quasi_hash IS DISTINCT FROM members.quasi_hash OR "
            "source.other_hash IS DISTINCT FROM members.other_hash OR members.waiting_since IS NOT NULL",
            dialect="duckdb",
        )
    )
    table = create_temporary(call, "temp.kanon_changes", query)
    [(inserted, updated, deleted, returning)] = call.database.rows(
        f"SELECT count(*) FILTER ({NEW}), count(*) FILTER ({CHANGED}), count(*) FILTER ({GONE}), "
        f"count(*) FILTER (NOT {CHANGED}) FROM {table}"
    )
    return Found(inserted, updated, deleted, returning, table, [])


def _rows_agree(call: Call, settings: Settings, view_number: int, found: Found) -> bool:
    """Whether the source has as many rows as members and differences tell."""
    with call.in_callers_schema():
        rows = call.database.value(exp.select("count(*)").from_(settings.query.subquery("source")))
    members = call.database.value(f"SELECT count(*) FROM {members_table(view_number)}")
    return bool(rows == members + found.inserted - found.deleted)


def _refuse_bad_keys(call: Call, settings: Settings, found: Found, rows_agree: bool) -> None:
    """A key is never NULL, and never the same twice: then a row of the source would stand for nobody."""
    database = call.database
    refuse_null_keys(database, settings, f"(FROM {found.table} WHERE NOT {GONE})")
    keys = ", ".join(private_names(settings, "key"))
    repeated = database.value(
        f"SELECT count(*) FROM (SELECT {keys} FROM {found.table} WHERE {NEW} GROUP BY {keys} HAVING count(*) > 1)"
    )
    if repeated or not rows_agree:
        with call.in_callers_schema():
            every_key = [exp.column(name, quoted=True) for name in settings.key]
            groups = exp.select("count(*) AS rows").from_(settings.query.subquery("source")).group_by(*every_key)
            repeated = database.value(exp.select("count(*)").from_(groups.subquery("groups")).where("rows > 1"))
        raise repeated_keys(settings, repeated)


def snapshot_changes(database: Database, settings: Settings, changes: str, condition: str = ENCODED) -> str:
    """A snapshot of the changed rows that must be encoded: new ones, those that wait, and those that were updated.

    Rows whose quasi-identifiers are the same are no case for the clustering. Returns its table.
    """
    names = private_names(settings, *settings.roles())
    snapshot = "temp.kanon_snapshot"
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {snapshot} AS "
        f"SELECT {', '.join(names)}, member, waiting_since AS waited_since, "
        f"other_hash IS DISTINCT FROM member_other_hash AS revalued FROM {changes} WHERE {condition}"
    )
    return snapshot


def empty_snapshot(call: Call, settings: Settings) -> str:
    """A snapshot of no rows; returns its table."""
    query = exp.select(*columns_by_role(settings)).from_(settings.query.subquery("source"))
    return create_temporary(call, "temp.kanon_snapshot", query.limit(0))

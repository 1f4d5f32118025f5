"""Keeps who was in which class in which releases, for checks of a series of releases.

A *version* of a class is the class as it was from the release that first showed it so to the one that no longer did.
The members of a version are written when it ends, so the history grows with what changes; those of current versions
are in the table of members. A *person* is a key with what is released of it as it is: somebody whose sensitive value
changes is a person who leaves and one who comes; somebody who returns as before is the same person.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.columns import private_names, released_columns
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import (
    classes_table,
    members_table,
    people_table,
    stays_table,
    tuples_table,
    versions_table,
    vulnerable_table,
)
from kanon_duck.errors import KanonError
from kanon_duck.intake.hashing import person, typed_columns
from kanon_duck.release.classes import Ended, released_people
from kanon_duck.release.rewrite import replace_table
from kanon_duck.release.slots import has_slots, slot_rows
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.arrow import numbers
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database


def has_history(settings: Settings) -> bool:
    """Whether people can be known again: without a key they cannot, and with a unit a row is no person."""
    return bool(settings.key) and settings.model.unit is None


def own_columns(settings: Settings) -> list[str]:
    """Private columns of what is released of a person as it is."""
    return private_names(settings, "sensitive", "kept")


def cell_columns(settings: Settings) -> list[str]:
    """Private columns of what is released of a class."""
    return [source.name for _, source in released_columns(settings) if source.table == "classes"]


def create_membership(database: Database, view_number: int, settings: Settings) -> None:
    """Make the empty tables for versions of classes that will have ended, their members, and who is vulnerable."""
    if not has_history(settings):
        return
    own = ", ".join([f"{person(settings)} AS person", *own_columns(settings)])
    cells = ", ".join(["reader_class", "from_release", *cell_columns(settings)])
    database.execute(
        f"CREATE TABLE {stays_table(view_number)} AS "
        f"SELECT {own}, reader_class, from_release FROM {released_people(view_number)} LIMIT 0"
    )
    database.execute(
        f"CREATE TABLE {versions_table(view_number)} AS SELECT {cells}, CAST(0 AS BIGINT) AS to_release "
        f"FROM {classes_table(view_number)} LIMIT 0"
    )
    database.execute(f"CREATE TABLE {vulnerable_table(view_number)} (person UBIGINT)")


def remember_leaving(database: Database, view_number: int, settings: Settings, rows: NDArray[np.int64]) -> str:
    """Note who leaves, by row number, before members are taken out or given other values; returns the table of them."""
    leaving = "temp.kanon_leaving"
    if has_history(settings):
        database.register("leaving_rows", pa.table({"row": numbers(rows)}))
        database.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {leaving} AS SELECT {person(settings)} AS person "
            f"FROM {members_table(view_number)} SEMI JOIN leaving_rows USING (row)"
        )
        database.unregister("leaving_rows")
    return leaving


def end_versions(database: Database, settings: Settings, ended: Ended) -> None:
    """Write the versions of the classes that a release, the first without them, ends, and their members.

    Both the table of classes and that of members still have them as they were.
    """
    if not has_history(settings):
        return
    version = "reader_class, from_release"
    own, cells = (", ".join([version, *names]) for names in (own_columns(settings), cell_columns(settings)))
    classes = f"(SELECT class, {version} FROM {ended.classes()})"
    database.execute(
        f"INSERT INTO {stays_table(ended.view_number)} BY NAME SELECT {person(settings)} AS person, {own} "
        f"FROM {members_table(ended.view_number)} JOIN {classes} USING (class)"
    )
    if settings.has_counterfeits:  # rows of nobody: their person is NULL
        database.execute(
            f"INSERT INTO {stays_table(ended.view_number)} BY NAME SELECT NULL AS person, {own} "
            f"FROM {slot_rows(ended.view_number, settings)} JOIN {classes} USING (class) WHERE NOT is_held"
        )
    database.execute(
        f"INSERT INTO {versions_table(ended.view_number)} BY NAME "
        f"SELECT {cells}, CAST({int(ended.release)} AS BIGINT) AS to_release FROM {ended.one_of_each()}"
    )


def purge(database: Database, view_number: int, settings: Settings, leaving: str) -> None:
    """Erase the versions that people of the table ``leaving`` have been in, and nobody who is still there.

    Cost: one look at the history and at the members.
    """
    if not has_history(settings):
        return
    stays, versions = stays_table(view_number), versions_table(view_number)
    version = "reader_class, from_release"
    database.execute(
        f"""
        CREATE OR REPLACE TEMPORARY TABLE kanon_forsaken AS
        WITH left_by_some AS (FROM {stays} SEMI JOIN {leaving} USING (person) SELECT DISTINCT {version}),
        people AS (SELECT person, {version} FROM {stays} SEMI JOIN left_by_some USING ({version}))
        FROM left_by_some EXCEPT
        FROM people SEMI JOIN (SELECT {person(settings)} AS person FROM {members_table(view_number)}) USING (person)
        SELECT {version}
        """
    )
    for table in (stays, versions):
        database.execute(
            f"DELETE FROM {table} WHERE (reader_class, from_release) IN (SELECT (reader_class, from_release) "
            "FROM temp.kanon_forsaken)"
        )


class Erased(NamedTuple):
    """What has been erased of a person who had left.

    Attributes
    ----------
    rows : int
        Rows of the private history that were about the person.
    first_release, last_release : int or None
        Between which releases the person was in classes that have changed since.
    """

    rows: int
    first_release: int | None
    last_release: int | None


def erase_person(call: Call, view_number: int, settings: Settings, key: list[str]) -> Erased:
    """Take number and values of a person who has left out of the private history.

    That there was somebody stays: checks of the series count as many rows as were released. This somebody has a random
    number, which is the same in all releases, and no values. Only where certificates need the value of a slot, it stays
    as the value of somebody.

    Parameters
    ----------
    key : list of str
        One text per key column.

    Raises
    ------
    KanonError
        When a text is no value of its key column.
    """
    database, stays, people = call.database, stays_table(view_number), people_table(view_number)
    typed = ", ".join(f"TRY_CAST(? AS {kind}) AS {column}" for column, kind in typed_columns(settings, "key"))
    for name, text, value in zip(settings.key, key, database.rows(f"SELECT {typed}", key)[0], strict=True):
        if value is None:
            raise KanonError(f"key is {shown(text)}, which is no {settings.columns[name]} as {name} is")
    own, secure = own_columns(settings), has_slots(database, view_number)
    known = f"SELECT {', '.join(['person', *own])} FROM {stays}"
    if secure:
        tuples = tuples_table(view_number)
        known += f" UNION ALL SELECT {', '.join(['person', *own])} FROM {people} JOIN {tuples} USING (value)"
    database.execute(
        "CREATE OR REPLACE TEMPORARY TABLE kanon_erased AS SELECT person, hash(uuid()) AS somebody, rows FROM ("
        f"SELECT person, count(*) AS rows FROM (SELECT *, {typed} FROM ({known})) "
        f"WHERE person = {person(settings)} GROUP BY person)",
        key,
    )
    [found] = database.rows(
        "SELECT (SELECT coalesce(sum(rows), 0) FROM temp.kanon_erased), min(from_release), max(to_release) - 1 "
        f"FROM {stays} SEMI JOIN temp.kanon_erased USING (person) JOIN (SELECT reader_class, from_release, to_release "
        f"FROM {versions_table(view_number)}) USING (reader_class, from_release)"
    )
    values = "".join(f", CASE WHEN somebody IS NULL THEN {name} END AS {name}" for name in own)
    anonymous = (
        f"SELECT stays.* REPLACE (coalesce(somebody, stays.person) AS person{values}) "
        f"FROM {stays} AS stays LEFT JOIN (SELECT person, somebody FROM temp.kanon_erased) AS erased USING (person)"
    )
    replace_table(call, exp.to_table(stays), exp.maybe_parse(anonymous, dialect="duckdb"))
    if secure:
        database.execute(
            f"UPDATE {people} AS people SET person = somebody FROM temp.kanon_erased AS erased "
            "WHERE people.person = erased.person"
        )
    vulnerable = vulnerable_table(view_number)
    database.execute(f"DELETE FROM {vulnerable} WHERE person IN (SELECT person FROM temp.kanon_erased)")
    database.execute("DROP TABLE temp.kanon_erased")
    return Erased(*found)

"""Who was in which class of which releases: the private history that checks of a series of releases need.

A *version* of a class is the class as it was from the release that first showed it so to the one that no longer did.
The members of a version are written when it ends, so the history grows with what changes; those of current versions
are in the table of members. A *person* is a key with what is released of it as it is: somebody whose sensitive value
changes is a person who leaves and one who comes; somebody who returns as before is the same person.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.arrow import numbers
from kanon_duck.catalog import (
    classes_table,
    members_table,
    stays_table,
    versions_table,
    vulnerable_table,
)
from kanon_duck.classes import ENDED, released_people
from kanon_duck.maintenance.changes import rows_of
from kanon_duck.members import hash_of
from kanon_duck.release import released_columns
from kanon_duck.settings import Settings
from kanon_duck.snapshot import private_names
from kanon_duck.sql import Database

LEAVING = "temp.kanon_leaving"
"""Members that a refresh takes out or gives other values, as they were."""


def has_history(settings: Settings) -> bool:
    """Whether people can be known again: without a key they cannot, and with a unit a row is no person."""
    return bool(settings.key) and settings.model.unit is None


def person(settings: Settings) -> str:
    """SQL for the number of a person, which is the same in all releases."""
    return hash_of(private_names(settings, "key", "sensitive", "kept"))


def own_columns(settings: Settings) -> list[str]:
    """Private columns of what is released of a person as it is."""
    return private_names(settings, "sensitive", "kept")


def cell_columns(settings: Settings) -> list[str]:
    """Private columns of what is released of a class."""
    return [source.name for _, source in released_columns(settings) if source.table == "classes"]


def create_membership(database: Database, number: int, settings: Settings) -> None:
    """Make the empty tables for versions of classes that will have ended, their members, and who is vulnerable."""
    if not has_history(settings):
        return
    own = ", ".join([f"{person(settings)} AS person", *own_columns(settings)])
    cells = ", ".join(["reader_class", "from_release", *cell_columns(settings)])
    database.execute(
        f"CREATE TABLE {stays_table(number)} AS "
        f"SELECT {own}, reader_class, from_release FROM {released_people(number)} LIMIT 0"
    )
    database.execute(
        f"CREATE TABLE {versions_table(number)} AS SELECT {cells}, CAST(0 AS BIGINT) AS to_release "
        f"FROM {classes_table(number)} LIMIT 0"
    )
    database.execute(f"CREATE TABLE {vulnerable_table(number)} (person UBIGINT)")


def remember_leaving(database: Database, number: int, settings: Settings, rows: NDArray[np.int64]) -> None:
    """Put members aside, by row number, before they are taken out or given other values."""
    if not has_history(settings):
        return
    database.register("leaving", pa.table({"row": numbers(rows)}))
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {LEAVING} AS "
        f"SELECT {', '.join(_known_again(settings))} FROM {members_table(number)} SEMI JOIN leaving USING (row)"
    )
    database.unregister("leaving")


def _known_again(settings: Settings) -> list[str]:
    """SQL for a member's row number, person and values."""
    return ["row", f"{person(settings)} AS person", *own_columns(settings)]


def end_versions(database: Database, number: int, settings: Settings, before: NDArray[np.int64], release: int) -> None:
    """Write the versions of classes that end with a refresh, after their rows in the table of members have changed.

    The table of classes still has them, beside those of the release.

    Parameters
    ----------
    before : int64, shape (n,)
        Class that each row number had.
    release : int
        The first release without these versions.
    """
    if not has_history(settings):
        return
    ended = f"(FROM {classes_table(number)} SEMI JOIN {ENDED} USING (reader_class) WHERE from_release < {release})"
    rows = rows_of(database.numpy(f"SELECT class FROM {ended}")["class"], before)
    database.register("ended_rows", pa.table({"row": numbers(rows), "class": numbers(before[rows])}))
    known = ", ".join(["ended_rows.class", *_known_again(settings)])
    members = (
        f"(SELECT {known} FROM {members_table(number)} JOIN ended_rows USING (row) ANTI JOIN {LEAVING} USING (row) "
        f"UNION ALL BY NAME FROM {LEAVING} JOIN ended_rows USING (row))"
    )
    _end(database, number, settings, release, ended, members)
    database.unregister("ended_rows")


def end_all_versions(database: Database, number: int, settings: Settings, release: int) -> None:
    """Write all versions of the current release, before another takes its place."""
    if has_history(settings):
        members = f"(SELECT class, {', '.join(_known_again(settings))} FROM {members_table(number)})"
        _end(database, number, settings, release, classes_table(number), members)


def _end(database: Database, number: int, settings: Settings, release: int, classes: str, members: str) -> None:
    """Write the versions that some classes are part of, and their members."""
    version = "reader_class, from_release"
    own, cells = (", ".join([version, *names]) for names in (own_columns(settings), cell_columns(settings)))
    database.execute(
        f"INSERT INTO {stays_table(number)} BY NAME SELECT person, {own} "
        f"FROM {members} JOIN (SELECT class, {version} FROM {classes}) USING (class)"
    )
    database.execute(
        f"INSERT INTO {versions_table(number)} BY NAME SELECT DISTINCT ON (reader_class) {cells}, "
        f"CAST({release} AS BIGINT) AS to_release FROM {classes}"
    )


def purge(database: Database, number: int, settings: Settings) -> None:
    """Erase the versions that those who leave have been in, and nobody who is still there.

    Cost: one look at the history and at the members.
    """
    if not has_history(settings):
        return
    stays, versions = stays_table(number), versions_table(number)
    version = "reader_class, from_release"
    database.execute(
        f"""
        CREATE OR REPLACE TEMPORARY TABLE kanon_forsaken AS
        WITH left_by_some AS (FROM {stays} SEMI JOIN {LEAVING} USING (person) SELECT DISTINCT {version}),
        people AS (SELECT person, {version} FROM {stays} SEMI JOIN left_by_some USING ({version}))
        FROM left_by_some EXCEPT
        FROM people SEMI JOIN (SELECT {person(settings)} AS person FROM {members_table(number)}) USING (person)
        SELECT {version}
        """
    )
    for table in (stays, versions):
        database.execute(
            f"DELETE FROM {table} WHERE (reader_class, from_release) IN (SELECT (reader_class, from_release) "
            "FROM temp.kanon_forsaken)"
        )

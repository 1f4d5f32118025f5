"""Counts what a release from scratch changes for the people of the last release."""

from __future__ import annotations

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.changes import keep_numbers, people
from kanon_duck.release.members import identified
from kanon_duck.runtime.call import Row
from kanon_duck.runtime.database import Database


def remember_last(database: Database, settings: Settings, view_number: int) -> str:
    """Put the members of the last release aside, before others take their place; returns the table of them."""
    last = "temp.kanon_last"
    relation, names = identified(settings, members_table(view_number))
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {last} AS "
        f"SELECT {', '.join(names)}, quasi_hash AS last_quasi_hash, other_hash AS last_other_hash, class "
        f"FROM {relation}"
    )
    return last


def compare_with_last(database: Database, settings: Settings, view_number: int, last: str) -> Row:
    """How many people are new in the release, have other values, are gone, and are in another class.

    A class goes on as the one that most of its rows come from.
    """
    relation, names = identified(settings, members_table(view_number))
    same = " AND ".join(f"last.{name} = members.{name}" for name in names)
    data = database.numpy(
        f"""
        SELECT coalesce(last.class, -1) AS before, coalesce(members.class, -1) AS after,
               coalesce(last_quasi_hash <> members.quasi_hash
                        OR last_other_hash <> members.other_hash, false) AS changed
        FROM {last} AS last FULL JOIN {relation} AS members ON {same}
        """
    )
    before, after, changed = data["before"], data["after"], data["changed"]
    return people(before, keep_numbers(before, after, int(before.max(initial=NO_CLASS)) + 1), changed)

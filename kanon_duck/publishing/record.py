"""Reads and writes the catalog's record of what was published where."""

from __future__ import annotations

from dataclasses import dataclass

from kanon_duck.catalog.views import MaskedView, now
from kanon_duck.runtime.call import Row
from kanon_duck.runtime.database import Database


@dataclass(frozen=True)
class Publication:
    """What a call of ``kanon.publish`` asked for.

    Attributes
    ----------
    target : str
        As it is recorded.
    kind : str or None
        Of the target; None where it has yet to be read.
    releases : str
        ``current`` or ``all``.
    storage_version : str or None
    views : list of str
        Names of the masked views, those that were dropped left out.
    dropped : list of str
        Names of masked views that were dropped since.
    """

    target: str
    kind: str | None
    releases: str
    storage_version: str | None
    views: list[str]
    dropped: list[str]


def publications(database: Database) -> list[Publication]:
    """All that was published, by target."""
    rows = database.rows(
        """
        SELECT target, any_value(kind), any_value(releases), any_value(storage_version),
               list(name ORDER BY place) FILTER (dropped_at IS NULL),
               list(name ORDER BY place) FILTER (dropped_at IS NOT NULL)
        FROM kanon_private.publications JOIN kanon_private.masked_views USING (view_number)
        GROUP BY target ORDER BY target
        """
    )
    return [
        Publication(target, kind, releases, version, views or [], dropped or [])
        for target, kind, releases, version, views, dropped in rows
    ]


def are_recorded(database: Database, target: str, views: list[MaskedView]) -> bool:
    """Whether this database has published all of these masked views into a target before."""
    rows = database.rows("SELECT view_number FROM kanon_private.publications WHERE target = ?", [target])
    return {view.number for view in views} <= {number for (number,) in rows}


def record_publication(
    database: Database, kind: str, publication: Publication, views: list[MaskedView], keeps_others: bool
) -> None:
    """Note that a target holds the current releases of these masked views, and of others only where it keeps them."""
    dropped = "SELECT view_number FROM kanon_private.masked_views WHERE dropped_at IS NOT NULL"
    database.execute(
        "DELETE FROM kanon_private.publications WHERE target = ? "
        f"AND (NOT ? OR list_contains(?::BIGINT[], view_number) OR view_number IN ({dropped}))",
        [publication.target, keeps_others, [view.number for view in views]],
    )
    for place, view in enumerate(views):
        database.execute(
            "INSERT INTO kanon_private.publications VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                publication.target,
                kind,
                place,
                view.number,
                view.release,
                now(),
                publication.releases,
                publication.storage_version,
            ],
        )


def publication_rows(database: Database, target: str) -> list[Row]:
    """The rows of ``kanon.publications`` for a target."""
    return database.records("SELECT * FROM kanon.publications WHERE target = ?", [target])

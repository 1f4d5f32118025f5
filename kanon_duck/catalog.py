"""What the database remembers of masked views: settings, releases, names of private and released tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlglot import exp

from kanon_duck import arguments as read
from kanon_duck import names
from kanon_duck.call import Call, Row
from kanon_duck.errors import KanonError
from kanon_duck.settings import Settings, hierarchies_used
from kanon_duck.sql import Database


@dataclass(frozen=True)
class MaskedView:
    """A masked view as the catalog knows it.

    Attributes
    ----------
    number : int
        Names its private tables.
    name : str
        As `kanon.masked_views` lists it.
    schema, view : str
        Where the view is.
    release : int
        The current release.
    k : int
    key : list of str
    quasi_identifiers : dict
        Of each quasi-identifier, in the source's order, its type or hierarchy, step and domain.
    sensitive : list of str
    """

    number: int
    name: str
    schema: str
    view: str
    release: int
    k: int
    key: list[str]
    quasi_identifiers: dict[str, dict[str, Any]]
    sensitive: list[str]

    def cells(self, quasi_identifier: str) -> list[str]:
        """Released columns of a quasi-identifier."""
        numeric = self.quasi_identifiers[quasi_identifier]["type"] == "numeric"
        suffixes = ("", "_min", "_max") if numeric else ("",)
        return [quasi_identifier + suffix for suffix in suffixes]


def now() -> datetime:
    """The time as the catalog records it: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def members_table(view_number: int) -> str:
    """Private table of the people of a masked view: their columns by role and number, and their class."""
    return f"kanon_private.members_{view_number}"


def classes_table(view_number: int) -> str:
    """Private table of the classes of a masked view and their released cells."""
    return f"kanon_private.classes_{view_number}"


def released_table(name: str) -> exp.Table:
    """The table of the current release, which the masked view shows."""
    return exp.table_(name, db="kanon_released", quoted=True)


def next_view_number(database: Database) -> int:
    """A number no masked view has had."""
    return int(database.value("SELECT coalesce(max(view_number), 0) + 1 FROM kanon_private.masked_views"))


def find_view(call: Call) -> MaskedView:
    """The masked view that the argument ``view_name`` names.

    Raises
    ------
    KanonError
        When there is none, with the nearest name.
    """
    typed = read.text(call.arguments, "view_name")
    known = [row[0] for row in call.database.rows("SELECT name FROM kanon.masked_views")]
    parts = names.parse(typed)
    if len(parts) == 3 and parts[0].lower() == call.catalog.lower():
        parts = parts[1:]
    spelled = names.display(parts)
    in_schema = names.display((call.schema, *parts)) if len(parts) == 1 and call.schema != "main" else spelled
    if len(parts) == 2 and parts[0].lower() == "main":
        in_schema = names.display(parts[1:])
    wanted = in_schema if in_schema.lower() in {name.lower() for name in known} else spelled
    name = read.one_of("view_name", wanted, known, "masked view")
    row = call.database.records(
        "SELECT view.view_number, view.schema_name, view.view_name, listed.* FROM kanon.masked_views AS listed "
        "JOIN kanon_private.masked_views AS view ON view.name = listed.name AND view.dropped_at IS NULL "
        "WHERE listed.name = ?",
        [name],
    )[0]
    return MaskedView(
        number=row["view_number"],
        name=name,
        schema=row["schema_name"],
        view=row["view_name"],
        release=row["release"],
        k=row["k"],
        key=row["key"],
        quasi_identifiers=json.loads(row["quasi_identifiers"]),
        sensitive=list(json.loads(row["sensitive"])),
    )


def views_over(database: Database, source: str) -> list[tuple[str, bool]]:
    """Names of the masked views over a source, and whether each was dropped."""
    return database.rows(
        "SELECT DISTINCT view.name, view.dropped_at IS NOT NULL AS dropped FROM kanon_private.masked_views AS view "
        "JOIN kanon_private.settings AS settings USING (view_number, settings_version) "
        "WHERE lower(settings.source) = lower(?) ORDER BY dropped, view.name",
        [source],
    )


def record_view(
    database: Database, number: int, settings: Settings, quasi_identifiers: dict[str, dict[str, Any]]
) -> None:
    """Write a new masked view and the first version of its settings into the catalog."""
    schema, view = settings.view
    _insert(
        database,
        "masked_views",
        {
            "view_number": number,
            "name": settings.name,
            "schema_name": schema,
            "view_name": view,
            "settings_version": 1,
            "status": "current",
            "checked_at": now(),
            "waiting": 0,
        },
    )
    _insert(
        database,
        "settings",
        {
            "view_number": number,
            "settings_version": 1,
            "source": settings.source,
            "key": settings.key,
            "quasi_identifiers": json.dumps(quasi_identifiers),
            "sensitive": json.dumps(settings.sensitive),
            "keep": settings.keep,
            "k": settings.model.k,
            "method": settings.method,
            "effort": str(settings.effort),
            "method_options": json.dumps(settings.method_options) if settings.method_options else None,
            "maintenance": "incremental",
            "secure": settings.secure,
            "on_delete": "retire",
            "patience": 3,
            "capture": "diff",
            "max_suppression": settings.max_suppression,
            "weights": json.dumps(settings.weights) if settings.weights else None,
            "seed": settings.seed,
            "allow_unsafe_keep": settings.allow_unsafe_keep,
            "independent": settings.independent,
        },
    )
    for hierarchy in sorted(hierarchies_used(settings)):
        _insert(database, "hierarchy_uses", {"view_name": settings.name, "hierarchy": hierarchy})


def record_release(database: Database, number: int, release: Row, losses: dict[str, float]) -> None:
    """Write a release and the information loss of each quasi-identifier into the history."""
    _insert(database, "releases", {"view_number": number, **release})
    for attribute, loss in losses.items():
        row = {
            "view_number": number,
            "release": release["release"],
            "attribute": attribute,
            "information_loss": loss,
        }
        _insert(database, "attribute_losses", row)


def release_row(database: Database, name: str, release: int) -> Row:
    """A row of kanon.releases."""
    return database.records("SELECT * FROM kanon.releases WHERE view_name = ? AND release = ?", [name, release])[0]


def record_drop(database: Database, view: MaskedView) -> None:
    """Mark a masked view as dropped; its history stays."""
    database.execute("UPDATE kanon_private.masked_views SET dropped_at = ? WHERE view_number = ?", [now(), view.number])
    database.execute("DELETE FROM kanon_private.hierarchy_uses WHERE lower(view_name) = lower(?)", [view.name])


def refuse_taken(database: Database, settings: Settings, catalog: str) -> None:
    """A masked view never replaces a table, a view or another masked view.

    Raises
    ------
    KanonError
        When the name is taken.
    """
    taken = table_type(database, catalog, *settings.view)
    masked = database.value("SELECT count(*) FROM kanon.masked_views WHERE lower(name) = lower(?)", [settings.name])
    if masked:
        raise KanonError(
            f"view_name is {read.shown(settings.name)}, which is a masked view already: drop it or name another"
        )
    if taken:
        kind = "view" if taken == "VIEW" else "table"
        raise KanonError(f"view_name is {read.shown(settings.name)}, which is a {kind} already: name another")


def table_type(database: Database, catalog: str, schema: str, name: str) -> str | None:
    """What has a name: 'VIEW', 'BASE TABLE', ..., or None."""
    kind: str | None = database.value(
        "SELECT table_type FROM information_schema.tables WHERE table_catalog = ? "
        "AND lower(table_schema) = lower(?) AND lower(table_name) = lower(?)",
        [catalog, schema, name],
    )
    return kind


def shows_released_rows(database: Database, catalog: str, view: MaskedView) -> bool:
    """Whether the masked view is still ours: not dropped, and not replaced by a view or table of the owner's."""
    found = database.value(
        "SELECT sql FROM duckdb_views() WHERE database_name = ? AND lower(schema_name) = lower(?) "
        "AND lower(view_name) = lower(?)",
        [catalog, view.schema, view.view],
    )
    return found is not None and "kanon_released" in found


def _insert(database: Database, table: str, row: Row) -> None:
    """Insert one row, by column name, into a private table."""
    columns = ", ".join(row)
    marks = ", ".join("?" for _ in row)
    database.execute(f"INSERT INTO kanon_private.{table} ({columns}) VALUES ({marks})", list(row.values()))

"""Reads and writes the catalog's records of masked views: settings, releases, status."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from kanon_duck.catalog.column_names import cells
from kanon_duck.catalog.column_types import first_other_type
from kanon_duck.catalog.settings import QuasiIdentifier, Settings, declared, hierarchies_used, read_settings
from kanon_duck.encoding.numeric import read_step
from kanon_duck.errors import KanonError
from kanon_duck.privacy.models import PrivacyModel, SensitiveAttribute, read_model
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database


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
    key : list of str
    quasi_identifiers : dict
        Of each quasi-identifier, in the source's order, its type or hierarchy, step and domain.
    sensitive, keep : list of str
    settings_version : int
    secure : bool
    has_counterfeits : bool
        Whether released classes may have rows of nobody.
    capture : str
    members_version : str
        Another one whenever the members have changed.
    first_release : int
        The oldest release that is still readable.
    derive_from : str or None
        The masked view of whose classes those of this one are unions.
    """

    number: int
    name: str
    schema: str
    view: str
    release: int
    key: list[str]
    quasi_identifiers: dict[str, dict[str, Any]]
    sensitive: list[str]
    keep: list[str]
    settings_version: int
    secure: bool
    has_counterfeits: bool
    capture: str
    members_version: str
    first_release: int
    derive_from: str | None

    def cells(self, quasi_identifier: str) -> list[str]:
        """Released columns of a quasi-identifier."""
        return cells(quasi_identifier, self.quasi_identifiers[quasi_identifier]["type"] == "numeric")


def now() -> datetime:
    """The time as the catalog records it: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def next_view_number(database: Database) -> int:
    """A number no masked view has had."""
    return int(database.value("SELECT coalesce(max(view_number), 0) + 1 FROM kanon_private.masked_views"))


def find_view(call: Call, argument: str = "view_name") -> MaskedView:
    """The masked view that an argument names.

    Raises
    ------
    KanonError
        When there is none, with the nearest name.
    """
    typed = read.text(call.arguments, argument)
    known = [
        row[0] for row in call.database.rows("SELECT name FROM kanon_private.masked_views WHERE dropped_at IS NULL")
    ]
    parts = names.parse(typed)
    if len(parts) == 3 and parts[0].lower() == call.catalog.lower():
        parts = parts[1:]
    spelled = names.display(parts)
    in_schema = names.display((call.schema, *parts)) if len(parts) == 1 and call.schema != "main" else spelled
    if len(parts) == 2 and parts[0].lower() == "main":
        in_schema = names.display(parts[1:])
    wanted = in_schema if in_schema.lower() in {name.lower() for name in known} else spelled
    name = read.one_of(argument, wanted, known, "masked view")
    row = call.database.records(
        "SELECT view.view_number, view.schema_name, view.view_name, view.members_version, view.first_release, "
        "listed.* FROM kanon.masked_views AS listed "
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
        key=row["key"],
        quasi_identifiers=json.loads(row["quasi_identifiers"]),
        sensitive=list(json.loads(row["sensitive"])),
        keep=row["keep"],
        settings_version=row["settings_version"],
        secure=row["secure"],
        has_counterfeits=row["secure"] and (row["on_delete"] == "counterfeit" or row["reserve"] > 0),
        capture=row["capture"],
        members_version=row["members_version"],
        first_release=row["first_release"],
        derive_from=row["derive_from"],
    )


def view_named(call: Call, name: str) -> MaskedView:
    """The masked view that `kanon.masked_views` lists by a name."""
    return find_view(replace(call, arguments={"view_name": name}, schema="main"))


def derived_views(call: Call, view: MaskedView) -> list[MaskedView]:
    """The masked views that are derived from one, by name."""
    names = call.database.rows("SELECT name FROM kanon.masked_views WHERE derive_from = ?", [view.name])
    return [view_named(call, name) for (name,) in names]


def refuse_derived(view: MaskedView, procedure: str) -> None:
    """Classes of a derived view change with those of its parent alone.

    Raises
    ------
    KanonError
        When the masked view is derived.
    """
    if view.derive_from is not None:
        raise KanonError(
            f"view_name is {read.shown(view.name)}, which derives from {view.derive_from}: "
            f"CALL kanon.{procedure}('{view.derive_from}'), which makes the next release of both"
        )


def declared_model(database: Database, view: MaskedView, release: int) -> PrivacyModel:
    """The models that were declared when a release was made."""
    arguments, sensitive, types, protected, unit = database.rows(
        "SELECT arguments, sensitive, column_types, coalesce(protected, '{}'), unit FROM kanon_private.settings "
        "JOIN kanon_private.releases USING (view_number, settings_version) WHERE view_number = ? AND release = ?",
        [view.number, release],
    )[0]
    column_types, nodes = json.loads(types), json.loads(protected)
    attributes = tuple(
        SensitiveAttribute(name, column_types[name], hierarchy, nodes.get(name, []))
        for name, hierarchy in json.loads(sensitive).items()
    )
    return read_model(json.loads(arguments, object_hook=_read_decimal), attributes, unit)


def record_view(database: Database, view_number: int, settings: Settings, first_release: int = 1) -> None:
    """Write a new masked view into the catalog."""
    schema, view = settings.view
    row = {
        "view_number": view_number,
        "name": settings.name,
        "schema_name": schema,
        "view_name": view,
        "settings_version": 1,
        "status": "current",
        "checked_at": now(),
        "waiting": 0,
        "members_version": new_version(),
        "first_release": first_release,
    }
    _insert(database, "masked_views", row)


def new_version() -> str:
    """A version of members that there has never been."""
    return uuid.uuid4().hex


def record_settings(call: Call, view_number: int, settings: Settings, as_made: Row) -> int:
    """Write a version of a masked view's settings into the catalog, as the one in force; returns its number.

    Settings that are as before keep their version.

    Parameters
    ----------
    call : Call
        Its arguments are those that the settings were read from.
    as_made : dict
        What reading the source has settled: ``quasi_identifiers`` and ``domains``, as JSON.
    """
    given = {name: value for name, value in call.arguments.items() if value is not None}
    given |= {"view_name": names.display(settings.view), "quasi_identifiers": declared(settings.quasi_identifiers)}
    model = settings.model
    protected = {each.name: each.protected for each in model.attributes if each.protected}
    row = {
        "view_number": view_number,
        "source": settings.source,
        "key": settings.key,
        "sensitive": json.dumps(settings.sensitive),
        "keep": settings.keep,
        "k": model.k,
        "l": model.l,
        "entropy_l": model.entropy_l,
        "recursive_cl": json.dumps(model.recursive_cl) if model.recursive_cl else None,
        "p": model.p,
        "alpha": model.alpha,
        "t": model.t,
        "protected": json.dumps(protected) if protected else None,
        "unit": model.unit,
        "method": settings.method,
        "effort": str(settings.effort),
        "method_options": json.dumps(settings.method_options, default=float) if settings.method_options else None,
        "maintenance": settings.maintenance,
        "secure": settings.secure,
        "on_delete": settings.on_delete,
        "reserve": settings.reserve,
        "patience": settings.patience,
        "capture": settings.capture,
        "max_suppression": settings.max_suppression,
        "weights": json.dumps(settings.weights) if settings.weights else None,
        "seed": settings.seed,
        "allow_unsafe_keep": settings.allow_unsafe_keep,
        "independent": settings.independent,
        "derive_from": settings.derive_from,
        "arguments": json.dumps(given, default=_decimal),
        "caller_schema": call.schema,
        "column_types": _types_in_use(settings),
        **as_made,
    }
    columns = ", ".join(row)
    before = call.database.records(
        f"SELECT settings_version, {columns} FROM kanon_private.settings JOIN kanon_private.masked_views "
        "USING (view_number, settings_version) WHERE view_number = ?",
        [view_number],
    )
    version = before[0].pop("settings_version") if before else 0
    if before == [row]:
        return int(version)
    version += 1
    _insert(call.database, "settings", {**row, "settings_version": version})
    call.database.execute(
        "UPDATE kanon_private.masked_views SET settings_version = ? WHERE view_number = ?", [version, view_number]
    )
    call.database.execute("DELETE FROM kanon_private.hierarchy_uses WHERE lower(view_name) = lower(?)", [settings.name])
    for hierarchy in sorted(hierarchies_used(settings)):
        _insert(call.database, "hierarchy_uses", {"view_name": settings.name, "hierarchy": hierarchy})
    return int(version)


def _decimal(value: Decimal) -> Row:
    """A decimal in JSON, with all its digits."""
    return {"decimal": str(value)}


def _read_decimal(value: Row) -> Any:
    return Decimal(value["decimal"]) if list(value) == ["decimal"] else value


def settings_as_made(database: Database, view: MaskedView) -> Row:
    """What reading the source has settled for the settings in force, for `record_settings`."""
    [row] = database.records(
        "SELECT quasi_identifiers, domains FROM kanon_private.settings WHERE view_number = ? AND settings_version = ?",
        [view.number, view.settings_version],
    )
    return row


def stored_call(call: Call, view: MaskedView) -> Call:
    """The call that the settings in force were read from, to read them again."""
    typed = _typed_call(call, view)
    return typed if view.derive_from is None else with_parent(call, dict(typed.arguments))


def _typed_call(call: Call, view: MaskedView) -> Call:
    """The call with what was typed for the settings in force."""
    arguments, schema = call.database.rows(
        "SELECT arguments, caller_schema FROM kanon_private.settings WHERE view_number = ? AND settings_version = ?",
        [view.number, view.settings_version],
    )[0]
    return replace(call, arguments=json.loads(arguments, object_hook=_read_decimal), schema=schema)


def with_parent(call: Call, typed: Row) -> Call:
    """The call that made the masked view from which one derives, with what was typed for the latter in its place.

    Its view name and ``derive_from`` must be spelled as the catalog lists them.
    """
    parent = stored_call(call, view_named(call, typed["derive_from"]))
    return replace(parent, arguments={**parent.arguments, "capture": None, "independent": None, **typed})


def stored_settings(call: Call, view: MaskedView) -> tuple[Call, Settings]:
    """The settings in force, read again against the source as it is now.

    Returns
    -------
    Call
        Unqualified names of the source mean in it what they meant to the owner.
    Settings
        Numeric domains are those of the release.

    Raises
    ------
    KanonError
        When the source is gone, or has lost a column or changed its type; a wider type that readers do not see
        is none of these.
    """
    stored = stored_call(call, view)
    types = stored_types(call, view)
    settings = read_settings(stored, types)
    domains = _stored_json(call, view, "domains")
    other = first_other_type(types, settings)
    if other is not None:
        raise KanonError(f"{other}: give it its type back, or drop the masked view and make it again")
    return stored, replace(settings, quasi_identifiers=[_fixed(each, domains) for each in settings.quasi_identifiers])


def follow_parent(call: Call, view: MaskedView) -> None:
    """Record the settings of a derived view anew where those that it has of its parent have changed."""
    settings = stored_settings(call, view)[1]
    record_settings(_typed_call(call, view), view.number, settings, settings_as_made(call.database, view))


def _fixed(quasi_identifier: QuasiIdentifier, domains: dict[str, list[str]]) -> QuasiIdentifier:
    """A quasi-identifier with the domain and the bulk of the release; where no bulk was kept, it is the domain."""
    if quasi_identifier.name not in domains:
        return quasi_identifier
    first, last, *bulk = map(int, domains[quasi_identifier.name])
    return replace(quasi_identifier, fixed_domain=(first, last), fixed_bulk=tuple(bulk) or (first, last))


def domain_widths(call: Call, view: MaskedView) -> dict[str, Fraction]:
    """How wide the domain of each numeric quasi-identifier is, in units of its type."""
    domains, types = _stored_json(call, view, "domains"), stored_types(call, view)
    typed = stored_call(call, view).arguments["quasi_identifiers"]
    return {
        name: (int(ends[1]) - int(ends[0])) * read_step(call.database, name, types[name], typed[name]["step"]).size
        for name, ends in domains.items()
    }


def stored_types(call: Call, view: MaskedView) -> dict[str, str]:
    """Types of the source's columns in use, as readers know them and in the order in which they do."""
    return dict(_stored_json(call, view, "column_types"))


def _stored_json(call: Call, view: MaskedView, column: str) -> Any:
    """A column of the settings in force."""
    text = call.database.value(
        f"SELECT {column} FROM kanon_private.settings WHERE view_number = ? AND settings_version = ?",
        [view.number, view.settings_version],
    )
    return json.loads(text)


def record_types(database: Database, view: MaskedView, settings: Settings) -> None:
    """Note the types that the source's columns in use have now."""
    database.execute(
        "UPDATE kanon_private.settings SET column_types = ? WHERE view_number = ? AND settings_version = ?",
        [_types_in_use(settings), view.number, view.settings_version],
    )


def _types_in_use(settings: Settings) -> str:
    """Types of the columns that have a role, as JSON."""
    used = {name for columns in settings.roles().values() for name in columns}
    return json.dumps({name: kind for name, kind in settings.columns.items() if name in used})


def record_extension(database: Database, views: list[str], hierarchy: str) -> None:
    """Note with the masked views that use a hierarchy that it has changed: what was read of it is out of date."""
    for name in views:
        database.execute(
            "UPDATE kanon_private.masked_views SET members_version = ?, refresh_recommended = ? "
            "WHERE name = ? AND dropped_at IS NULL",
            [new_version(), f"hierarchy {hierarchy} has been extended", name],
        )


def record_first_release(database: Database, view: MaskedView, release: int) -> None:
    """Say which release is the oldest that can be read."""
    database.execute(
        "UPDATE kanon_private.masked_views SET first_release = ? WHERE view_number = ?", [release, view.number]
    )


def record_state(database: Database, view_number: int, **columns: Any) -> None:
    """Change what `kanon.masked_views` says of a masked view, and when that was found."""
    columns["checked_at"] = now()
    assignments = ", ".join(f"{name} = ?" for name in columns)
    database.execute(
        f"UPDATE kanon_private.masked_views SET {assignments} WHERE view_number = ?", [*columns.values(), view_number]
    )


def record_release(database: Database, view_number: int, release: Row, losses: dict[str, float]) -> None:
    """Write a release and the information loss of each quasi-identifier into the history."""
    _insert(database, "releases", {"view_number": view_number, **release})
    database.execute(
        "INSERT INTO kanon_private.attribute_losses (view_number, release, attribute, information_loss) "
        "SELECT ?, ?, unnest(?::VARCHAR[]), unnest(?::DOUBLE[])",
        [view_number, release["release"], list(losses), list(losses.values())],
    )


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


def _insert(database: Database, table: str, row: Row) -> None:
    """Insert one row, by column name, into a private table."""
    columns = ", ".join(row)
    marks = ", ".join("?" for _ in row)
    database.execute(f"INSERT INTO kanon_private.{table} ({columns}) VALUES ({marks})", list(row.values()))

"""Which masked views read which others, directly, through plain views or in a SELECT.

Idea: a masked view is a plain view over its released table. So whatever reads it, by whatever way, has that table in
DuckDB's plan before anything of it is optimized away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kanon_duck.catalog.views import MaskedView, stored_call, view_named
from kanon_duck.errors import KanonError
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.source import read_source


def all_views(call: Call) -> list[MaskedView]:
    """The masked views of the database, those that a view reads before it, else by name.

    Where a rebuild with another source has closed a circle, it begins at the first name.
    """
    views = {name: view_named(call, name) for (name,) in call.database.rows("SELECT name FROM kanon.masked_views")}
    read_by = {name: _views_read(call, view, list(views)) for name, view in views.items()}
    ordered: dict[str, MaskedView] = {}
    reached: set[str] = set()

    def visit(name: str) -> None:
        if name not in reached:
            reached.add(name)
            for source in read_by[name]:
                visit(source)
            ordered[name] = views[name]

    for name in views:
        visit(name)
    return list(ordered.values())


def readers(call: Call, view: MaskedView) -> list[str]:
    """Names of the other masked views whose sources read a masked view."""
    names = [name for (name,) in call.database.rows("SELECT name FROM kanon.masked_views") if name != view.name]
    return [name for name in names if _views_read(call, view_named(call, name), [view.name])]


def views_over(call: Call, source: str) -> list[tuple[str, bool]]:
    """Names of the masked views over a source, and whether each was dropped.

    Sources are the same where they are spelled alike, or read the same tables, whatever views, macros or queries
    stand between.
    """
    tables = _tables_read(call, source)
    found = call.database.rows(
        "SELECT view.name, view.dropped_at IS NOT NULL, settings.source, settings.caller_schema "
        "FROM kanon_private.masked_views AS view JOIN kanon_private.settings AS settings "
        "USING (view_number, settings_version) ORDER BY view.name"
    )
    return [
        (name, dropped)
        for name, dropped, other, schema in found
        if other.lower() == source.lower() or (tables and tables == _tables_read(replace(call, schema=schema), other))
    ]


def _views_read(call: Call, view: MaskedView, names: list[str]) -> list[str]:
    """Those of some masked views that the source of one reads; none where the source cannot be read any more."""
    stored = stored_call(call, view)
    tables = _tables_read(stored, stored.arguments["source"])
    return [name for name in names if f"{call.catalog}.kanon_released.{name}" in tables]


def _tables_read(call: Call, source: str) -> set[str]:
    """The tables that a source reads; none where it cannot be read any more."""
    try:
        query = read_source(call, source, "source")
        call.database.execute("SET explain_output = 'all'")
        with call.in_callers_schema():
            plans = call.database.rows(f"EXPLAIN (FORMAT json) {query.sql(dialect='duckdb')}")
    except KanonError:
        call.use_our_schemas()
        return set()
    return set(_tables(json.loads(dict(plans)["logical_plan"])))


def _tables(nodes: list[dict[str, Any]]) -> Iterator[str]:
    """The tables that a plan reads."""
    for node in nodes:
        if "Table" in node["extra_info"]:
            yield node["extra_info"]["Table"]
        yield from _tables(node["children"])

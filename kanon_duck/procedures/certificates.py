"""FROM kanon.certificates: what stays possible for each person of a secure release, and what proves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table, tuples_table
from kanon_duck.catalog.views import MaskedView, find_view, stored_settings, view_named
from kanon_duck.errors import KanonError
from kanon_duck.intake.snapshot import key_text
from kanon_duck.maintenance.capture import empty_snapshot
from kanon_duck.maintenance.secure_refresh import load_series
from kanon_duck.maintenance.secure_series import as_derived_shows
from kanon_duck.maintenance.state import keep_in_mind, load_state
from kanon_duck.release.slots import read_bounds
from kanon_duck.runtime.arrow import numbers, texts
from kanon_duck.runtime.call import Call, Row
from kanon_duck.secure.certificates import RULES, Certificates, certificates


def run(call: Call) -> list[Row]:
    """One row for each person of the current release and each sensitive attribute; one for a person where none is."""
    view = find_view(call)
    if not view.secure:
        raise KanonError(f"masked view {view.name} is not secure: its releases have no certificates")
    settings = stored_settings(call, view)[1]
    parent = view if view.derive_from is None else view_named(call, view.derive_from)
    stored, of_parent = stored_settings(call, parent)
    call.phase("reading")
    state, _ = load_state(call, parent, of_parent, empty_snapshot(stored, of_parent))
    series = state.series or load_series(call, parent, of_parent, state)
    shown = series
    if view is not parent:
        [derived] = [each for each in series.derived if each.view_number == view.number]
        shown = as_derived_shows(settings, series, derived, state.microdata)
    bounds = read_bounds(call.database, parent.number, settings)
    found = certificates(shown.slots, bounds, np.flatnonzero(shown.slots.classes() >= 0))
    keep_in_mind(call, replace(state, series=series))
    return _rows(call, view, settings, found)


def _rows(call: Call, view: MaskedView, settings: Settings, found: Certificates) -> list[Row]:
    """The certificates in the owner's words: keys and values."""
    rule = texts(RULES).take(numbers(found.rule))
    people = {"row": numbers(found.person), "rule": rule, "candidates": numbers(found.candidates)}
    which = np.repeat(found.person, np.diff(found.stops, prepend=0))
    call.database.register("certified_people", pa.table(people))
    call.database.register("certified_values", pa.table({"row": numbers(which), "value": numbers(found.values)}))
    key = key_text([(name, exp.column(f"key_{place}")) for place, name in enumerate(settings.key)])
    attributes = [
        (exp.Literal.string(name).sql(dialect="duckdb"), f"coalesce(CAST(sensitive_{place} AS VARCHAR), 'NULL')")
        for place, name in enumerate(settings.sensitive)
    ] or [("CAST(NULL AS VARCHAR)", "CAST(NULL AS VARCHAR)")]
    parts = [
        f"""
        SELECT {int(view.release)} AS release, key, {attribute} AS attribute,
               list(DISTINCT shown ORDER BY shown) FILTER (shown IS NOT NULL) AS values, candidates, rule
        FROM certified_people
        JOIN (SELECT row, {key.sql(dialect="duckdb")} AS key FROM {members_table(view.number)}) USING (row)
        JOIN certified_values USING (row)
        JOIN (SELECT value, {shown} AS shown FROM {tuples_table(view.number)}) USING (value)
        GROUP BY row, key, candidates, rule
        """
        for attribute, shown in attributes
    ]
    return call.database.records(f"FROM ({' UNION ALL '.join(parts)}) ORDER BY key, attribute")

"""CALL kanon.create_masked_view: makes a masked view and its first release from settings and a source."""

from __future__ import annotations

import time

from kanon_duck.catalog.derived import read_derivation
from kanon_duck.catalog.reading import views_over
from kanon_duck.catalog.settings import Settings, read_settings, standing_warnings
from kanon_duck.catalog.views import (
    next_view_number,
    record_release,
    record_view,
    refuse_taken,
    release_row,
)
from kanon_duck.errors import KanonError
from kanon_duck.intake.kept_columns import check_kept
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.maintenance.capture import empty_snapshot
from kanon_duck.maintenance.derived_release import first_derived_release
from kanon_duck.maintenance.from_scratch import release_from_scratch
from kanon_duck.maintenance.secure_refresh import load_series
from kanon_duck.maintenance.state import load_state
from kanon_duck.maintenance.triggers import REFUSED_STATEMENTS, install_triggers, trigger_source
from kanon_duck.privacy.feasibility import refuse_impossible
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Make a masked view and its first release."""
    if call.arguments.get("derive_from") is not None:
        return [_derive(call)]
    started = time.perf_counter()
    database = call.database
    settings = read_settings(call)
    refuse_taken(database, settings, call.catalog)
    accepted = _refuse_second_view(call, settings)
    if settings.capture == "trigger":
        trigger_source(call, settings)
    call.phase("reading")
    snapshot = take_snapshot(call, settings)
    refuse_impossible(database, settings.model, snapshot.rows, snapshot.table)
    check_kept(database, settings, snapshot.table)
    warnings = standing_warnings(settings) + accepted
    number = next_view_number(database)
    record_view(database, number, settings)
    release, losses, found = release_from_scratch(call, settings, snapshot.table, number, 1, "create")
    if settings.capture == "trigger":
        install_triggers(call, settings, number)
        found.append(f"as long as triggers note its changes, {settings.source} refuses {REFUSED_STATEMENTS}")
    release |= {
        "inserted": release["rows"],
        "warnings": warnings + found,
        "seconds": time.perf_counter() - started,
    }
    record_release(database, number, release, losses)
    return [release_row(database, settings.name, 1)]


def _derive(call: Call) -> Row:
    """Make a masked view whose classes are unions of another's, and its first release, of the other's last."""
    made = read_derivation(call)
    refuse_taken(call.database, made.settings, call.catalog)
    others = [name for name, _ in views_over(call, made.settings.source) if name != made.parent.name]
    warnings = [f"whoever has releases of {_listed(others)} can compare them"] if others else []
    number = next_view_number(call.database)
    record_view(call.database, number, made.settings, made.parent.release)
    call.phase("reading")
    snapshot = empty_snapshot(made.parent_call, made.parent_settings)
    state, _ = load_state(call, made.parent, made.parent_settings, snapshot)
    series = state.series or load_series(call, made.parent, made.parent_settings, state)
    return first_derived_release(call, made, number, state, series, warnings)


def _refuse_second_view(call: Call, settings: Settings) -> list[str]:
    """Refuse a view over a source that has, or had, another, unless the owner says that this is meant.

    Guarantee: nobody's releases become comparable with others by accident, also not by a drop.

    Returns
    -------
    list of str
        What the owner has accepted.

    Raises
    ------
    KanonError
        With the other views.
    """
    others = views_over(call, settings.source)
    standing = [name for name, dropped in others if not dropped]
    dropped = [name for name, dropped in others if dropped]
    new_series = read.boolean(call.arguments, "new_series", False)
    if standing and not settings.independent:
        raise KanonError(
            f"source {settings.source} has a masked view already, {_listed(standing)}: whoever has both can compare "
            "them; derive_from => '...' makes one that is safe beside it, and independent => true says that this is "
            "meant"
        )
    if dropped and not (settings.independent or new_series):
        raise KanonError(
            f"source {settings.source} had a masked view, {_listed(dropped)}, whose releases somebody may have: "
            "whoever has both can compare them; new_series => true says that this is meant"
        )
    if not others or settings.independent:
        return []
    return [f"whoever has releases of {_listed([name for name, _ in others])} can compare them"]


def _listed(names: list[str]) -> str:
    """Names in a sentence."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

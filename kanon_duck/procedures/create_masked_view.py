"""CALL kanon.create_masked_view: makes a masked view and its first release from settings and a source."""

from __future__ import annotations

import time

from kanon_duck.catalog.settings import Settings, read_settings, standing_warnings
from kanon_duck.catalog.views import (
    next_view_number,
    record_release,
    record_view,
    refuse_taken,
    release_row,
    views_over,
)
from kanon_duck.intake.kept_columns import check_kept
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.maintenance.from_scratch import release_from_scratch
from kanon_duck.maintenance.triggers import REFUSED_STATEMENTS, install_triggers, trigger_source
from kanon_duck.privacy.feasibility import refuse_impossible
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database


def run(call: Call) -> list[Row]:
    """Make a masked view and its first release."""
    started = time.perf_counter()
    database = call.database
    settings = read_settings(call)
    refuse_taken(database, settings, call.catalog)
    if settings.capture == "trigger":
        trigger_source(call, settings)
    call.phase("reading")
    snapshot = take_snapshot(call, settings)
    refuse_impossible(database, settings.model, snapshot.rows, snapshot.table)
    check_kept(database, settings, snapshot.table)
    warnings = _warnings(database, settings)
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


def _warnings(database: Database, settings: Settings) -> list[str]:
    """What the owner should know before anybody reads the view."""
    warnings = standing_warnings(settings)
    if not settings.independent:
        others = views_over(database, settings.source)
        for names, state in (
            ([name for name, dropped in others if not dropped], "over this source too"),
            ([name for name, dropped in others if dropped], "over this source and dropped"),
        ):
            if names:
                shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                warnings.append(
                    f"made {state}: {shown}; whoever has both can compare them; "
                    "independent => true says that this is meant"
                )
    return warnings

"""CALL kanon.optimize: applies IL_Optimization to the current classes, as a release of its own."""

from __future__ import annotations

import time

import numpy as np

from kanon_duck.catalog.options import FULL_DOMAIN
from kanon_duck.catalog.settings import standing_warnings
from kanon_duck.catalog.views import find_view, refuse_derived, stored_settings
from kanon_duck.errors import KanonError
from kanon_duck.maintenance.batch import optimize_classes
from kanon_duck.maintenance.capture import empty_snapshot
from kanon_duck.maintenance.next_release import (
    draft_release,
    end_changed_classes,
    keep_release,
    move_members,
    release_draft,
)
from kanon_duck.maintenance.refresh import series_views
from kanon_duck.maintenance.secure_refresh import load_series, nothing_changed, release_changes
from kanon_duck.maintenance.state import keep_in_mind, load_state
from kanon_duck.release.shown import put_back
from kanon_duck.release.stays import remember_leaving
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.call import Call, Row

NONE = np.empty(0, np.int64)


def run(call: Call) -> list[Row]:
    """Break classes that others cover, where that lowers information loss; the source is not read.

    Classes of a secure masked view are split where both parts stay proved safe, and nothing else.
    """
    started = time.perf_counter()
    view = find_view(call)
    refuse_derived(view, "optimize")
    of_the_view = [warning for each in series_views(call, view) for warning in put_back(call, each, dry_run=False)]
    stored, settings = stored_settings(call, view)
    if settings.method == FULL_DOMAIN:
        raise KanonError(
            f"view_name is {shown(view.name)}, whose method {settings.method} shows one level of each "
            "quasi-identifier, which optimize would not: CALL kanon.rebuild with another method"
        )
    call.phase("encoding")
    state, encoded = load_state(call, view, settings, empty_snapshot(stored, settings))
    if view.secure:
        batch = nothing_changed(encoded, state.series or load_series(call, view, settings, state))
        row = release_changes(call, view, settings, state, batch, [], "optimize", started)
        return [row | {"warnings": of_the_view + row["warnings"]}]
    call.phase("clustering")
    before = state.labels
    state = optimize_classes(call, settings, state)
    draft = draft_release(call, view, settings, state, before, NONE, "optimize", started)
    ended = end_changed_classes(draft) if draft.shows_difference else None
    leaving = remember_leaving(call.database, view.number, settings, NONE)
    move_members(draft, NONE)
    keep_in_mind(call, draft.state)
    row = keep_release(draft) if ended is None else release_draft(draft, ended, leaving, standing_warnings(settings))
    return [row | {"warnings": of_the_view + row["warnings"]}]

"""Brings a masked view up to date with its source, at the cost of the change.

The steps: capture the changes, encode them, decide where rows go, and release the classes that have changed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings, standing_warnings
from kanon_duck.catalog.views import MaskedView, derived_views, release_row, stored_settings, view_named
from kanon_duck.errors import KanonError, RecordedError, RefusedReleaseError
from kanon_duck.intake.encode import EncodedSnapshot
from kanon_duck.kernels import wake
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.batch import place_batch
from kanon_duck.maintenance.capture import GONE, REVALUED, Found, compare, snapshot_changes
from kanon_duck.maintenance.next_release import (
    Draft,
    draft_release,
    end_changed_classes,
    keep_release,
    move_members,
    release_draft,
)
from kanon_duck.maintenance.partition import up_to_date
from kanon_duck.maintenance.secure_refresh import SecureBatch, encode_changes, release_changes
from kanon_duck.maintenance.state import (
    State,
    free_rows,
    keep_in_mind,
    load_state,
    same_codes,
    write_codes,
    write_sensitive_codes,
)
from kanon_duck.maintenance.triggers import clear_notes
from kanon_duck.maintenance.without_release import broken, held, refused, standing, unchanged, undo_dry_run
from kanon_duck.privacy.sensitive import codes_of, reading
from kanon_duck.release.members import (
    add_members,
    remove_members,
    update_values,
)
from kanon_duck.release.shown import put_back
from kanon_duck.release.stays import remember_leaving
from kanon_duck.release.widening import widen
from kanon_duck.runtime import shortfalls
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.parallel import in_background


@dataclass
class Batch:
    """The changes of the source, by row numbers of the members.

    Attributes
    ----------
    encoded : EncodedSnapshot
        The snapshot: new rows, those that wait, and those with other quasi-identifiers.
    rows : int64, shape (rows of the snapshot,)
        Row number of each, in the encoding's order.
    old : bool, same shape
        Whether it was a member before.
    recoded : bool, same shape
        Whether its codes are not what they were.
    waiting_since : int64, same shape
        Since which release it waits; 0 for one that does not.
    gone, revalued : int64
        Row numbers of members that the source has no more, and of those of which only what is released as it
        is has changed.
    """

    encoded: EncodedSnapshot
    rows: NDArray[np.int64]
    old: NDArray[np.bool_]
    recoded: NDArray[np.bool_]
    waiting_since: NDArray[np.int64]
    gone: NDArray[np.int64]
    revalued: NDArray[np.int64]


def refresh(call: Call, view: MaskedView, dry_run: bool) -> Row:
    """Make a release of what the source holds now, of a view together with those derived from it.

    Parameters
    ----------
    call : Call
    view : MaskedView
    dry_run : bool
        Do everything, tell what would be, and undo it.

    Returns
    -------
    dict
        The release's row of ``kanon.releases``; where none was made, that of the release there is, with a cause
        that says so.

    Raises
    ------
    KanonError
        When something else has the masked view's name.
    RecordedError
        When the source cannot be read any more, or when the check refuses what the search has made, also from scratch.
    """
    started = time.perf_counter()
    parent = view if view.derive_from is None else view_named(call, view.derive_from)
    of_the_view = [warning for each in series_views(call, parent) for warning in put_back(call, each, dry_run)]
    try:
        row = _refresh(call, parent, dry_run, started)
    except RefusedReleaseError:
        row = _refresh_from_scratch(call, parent, dry_run, started)
    if view is not parent:
        row = row_of_derived(call, view, row)
    row |= {"warnings": of_the_view + row["warnings"]}
    return undo_dry_run(call, row) if dry_run else row


def _refresh_from_scratch(call: Call, view: MaskedView, dry_run: bool, started: float) -> Row:
    """The row of the next release where the one that was made first has been refused.

    All rows are clustered anew; a secure series goes on from what the database has of it.
    """
    call.begin_again()
    for each in series_views(call, view):
        put_back(call, each, dry_run)
    try:
        return _refresh(call, view, dry_run, started, from_scratch=True)
    except RefusedReleaseError as error:
        if dry_run:
            raise
        raise refused(call, view, error) from error


def _refresh(call: Call, view: MaskedView, dry_run: bool, started: float, from_scratch: bool = False) -> Row:
    """The row of the next release, or of the last one where there is none."""
    call.phase("reading")
    try:
        stored, settings, found = find_changes(call, view)
        if not dry_run:
            clear_notes(stored, settings, view.number)
        if found.nothing and not found.returning:
            return unchanged(call, view, ["the source is unchanged: no new release", *found.warnings])
        for each in series_views(call, view):
            widen(call, each, settings)
        call.phase("encoding")
        with in_background(wake):
            encode_all = encode_changes if view.secure else _encode
            state, batch = encode_all(call, view, settings, found.table)
    except RecordedError:
        raise
    except KanonError as error:
        if dry_run:
            raise
        raise broken(call, view, error) from error

    if isinstance(batch, SecureBatch):
        return release_changes(call, view, settings, state, batch, found.warnings, "refresh", started)
    call.phase("clustering")
    before = state.labels
    if from_scratch:
        found.warnings.append("classes could not be kept: all rows were clustered from scratch")
    state, waits, from_clustering = _place(
        call, replace(settings, maintenance="static") if from_scratch else settings, state, batch
    )
    if np.all(state.labels == NO_CLASS):
        return held(call, view, settings.model)
    call.phase("writing")
    changed = np.concatenate([batch.rows[batch.old], batch.revalued])
    with in_background(up_to_date, state.partition, state.labels) as partition:
        draft = draft_release(call, view, settings, state, before, changed, "refresh", started)
        ended = end_changed_classes(draft) if draft.shows_difference else None
        leaving = _write_members(draft, batch, found.table, waits)
        warnings = standing_warnings(settings) + found.warnings + batch.encoded.warnings + list(from_clustering)
        row = keep_release(draft) if ended is None else release_draft(draft, ended, leaving, warnings)
    keep_in_mind(call, replace(draft.state, partition=partition.result()))
    return row


def series_views(call: Call, view: MaskedView) -> list[MaskedView]:
    """The masked views that are released together: one, and those derived from it."""
    return [view, *derived_views(call, view)]


def row_of_derived(call: Call, view: MaskedView, of_parent: Row) -> Row:
    """The answer for a derived view, as it was before its parent was refreshed, after that."""
    after = view_named(call, view.name)
    if after.release > view.release:
        return release_row(call.database, view.name, after.release)
    [(status, reason)] = call.database.rows("SELECT status, reason FROM kanon.masked_views WHERE name = ?", [view.name])
    if status == "current":
        return standing(call, after, "unchanged", of_parent["warnings"])
    shortfalls.note(view.name)
    return standing(call, after, status, [reason])


def find_changes(call: Call, view: MaskedView) -> tuple[Call, Settings, Found]:
    """Compare the source with the members; the differences are left in a table.

    Returns
    -------
    Call
        The one that the settings were read from.
    Settings
    Found

    Raises
    ------
    KanonError
        When the source cannot be read as it could at the release.
    """
    stored, settings = stored_settings(call, view)
    return stored, settings, compare(stored, settings, view.number)


def _encode(call: Call, view: MaskedView, settings: Settings, changes: str) -> tuple[State, Batch]:
    """Encode what has changed, from the table of the changes, and put it into the members' arrays."""
    database = call.database
    snapshot = snapshot_changes(database, settings, changes)
    state, encoded = load_state(call, view, settings, snapshot)
    of_member = database.numpy(
        "SELECT coalesce(member, -1) AS member, coalesce(waited_since, 0) AS waiting_since "
        f"FROM {snapshot} ORDER BY rowid"
    )
    rows = of_member["member"][encoded.snapshot_row]
    old = rows >= 0
    rows[~old] = free_rows(state, int(np.count_nonzero(~old)))
    recoded = ~old
    recoded[old] = ~same_codes(state, encoded.microdata.take(np.flatnonzero(old)), rows[old])
    state = write_codes(state, encoded.microdata, rows)
    gone = database.numpy(f"SELECT member FROM {changes} WHERE {GONE}")["member"]
    revalued = database.numpy(f"SELECT member FROM {changes} WHERE {REVALUED}")["member"]
    if len(revalued):
        state = _revalue(database, settings, state, f"(SELECT * FROM {changes} WHERE {REVALUED})")
    waiting_since = of_member["waiting_since"][encoded.snapshot_row]
    return state, Batch(encoded, rows, old, recoded, waiting_since, gone, revalued)


def _revalue(database: Database, settings: Settings, state: State, changed: str) -> State:
    """The state with the sensitive values of members of which nothing else is new, from the relation of these."""
    sensitive = state.microdata.sensitive
    if sensitive is None:
        return state
    selected, joins = reading(database, settings.model, changed, "changed")
    data = database.numpy(f"SELECT member, {', '.join(selected)} FROM {changed} AS changed {' '.join(joins)}")
    found = codes_of(settings.model, data)
    assert found is not None
    sensitive = write_sensitive_codes(sensitive, found, data["member"], len(state.labels))
    return replace(state, microdata=replace(state.microdata, sensitive=sensitive))


def _place(
    call: Call, settings: Settings, state: State, batch: Batch
) -> tuple[State, NDArray[np.bool_], Sequence[str]]:
    """Give classes to the rows that change.

    Returns the members with their classes, whether those of the snapshot wait afterwards, and warnings.
    """
    present = state.present.copy()
    present[batch.gone] = False
    state = replace(state, present=present)
    left_out = present & (state.labels == NO_CLASS)  # members that wait are in the batch
    suppressed = left_out[batch.rows] & batch.old & (batch.waiting_since == 0)
    left_out[batch.rows] = suppressed & ~batch.encoded.unknown
    arriving = ~batch.encoded.unknown & ~suppressed & (batch.recoded | (batch.waiting_since > 0))
    leaving = np.concatenate([batch.gone, batch.rows[batch.old & (batch.recoded | batch.encoded.unknown)]])
    state, warnings = place_batch(call, settings, state, leaving, batch.rows[arriving], np.flatnonzero(left_out))
    placed = state.labels[batch.rows[arriving]] != NO_CLASS
    held_back = settings.maintenance == "append" and not placed.any()
    return state, batch.encoded.unknown | (arriving & held_back & (state.labels[batch.rows] == NO_CLASS)), warnings


def _write_members(draft: Draft, batch: Batch, changes: str, waits: NDArray[np.bool_]) -> str:
    """Write the members that the source has given other values or another class, or no longer has.

    New ones that wait do so since the draft's release. Returns the table of the people who leave.
    """
    database, view_number, settings = draft.call.database, draft.view.number, draft.settings
    since = np.where(batch.waiting_since > 0, batch.waiting_since, draft.release)
    labels = draft.state.labels[batch.rows]
    old = np.concatenate([batch.gone, batch.rows[batch.old], batch.revalued])
    leaving = remember_leaving(database, view_number, settings, old)
    remove_members(database, view_number, np.concatenate([batch.gone, batch.rows[batch.old]]))
    columns = {
        "row": (batch.rows, None),
        "class": (labels, labels == NO_CLASS),
        "waiting_since": (since, ~waits),
    }
    add_members(database, view_number, settings, batch.encoded, columns)
    if len(batch.revalued):
        update_values(database, view_number, settings, f"(FROM {changes} WHERE {REVALUED})")
    move_members(draft, batch.rows)
    return leaving

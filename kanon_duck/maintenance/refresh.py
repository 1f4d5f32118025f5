"""Brings a masked view up to date with its source, at the cost of what has changed.

The steps: capture the changes, encode them, decide where rows go, and release the classes that have changed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings, standing_warnings
from kanon_duck.catalog.views import MaskedView, members_table, refuse_unseen, stored_settings
from kanon_duck.encoding.microdata import CategoricalAttribute
from kanon_duck.errors import KanonError, RecordedError
from kanon_duck.intake.encode import UNKNOWN_LEAF, Coded, Known, encode
from kanon_duck.intake.snapshot import SNAPSHOT
from kanon_duck.kernels import wake
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.batch import bring_in, follow
from kanon_duck.maintenance.capture import CHANGES, GONE, REVALUED, Found, compare, snapshot_changes
from kanon_duck.maintenance.next_release import move_members, succeed
from kanon_duck.maintenance.state import State, free_rows, put, put_sensitive, same_codes
from kanon_duck.maintenance.triggers import settle
from kanon_duck.maintenance.without_release import broken, dry, held, secure_not_yet, unchanged
from kanon_duck.privacy.sensitive import codes_of, reading
from kanon_duck.release.members import (
    add_members,
    add_values,
    known_hierarchies,
    load_members,
    remove_members,
    update_values,
)
from kanon_duck.release.stays import remember_leaving
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.parallel import beside


@dataclass
class Batch:
    """The changes of the source, by row numbers of the members.

    Attributes
    ----------
    coded : Coded
        The snapshot: new rows, those that wait, and those with other quasi-identifiers.
    rows : int64, shape (rows of the snapshot,)
        Row number of each, in the encoding's order.
    old : bool, same shape
        Whether it was a member before.
    recoded : bool, same shape
        Whether its codes are not what they were.
    unknown : bool, same shape
        Whether it has a value that its hierarchy does not know.
    waiting_since : int64, same shape
        Since which release it waits; 0 for one that does not.
    gone, revalued : int64
        Row numbers of members that the source has no more, and of those of which only what is released as it
        is has changed.
    """

    coded: Coded
    rows: NDArray[np.int64]
    old: NDArray[np.bool_]
    recoded: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    waiting_since: NDArray[np.int64]
    gone: NDArray[np.int64]
    revalued: NDArray[np.int64]


def refresh(call: Call, view: MaskedView, dry_run: bool) -> Row:
    """Make a release of what the source holds now.

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
        When readers do not see the masked view any more.
    RecordedError
        When the source cannot be read any more, or the masked view is secure and its source has changed.
    """
    started = time.perf_counter()
    refuse_unseen(call, view)
    call.phase("reading")
    try:
        stored, settings, found = find_changes(call, view)
        if view.secure and not found.nothing and not dry_run:
            raise secure_not_yet(call, view, found)
        if not dry_run:
            settle(stored, settings, view.number)
        if found.nothing and not found.returning:
            told = ["the source is unchanged: no new release", *found.warnings]
            return unchanged(call, view, dry_run, told)
        call.phase("encoding")
        with beside(wake):
            state, batch = _encode(call, view, settings)
    except RecordedError:
        raise
    except KanonError as error:
        if dry_run:
            raise
        raise broken(call, view, error) from error

    call.phase("clustering")
    before = state.labels
    waits, made = _bring_in(call, settings, state, batch)
    if np.all(state.labels == NO_CLASS):
        return held(call, view, dry_run, settings.model)
    call.phase("writing")
    changed = np.concatenate([batch.rows[batch.old], batch.revalued])
    warnings = standing_warnings(settings) + found.warnings + batch.coded.warnings + list(made)

    def write(release: int) -> None:
        _write_members(call.database, view.number, settings, state, batch, waits, release)
        move_members(call.database, view.number, state, before, batch.rows)

    with beside(follow, state):
        row = succeed(call, view, settings, state, before, changed, write, "refresh", warnings, started)
    return dry(call, row) if dry_run else row


def find_changes(call: Call, view: MaskedView) -> tuple[Call, Settings, Found]:
    """Compare the source with the members; the differences are left in ``CHANGES``.

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


def load_state(call: Call, view: MaskedView, settings: Settings) -> tuple[State, Coded]:
    """The members as arrays, and the rows of the snapshot in the same codes.

    The arrays are those that the process remembers, if they are of the members' present version.
    """
    database = call.database
    state = call.memory.take()
    if state is not None and state.version != view.members_version:
        state = None
    if state is None:
        hierarchies = known_hierarchies(database, view.number, settings)
    else:
        hierarchies = {
            place: attribute.hierarchy
            for place, attribute in enumerate(state.microdata.attributes)
            if isinstance(attribute, CategoricalAttribute)
        }
    coded = encode(database, settings, Known(hierarchies, members_table(view.number)))
    if state is None or state.microdata.encoding.codes.dtype != coded.microdata.encoding.codes.dtype:
        loaded = load_members(database, view.number, settings, coded.microdata.attributes)
        state = State(view.members_version, *loaded)
    add_values(database, view.number, coded.microdata, hierarchies)
    return state, coded


def _encode(call: Call, view: MaskedView, settings: Settings) -> tuple[State, Batch]:
    """Encode what has changed, and put it into the members' arrays."""
    database = call.database
    snapshot_changes(database, settings)
    state, coded = load_state(call, view, settings)
    beside = database.numpy(
        "SELECT coalesce(member, -1) AS member, coalesce(waited_since, 0) AS waiting_since "
        f"FROM {SNAPSHOT} ORDER BY rowid"
    )
    rows = beside["member"][coded.snapshot_row]
    old = rows >= 0
    rows[~old] = free_rows(state, int(np.count_nonzero(~old)))
    recoded = ~old
    recoded[old] = ~same_codes(state, coded.microdata.take(np.flatnonzero(old)), rows[old])
    unknown = np.zeros(len(rows), bool)
    for attribute in coded.microdata.attributes:
        if isinstance(attribute, CategoricalAttribute):
            unknown |= attribute.leaf == UNKNOWN_LEAF
    put(state, coded.microdata, rows)
    gone = database.numpy(f"SELECT member FROM {CHANGES} WHERE {GONE}")["member"]
    revalued = database.numpy(f"SELECT member FROM {CHANGES} WHERE {REVALUED}")["member"]
    _revalue(database, settings, state, revalued)
    waiting_since = beside["waiting_since"][coded.snapshot_row]
    return state, Batch(coded, rows, old, recoded, unknown, waiting_since, gone, revalued)


def _revalue(database: Database, settings: Settings, state: State, members: NDArray[np.int64]) -> None:
    """Take over the sensitive values of members of which nothing else is new."""
    sensitive = state.microdata.sensitive
    if sensitive is None or not len(members):
        return
    relation = f"(SELECT * FROM {CHANGES} WHERE {REVALUED})"
    selected, joins = reading(database, settings.model, relation, "changed")
    data = database.numpy(f"SELECT member, {', '.join(selected)} FROM {relation} AS changed {' '.join(joins)}")
    found = codes_of(settings.model, data)
    assert found is not None
    sensitive = put_sensitive(sensitive, found, data["member"], len(state.labels))
    state.microdata = replace(state.microdata, sensitive=sensitive)


def _bring_in(call: Call, settings: Settings, state: State, batch: Batch) -> tuple[NDArray[np.bool_], Sequence[str]]:
    """Give classes to the rows that change.

    Returns for those of the snapshot whether they wait afterwards, and warnings.
    """
    state.present[batch.gone] = False
    left_out = state.present & (state.labels == NO_CLASS)  # members that wait are in the batch
    suppressed = left_out[batch.rows] & batch.old & (batch.waiting_since == 0)
    left_out[batch.rows] = suppressed & ~batch.unknown
    arriving = ~batch.unknown & ~suppressed & (batch.recoded | (batch.waiting_since > 0))
    leaving = np.concatenate([batch.gone, batch.rows[batch.old & (batch.recoded | batch.unknown)]])
    warnings = bring_in(call, settings, state, leaving, batch.rows[arriving], np.flatnonzero(left_out))
    state.labels[batch.gone] = NO_CLASS
    placed = state.labels[batch.rows[arriving]] != NO_CLASS
    held_back = settings.maintenance == "append" and not placed.any()
    return batch.unknown | (arriving & held_back & (state.labels[batch.rows] == NO_CLASS)), warnings


def _write_members(
    database: Database,
    number: int,
    settings: Settings,
    state: State,
    batch: Batch,
    waits: NDArray[np.bool_],
    release: int,
) -> None:
    """Write the members that the source has given other values, or no longer has; new ones wait since ``release``."""
    since = np.where(batch.waiting_since > 0, batch.waiting_since, release)
    labels = state.labels[batch.rows]
    leaving = np.concatenate([batch.gone, batch.rows[batch.old], batch.revalued])
    remember_leaving(database, number, settings, leaving)
    remove_members(database, number, np.concatenate([batch.gone, batch.rows[batch.old]]))
    columns = {
        "row": (batch.rows, None),
        "class": (labels, labels == NO_CLASS),
        "waiting_since": (since, ~waits),
    }
    add_members(database, number, settings, batch.coded, columns)
    if len(batch.revalued):
        update_values(database, number, settings, f"(FROM {CHANGES} WHERE {REVALUED})")

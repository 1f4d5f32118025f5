"""The next release of a secure masked view: the changes of the source, brought in by steps that are proved safe.

Whoever has another sensitive or kept value is a person who leaves and another who comes; whoever has other
quasi-identifiers, or returns with the same values, is the same person.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings, standing_warnings
from kanon_duck.catalog.tables import members_table, people_table, tuples_table
from kanon_duck.catalog.views import MaskedView, derived_views
from kanon_duck.intake.encode import EncodedSnapshot
from kanon_duck.intake.hashing import person, tuple_hash
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.capture import GONE, snapshot_changes
from kanon_duck.maintenance.derived_release import load_derived, release_derived, with_former, with_present_bounds
from kanon_duck.maintenance.next_release import (
    draft_release,
    end_changed_classes,
    keep_release,
    move_members,
    release_draft,
)
from kanon_duck.maintenance.secure_series import (
    MANY_WAITING,
    begin_series,
    contents,
    continue_series,
    store_series,
    waiting_members,
)
from kanon_duck.maintenance.state import SecureSeries, State, keep_in_mind, load_state, same_codes, write_codes
from kanon_duck.maintenance.without_release import held
from kanon_duck.release.members import add_members, remove_members, update_waiting
from kanon_duck.release.slots import (
    add_tuples,
    create_tuples,
    has_slots,
    read_bounds,
    read_former,
    read_state,
    tuples_of,
)
from kanon_duck.release.stays import remember_leaving
from kanon_duck.runtime.call import Call, Row
from kanon_duck.secure.people import Changes
from kanon_duck.secure.release import HIDDEN, NOT_WAITING, REASONS
from kanon_duck.secure.state import NONE, SeriesState

Integers = NDArray[np.int64]

MORE_RESERVE = 0.3
"""The reserve that is named as a help."""


@dataclass(frozen=True)
class SecureBatch:
    """The changes of the source, by row numbers of the members.

    Attributes
    ----------
    encoded : EncodedSnapshot
        New rows, changed ones, and those that wait.
    rows : int64, shape (rows of the snapshot,)
        Row number of each, in the encoding's order.
    unknown : bool, same shape
        Whether it has a value that has no place in its domain or hierarchy, so that nobody can be in a class with it.
    waiting_since : int64, same shape
        Since which release its key waits; 0 for one that does not.
    written : int64
        Row numbers of members that are written anew, or are members no more.
    changed : int64
        Row numbers of members, before and now, with other quasi-identifiers.
    changes : Changes
        The same in the terms of the series.
    before : SecureSeries
        The series of the last release.
    series : SecureSeries
        The same with the values of those who come, and the codes that the others had.
    """

    encoded: EncodedSnapshot
    rows: Integers
    unknown: NDArray[np.bool_]
    waiting_since: Integers
    written: Integers
    changed: Integers
    changes: Changes
    before: SecureSeries
    series: SecureSeries


def encode_changes(call: Call, view: MaskedView, settings: Settings, changes: str) -> tuple[State, SecureBatch]:
    """Encode what has changed, from the table of the changes, and put it into the members' arrays."""
    database = call.database
    snapshot = snapshot_changes(database, settings, changes, f"NOT {GONE}")
    state, encoded = load_state(call, view, settings, snapshot)
    before = state.series or load_series(call, view, settings, state)
    add_tuples(database, view.number, settings, snapshot)
    found = database.numpy(
        f"""
        SELECT coalesce(member, -1) AS member, coalesce(waited_since, 0) AS waiting_since, revalued,
               coalesce(people.row, -1) AS former, tuples.value
        FROM (SELECT rowid AS place, member, waited_since, revalued, {person(settings)} AS person,
                     {tuple_hash(settings)} AS hash FROM {snapshot}) AS given
        LEFT JOIN {people_table(view.number)} AS people ON people.person = given.person
        JOIN (SELECT hash, value FROM {tuples_table(view.number)}) AS tuples ON tuples.hash = given.hash
        ORDER BY place
        """
    )
    of_row = {name: values[encoded.snapshot_row] for name, values in found.items()}
    member, revalued = of_row["member"], of_row["revalued"]
    same = (member >= 0) & ~revalued
    rows = np.where(same, member, of_row["former"])
    fresh = rows < 0
    n = len(state.present)
    rows[fresh] = n + np.arange(np.count_nonzero(fresh))
    n += int(np.count_nonzero(fresh))

    recoded = ~same
    recoded[same] = ~same_codes(state, encoded.microdata.take(np.flatnonzero(same)), rows[same])
    unknown = encoded.unknown
    gone = database.numpy(f"SELECT member FROM {changes} WHERE {GONE}")["member"]
    replaced = member[(member >= 0) & revalued]
    left = np.concatenate([gone, replaced, rows[same & unknown]])

    slots = before.slots
    in_play = np.zeros(n, bool)  # whom the series knows as there: in a slot, or waiting for one
    in_play[: len(slots.slot)] = slots.waiting != NONE
    in_play[slots.holder[slots.held()]] = True
    # of those who leave and move, the codes that their cohorts were shown with
    touched = np.concatenate([left, rows[same & recoded & ~unknown]])
    touched = touched[in_play[touched]]
    holding = touched[(slots.slot[touched] != NONE) & (slots.holder[np.maximum(slots.slot[touched], 0)] == touched)]
    codes_before = state.microdata.take(holding)
    state = write_codes(state, encoded.microdata, rows)
    former = n + np.arange(len(holding))
    state = write_codes(state, codes_before, former)
    present = state.present.copy()
    present[former] = False
    present[np.setdiff1d(left, rows)] = False
    state = replace(state, present=present)

    value = np.full(len(present), NONE)
    value[: len(before.value)] = before.value
    value[rows] = of_row["value"]
    series = replace(
        before,
        value=value,
        former=np.concatenate([before.former, former]),
        cohort=np.concatenate([before.cohort, slots.cohort[slots.slot[holding]]]),
        derived=tuple(with_former(each, former, slots.slot[holding]) for each in before.derived),
    )
    known = ~unknown
    arrived = rows[known & ~in_play[rows]]
    moved = rows[known & same & recoded & in_play[rows]]
    written = np.concatenate([gone, member[member >= 0]])
    changed = np.concatenate([replaced, rows[same & recoded]])
    of_series = Changes(left[in_play[left]], arrived, moved)
    return state, SecureBatch(
        encoded, rows, unknown, of_row["waiting_since"], written, changed, of_series, before, series
    )


def load_series(call: Call, view: MaskedView, settings: Settings, state: State) -> SecureSeries:
    """The series as the database has it.

    One that an earlier version made has one release, and is put into the terms of slots now.
    """
    database = call.database
    if has_slots(database, view.number):
        former, cohort = read_former(database, view.number)
        codes = state.microdata.encoding.codes
        slots, value = read_state(database, view.number, view.release, len(codes), codes, (former, cohort))
        derived = tuple(load_derived(call, each, view, slots.slots) for each in derived_views(call, view))
        return SecureSeries(slots, value, former, cohort, derived)
    table = members_table(view.number)
    create_tuples(database, view.number, settings)
    add_tuples(database, view.number, settings, table)
    members = database.numpy(f"SELECT row FROM {table} ORDER BY row")["row"]
    value = np.full(len(state.labels), NONE)
    value[members] = tuples_of(database, view.number, settings, table, "given.row")
    bounds = read_bounds(database, view.number, settings)
    series = begin_series(settings, state.microdata, value, state.labels, bounds, view.release, call.checkpoint)
    store_series(database, view.number, settings, series, state.microdata, None)
    return series


def release_changes(
    call: Call,
    view: MaskedView,
    settings: Settings,
    state: State,
    batch: SecureBatch,
    warnings: list[str],
    cause: str,
    started: float,
) -> Row:
    """Make the next release of the series, or keep the last where readers would see no difference.

    Guarantee: everybody of the release has a certificate, or there is no release.

    Parameters
    ----------
    cause : str
        A refresh looks for splits of the cohorts that something has happened to, any other cause at all of them.
    """
    database, before = call.database, state.labels
    call.phase("clustering")
    derived = with_present_bounds(call, view, batch.series.derived)
    bounds = read_bounds(database, view.number, settings)
    bounds = replace(bounds, derived=tuple(each.unions for each in derived))
    changes = batch.changes if cause == "refresh" else _with_somebody_of_each(batch.changes, batch.before)
    series = replace(batch.series, derived=derived)
    series, made = continue_series(settings, series, state.microdata, changes, bounds, call.checkpoint)
    state = replace(state, labels=series.slots.classes(), series=series)
    if np.all(state.labels == NO_CLASS):
        return held(call, view, settings.model)
    call.phase("writing")
    draft = draft_release(call, view, settings, state, before, batch.changed, cause, started, contents=contents(series))
    if not draft.shows_difference:  # no release: what happens next, happens in the release of this number
        series = replace(series, slots=replace(series.slots, release=view.release))
        draft = replace(draft, state=replace(draft.state, series=series))
    ended = end_changed_classes(draft) if draft.shows_difference else None
    leaving = remember_leaving(database, view.number, settings, batch.written)
    remove_members(database, view.number, batch.written)
    labels = state.labels[batch.rows]
    since = np.where(batch.waiting_since > 0, batch.waiting_since, draft.release)
    columns = {
        "row": (batch.rows, None),
        "class": (labels, labels == NO_CLASS),
        "waiting_since": (since, ~batch.unknown),
    }
    add_members(database, view.number, settings, batch.encoded, columns)
    move_members(draft, batch.rows)
    update_waiting(database, view.number, waiting_members(series.slots, made.reason))
    store_series(database, view.number, settings, series, state.microdata, batch.before)
    if ended is None:
        row = keep_release(draft)
    else:
        advice = _advice(settings, series.slots, made.reason)
        row = release_draft(
            draft, ended, leaving, standing_warnings(settings) + warnings + batch.encoded.warnings + advice
        )
    derived = release_derived(draft, series)
    keep_in_mind(call, replace(draft.state, series=replace(series, derived=derived)))
    return row


def nothing_changed(encoded: EncodedSnapshot, series: SecureSeries) -> SecureBatch:
    """A batch of no changes, from a snapshot of no rows."""
    none = np.empty(0, np.int64)
    return SecureBatch(encoded, none, np.empty(0, bool), none, none, none, Changes(), series, series)


def _with_somebody_of_each(changes: Changes, series: SecureSeries) -> Changes:
    """The same changes, and that somebody of each cohort has moved nowhere: so all of them are looked at."""
    slots = series.slots
    held = np.flatnonzero(slots.held())
    _, first = np.unique(slots.cohort[held], return_index=True)
    somebody = np.setdiff1d(slots.holder[held[first]], changes.left)
    return replace(changes, moved=np.union1d(changes.moved, somebody))


def _advice(settings: Settings, slots: SeriesState, reason: Integers) -> list[str]:
    """Why people wait and which option would help, with its price, where many do."""
    waiting, shown = np.count_nonzero(reason != NOT_WAITING), np.count_nonzero(slots.classes() >= 0)
    if waiting <= MANY_WAITING * (waiting + shown):
        return []
    counts = np.bincount(reason, minlength=len(REASONS))
    why = "; ".join(
        f"{counts[code]}: {REASONS[code]}" for code in np.argsort(-counts) if code != NOT_WAITING and counts[code]
    )
    if counts[HIDDEN] > waiting / 2:
        rows = int(np.count_nonzero(slots.hiding(True) & slots.living()[slots.cohort]))
        remedy = f"a view made with on_delete => 'counterfeit' would show them, at the price of {rows} rows of nobody"
    elif settings.reserve == 0:
        rows = round(MORE_RESERVE * int(np.count_nonzero(slots.living())))
        remedy = f"a view made with reserve => {MORE_RESERVE} lets more in, at the price of about {rows} rows of nobody"
    else:
        remedy = "a rebuild with a lower patience places them sooner, at the price of classes that lose more"
    return [f"{waiting} people wait, {waiting / (waiting + shown):.1%} of all ({why}): {remedy}"]

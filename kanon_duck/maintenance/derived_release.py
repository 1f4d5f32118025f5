"""Releases of a masked view that is derived from a secure one: the same releases, its classes united.

A derived view has tables of members, slots and classes of its own, as they are in its last release. What goes on from
release to release is its parent's series, and which union each slot belongs to.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.catalog.derived import Derivation
from kanon_duck.catalog.settings import Settings, standing_warnings
from kanon_duck.catalog.tables import members_table
from kanon_duck.catalog.views import (
    MaskedView,
    derived_views,
    new_version,
    record_release,
    record_settings,
    record_state,
    release_row,
    settings_as_made,
    stored_settings,
)
from kanon_duck.errors import KanonError
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.next_release import Draft, draft_release, end_changed_classes, release_draft
from kanon_duck.maintenance.secure_series import MANY_WAITING, as_derived_shows, contents, store_former
from kanon_duck.maintenance.state import DerivedSeries, SecureSeries, State, keep_in_mind
from kanon_duck.release.classes import create_classes, create_diversity, end_no_classes, weigh_classes, with_contents
from kanon_duck.release.generalization import generalize
from kanon_duck.release.history import create_history
from kanon_duck.release.make_current import PeopleCounts, describe_release, make_current
from kanon_duck.release.members import held_back
from kanon_duck.release.slots import read_bounds, read_former, read_unions, write_released_slots, write_unions
from kanon_duck.release.stays import create_membership, remember_leaving
from kanon_duck.runtime import shortfalls
from kanon_duck.runtime.arrow import numbers, texts
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database
from kanon_duck.secure.state import NONE
from kanon_duck.secure.union_forming import form_unions, no_unions
from kanon_duck.secure.unions import union_of_slots

Integers = NDArray[np.int64]

NO_UNION, HIDDEN_WITH_ANOTHER = 0, 1
REASONS = (
    "its class is new, and with the other new ones too small or too little diverse for this view",
    "a class that it is shown with here lost somebody: they are not shown until the empty place is filled",
)
"""Why somebody is in a release of the parent and not in that of the derived view."""


def load_derived(call: Call, view: MaskedView, parent: MaskedView, slots: int) -> DerivedSeries:
    """What the database has of a derived view, over some number of slots of its parent."""
    bounds = read_bounds(call.database, parent.number, stored_settings(call, view)[1])
    unions = read_unions(call.database, view.number, slots, bounds)
    return DerivedSeries(view.number, unions, *read_former(call.database, view.number))


def with_former(derived: DerivedSeries, former: Integers, slots: Integers) -> DerivedSeries:
    """A derived view with codes, by row number, that people had in some slots."""
    union = derived.unions.union[slots]
    kept = union != NONE
    return replace(
        derived,
        former=np.concatenate([derived.former, former[kept]]),
        cohort=np.concatenate([derived.cohort, union[kept]]),
    )


def with_present_bounds(
    call: Call, parent: MaskedView, derived: tuple[DerivedSeries, ...]
) -> tuple[DerivedSeries, ...]:
    """Derived views with bounds that know all values that there are now."""
    views = {view.number: view for view in derived_views(call, parent)}
    return tuple(
        replace(
            each,
            unions=replace(
                each.unions,
                bounds=read_bounds(call.database, parent.number, stored_settings(call, views[each.view_number])[1]),
            ),
        )
        for each in derived
    )


def first_derived_release(
    call: Call, made: Derivation, number: int, state: State, series: SecureSeries, warnings: list[str]
) -> Row:
    """Unite the classes of the parent's present release, and make that the release of the same number.

    Parameters
    ----------
    number : int
        The derived view's.
    state, series
        The parent's.

    Raises
    ------
    KanonError
        When its classes, all together, do not satisfy the models.
    """
    started = time.perf_counter()
    database, settings, parent, release = call.database, made.settings, made.parent, made.parent.release
    call.phase("clustering")
    bounds = read_bounds(database, parent.number, settings)
    unions = form_unions(series.slots, no_unions(bounds), state.microdata.encoding, call.checkpoint)
    none = np.empty(0, np.int64)
    derived = DerivedSeries(number, unions, none, none)
    seen = as_derived_shows(settings, series, derived, state.microdata)
    labels = seen.slots.classes()
    if np.all(labels == NO_CLASS):
        raise KanonError(
            f"k is {settings.model.k}, but not even all classes of release {release} of {parent.name} together satisfy "
            "the models: name lower ones"
        )
    call.phase("writing")
    database.execute(f"CREATE TABLE {members_table(number)} AS FROM {members_table(parent.number)} LIMIT 0")
    _write(database, number, parent.number, state, series, seen, release)
    write_unions(database, number, unions)
    store_former(database, number, seen, state.microdata)
    held = contents(seen)
    classes = generalize(state.microdata, labels)
    people = held.people if settings.has_counterfeits else None
    classes = with_contents(classes, np.arange(len(classes.sizes)), held.rows, people)
    create_classes(database, number, state.microdata, classes, release)
    if settings.has_counterfeits:
        weigh_classes(database, number, release)
    call.phase("releasing")
    warnings = standing_warnings(settings) + warnings + make_current(call, number, settings, release, True)
    create_history(database, settings)
    create_membership(database, number, settings)
    create_diversity(database, number, settings)
    version = record_settings(made.call, number, settings, settings_as_made(database, parent))
    waiting, suppressed = held_back(database, number)
    record_state(database, number, status="current", reason=None, waiting=waiting)
    counts = PeopleCounts(
        inserted=int(np.count_nonzero(labels != NO_CLASS)),
        waiting=waiting,
        suppressed=suppressed,
        counterfeits=held.counterfeits,
    )
    row, losses = describe_release(database, number, settings, release, "create", counts)
    row |= {
        "vulnerable_rows": 0,  # everybody of the release has a certificate
        "settings_version": version,
        "warnings": warnings,
        "seconds": time.perf_counter() - started,
    }
    record_release(database, number, row, losses)
    # what other processes remember of the parent does not know of the derived view
    version_of_members = new_version()
    record_state(database, parent.number, members_version=version_of_members)
    series = replace(series, derived=(*series.derived, derived))
    keep_in_mind(call, replace(state, version=version_of_members, series=series))
    return release_row(database, settings.name, release)


def release_derived(parent: Draft, series: SecureSeries) -> tuple[DerivedSeries, ...]:
    """Release all derived views as their parent has been released, or kept; returns what later releases need.

    Guarantee: what a derived view shows follows from what its parent has shown, and from which classes are united.

    Parameters
    ----------
    parent : Draft
    series : SecureSeries
        The parent's after the release.
    """
    call, views = parent.call, {view.number: view for view in derived_views(parent.call, parent.view)}
    released = []
    for derived in series.derived:
        if parent.shows_difference:
            microdata = parent.state.microdata
            unions = form_unions(series.slots, derived.unions, microdata.encoding, call.checkpoint)
        else:
            unions = replace(derived.unions, union=union_of_slots(series.slots, derived.unions))
        view = views[derived.view_number]
        settings = stored_settings(call, view)[1]
        seen = as_derived_shows(settings, series, replace(derived, unions=unions), parent.state.microdata)
        write_unions(call.database, view.number, unions)
        store_former(call.database, view.number, seen, parent.state.microdata)
        _release(parent, view, settings, series, seen)
        released.append(DerivedSeries(view.number, unions, seen.former, seen.cohort))
    return tuple(released)


def _release(parent: Draft, view: MaskedView, settings: Settings, series: SecureSeries, seen: SecureSeries) -> None:
    """Make the release of one derived view, or say why readers keep its last."""
    call, database = parent.call, parent.call.database
    labels = seen.slots.classes()
    if np.all(labels == NO_CLASS):
        reason = f"every class has lost somebody: release {view.release} stays until the empty places of one are filled"
        shortfalls.note(view.name)
        record_state(database, view.number, status="held", reason=reason)
        return
    before, changed, leaving = _differences(database, view.number, parent.view.number, len(labels))
    state = replace(parent.state, labels=labels, series=seen)
    draft = draft_release(
        call, view, settings, state, before, changed, parent.cause, parent.started, contents=contents(seen)
    )
    draft = replace(draft, release=parent.release)
    if draft.shows_difference and not parent.shows_difference:
        return
    ended = (
        end_changed_classes(draft) if draft.shows_difference else end_no_classes(database, view.number, draft.release)
    )
    left = remember_leaving(database, view.number, settings, leaving)
    _write(database, view.number, parent.view.number, state, series, seen, draft.release)
    if parent.shows_difference:
        release_draft(draft, ended, left, standing_warnings(settings) + _advice(parent.view, series, seen))
    else:
        record_state(database, view.number, waiting=held_back(database, view.number)[0])


def _advice(parent: MaskedView, series: SecureSeries, seen: SecureSeries) -> list[str]:
    """What would help, where many wait who are in the parent's release."""
    shown, in_parent = seen.slots.classes() != NO_CLASS, series.slots.classes() != NO_CLASS
    waits = in_parent & ~shown
    waiting, people = np.count_nonzero(waits), np.count_nonzero(in_parent)
    if waiting <= MANY_WAITING * people:
        return []
    hidden = np.count_nonzero(waits & (seen.slots.slot != NONE))
    if hidden > waiting / 2:
        remedy = f"if {parent.name} had been made with on_delete => 'counterfeit', none of them would be hidden"
    else:
        remedy = "a view that derives with a lower k or l shows new classes sooner"
    return [f"{waiting} people wait who are in {parent.name}, {waiting / people:.1%} of all there: {remedy}"]


def _differences(database: Database, view_number: int, parent: int, rows: int) -> tuple[Integers, Integers, Integers]:
    """How the members of a derived view, as they are in its last release, differ from those of its parent.

    Returns
    -------
    before : int64, shape (rows,)
        The class of each row number in the last release, -1 for none.
    changed, leaving : int64
        Row numbers with other quasi-identifiers than before, and these with those that are gone.
    """
    data = database.numpy(
        "SELECT old.row, coalesce(old.class, -1) AS class, new.row IS NULL AS gone, "
        "new.row IS NOT NULL AND (new.quasi_hash, new.other_hash) <> (old.quasi_hash, old.other_hash) AS changed "
        f"FROM {members_table(view_number)} AS old LEFT JOIN {members_table(parent)} AS new USING (row)"
    )
    before = np.full(rows, NO_CLASS)
    before[data["row"]] = data["class"]
    return before, data["row"][data["changed"]], data["row"][data["changed"] | data["gone"]]


def _write(
    database: Database,
    view_number: int,
    parent: int,
    state: State,
    series: SecureSeries,
    seen: SecureSeries,
    release: int,
) -> None:
    """Write members and slots of a derived view as they are in a release, from those of its parent."""
    rows = np.flatnonzero(state.present)
    labels, in_parent = seen.slots.classes()[rows], series.slots.classes()[rows]
    waits = (labels == NO_CLASS) & (in_parent != NO_CLASS)
    reason = np.where(seen.slots.slot[rows] == NONE, NO_UNION, HIDDEN_WITH_ANOTHER)
    columns = {
        "row": numbers(rows),
        "label": numbers(labels, labels == NO_CLASS),
        "own_reason": texts(REASONS).take(numbers(reason, ~waits)),
    }
    database.register("members_of_unions", pa.table(columns))
    table = members_table(view_number)
    database.execute(
        f"CREATE OR REPLACE TABLE {table} AS SELECT members.* REPLACE (label AS class, CASE "
        "WHEN label IS NULL AND (own_reason IS NOT NULL OR members.waiting_since IS NOT NULL) "
        f"THEN coalesce(before.waiting_since, members.waiting_since, {int(release)}) END AS waiting_since, "
        "CASE WHEN label IS NULL THEN coalesce(own_reason, members.waiting_reason) END AS waiting_reason) "
        f"FROM {members_table(parent)} AS members JOIN members_of_unions USING (row) LEFT JOIN "
        f"(SELECT row, waiting_since FROM {table} WHERE waiting_since IS NOT NULL) AS before USING (row)"
    )
    database.unregister("members_of_unions")
    write_released_slots(database, view_number, parent, seen.slots)

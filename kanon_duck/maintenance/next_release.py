"""Makes the next release from members whose classes have changed.

`draft_release` says what the next release will be. Where readers will see a difference, `end_changed_classes` keeps
what the last release needs of the members as they were. Then the caller writes the members, and `release_draft`
releases them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table
from kanon_duck.catalog.views import MaskedView, new_version, record_release, record_state, release_row
from kanon_duck.inference.own_history import count_vulnerable
from kanon_duck.intake.kept_columns import rare_kept_values
from kanon_duck.maintenance.changes import changes, classes_in, people, rows_of
from kanon_duck.maintenance.drift import rebuild_recommended
from kanon_duck.maintenance.state import State
from kanon_duck.maintenance.without_release import no_release
from kanon_duck.release.classes import (
    Ended,
    add_classes,
    remove_ended_classes,
    replace_diversity,
    weigh_classes,
    with_contents,
    with_look_alikes,
)
from kanon_duck.release.generalization import generalize
from kanon_duck.release.history import keep_history
from kanon_duck.release.make_current import PeopleCounts, describe_release, make_changes_current
from kanon_duck.release.members import held_back, update_members
from kanon_duck.release.stays import end_versions, purge
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database

MUCH_MORE_LOSS = 1.1
"""Loss of a row, beside that after the last rebuild, from which on the owner of a secure view hears of it."""


@dataclass(frozen=True)
class Contents:
    """What the classes of a secure release hold.

    Attributes
    ----------
    covered : int64, shape (n,)
        The class that shows each row number's codes: members, and codes that cohorts once held.
    rows, people : int64, shape (classes,)
        Rows and people of each class, by its number.
    counterfeits : int
        Rows of nobody in all classes.
    """

    covered: NDArray[np.int64]
    rows: NDArray[np.int64]
    people: NDArray[np.int64]
    counterfeits: int


@dataclass(frozen=True)
class Draft:
    """What the next release of a masked view will be.

    Attributes
    ----------
    call, view, settings
    state : State
        The members as they will be, under a new version.
    before : int64, shape (n,)
        Their classes in the last release, -1 for one in none.
    changed : int64
        Row numbers of members of before that have other values now.
    touched : int64
        Rising numbers of the classes, old and new, that the release changes for readers; none: readers would see no
        difference, and there is no release.
    cause : str
    started : float
        When the call began.
    release : int
        Number of the release that the members will be in: the next, or the last where there is no next.
    contents : Contents or None
        Of the classes, where they are not just their members.
    """

    call: Call
    view: MaskedView
    settings: Settings
    state: State
    before: NDArray[np.int64]
    changed: NDArray[np.int64]
    touched: NDArray[np.int64]
    cause: str
    started: float
    release: int
    contents: Contents | None = None

    @property
    def shows_difference(self) -> bool:
        """Whether there will be a release."""
        return len(self.touched) > 0


def draft_release(
    call: Call,
    view: MaskedView,
    settings: Settings,
    state: State,
    before: NDArray[np.int64],
    changed: NDArray[np.int64],
    cause: str,
    started: float,
    contents: Contents | None = None,
) -> Draft:
    """Say which classes the next release changes; for the parameters see `Draft`."""
    after = state.labels
    touched = classes_in(changes(before, after).touched, after[changed])
    if len(touched):
        if state.levels is not None:  # all classes show the same levels, which may be others than before
            touched = classes_in(before, after)
        touched = classes_in(touched, with_look_alikes(call.database, view.number, touched))
    state = replace(state, version=new_version())
    release = view.release + (len(touched) > 0)
    return Draft(call, view, settings, state, before, changed, touched, cause, started, release, contents)


def end_changed_classes(draft: Draft) -> Ended:
    """Generalize the changed classes beside those that end, and keep what the last release needs of the latter.

    The table of members still has the members as they were. Cost: that of the classes that change.
    """
    call, database, view_number = draft.call, draft.call.database, draft.view.number
    call.phase("generalizing")
    contents, covered = draft.contents, draft.state.labels
    if contents is not None:
        covered = contents.covered
    rows = rows_of(draft.touched, covered)
    numbers, dense = np.unique(covered[rows], return_inverse=True)
    microdata = draft.state.microdata.take(rows)
    classes = generalize(microdata, dense, draft.state.levels)
    if contents is not None:
        people = contents.people if draft.settings.has_counterfeits else None
        classes = with_contents(classes, numbers, contents.rows, people)
    call.phase("releasing")
    ended = add_classes(database, view_number, microdata, classes, numbers, draft.touched, draft.release)
    keep_history(database, draft.settings, ended)
    end_versions(database, draft.settings, ended)
    return ended


def move_members(draft: Draft, written: NDArray[np.int64]) -> None:
    """Give members whose class is another than before that class, but for those whose row numbers are written anew."""
    moved = (draft.before != draft.state.labels) & draft.state.present
    moved[written] = False
    rows = np.flatnonzero(moved)
    if len(rows):
        update_members(draft.call.database, draft.view.number, rows, draft.state.labels[rows])


def release_draft(draft: Draft, ended: Ended, leaving: str, warnings: list[str]) -> Row:
    """Release what has been drafted, from members that are written already.

    Parameters
    ----------
    draft : Draft
    ended : Ended
        From `end_changed_classes`.
    leaving : str
        From `remember_leaving`.
    warnings : list of str

    Returns
    -------
    dict
        Its row of ``kanon.releases``.
    """
    call, view, settings, release = draft.call, draft.view, draft.settings, draft.release
    database, view_number = call.database, view.number
    remove_ended_classes(database, ended)
    if settings.has_counterfeits:
        weigh_classes(database, view_number, release)
    warnings = warnings + make_changes_current(call, settings, ended)
    replace_diversity(database, settings, ended)

    is_changed = np.zeros(len(draft.before), bool)
    is_changed[draft.changed] = True
    call.phase("comparing releases")
    waiting, suppressed = held_back(database, view_number)
    moved = people(draft.before, draft.state.labels, is_changed)
    counterfeits = 0 if draft.contents is None else draft.contents.counterfeits
    counts = PeopleCounts(**moved, waiting=waiting, suppressed=suppressed, counterfeits=counterfeits)
    row, losses = describe_release(database, view_number, settings, release, draft.cause, counts)
    if view.secure:
        row["vulnerable_rows"] = 0  # everybody of the release has a certificate
        warnings = warnings + loss_beside_rebuild(database, view, row)
        purge(database, view_number, settings, leaving)
    else:
        row["vulnerable_rows"], uncounted = count_vulnerable(call, view_number, settings, release, near=True)
        warnings = warnings + uncounted
        purge(database, view_number, settings, leaving)
    released = f"(FROM {members_table(view_number)} WHERE class IS NOT NULL)"
    row |= {
        "settings_version": view.settings_version,
        "warnings": warnings + rare_kept_values(database, settings, released),
        "seconds": time.perf_counter() - draft.started,
    }
    record_release(database, view_number, row, losses)
    recommended = rebuild_recommended(database, view, draft.state)
    record_state(
        database,
        view_number,
        members_version=draft.state.version,
        status="current",
        reason=None,
        refresh_recommended=recommended,
        waiting=waiting,
    )
    return release_row(database, view.name, release)


def loss_beside_rebuild(database: Database, view: MaskedView, row: Row) -> list[str]:
    """What safety has cost since classes were last made from scratch, where it is much."""
    found = database.records(
        "SELECT release, information_loss_per_row AS loss FROM kanon.releases "
        "WHERE view_name = ? AND cause IN ('create', 'rebuild') ORDER BY release DESC LIMIT 1",
        [view.name],
    )
    loss = row["information_loss_per_row"]
    if not found or found[0]["loss"] <= 0 or loss <= MUCH_MORE_LOSS * found[0]["loss"]:
        return []
    kept = "a derived view are not" if view.derive_from is not None else "a secure view are split, but not"
    return [
        f"a row loses {loss:.3g}, beside {found[0]['loss']:.3g} in release {found[0]['release']}, the last create or "
        f"rebuild: classes of {kept} made anew"
    ]


def keep_release(draft: Draft) -> Row:
    """Leave the last release as it is, since readers would see no difference; returns its row."""
    waiting, _ = held_back(draft.call.database, draft.view.number)
    reason = "nothing that readers see has changed: no new release" + (f" ({waiting} rows wait)" if waiting else "")
    return no_release(
        draft.call,
        draft.view,
        "unchanged",
        [reason],
        waiting=waiting,
        members_version=draft.state.version,
        status="current",
        reason=None,
    )

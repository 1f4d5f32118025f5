"""The release that follows: from members whose classes have changed to what readers see."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.views import MaskedView, members_table, new_version, record_release, record_state, release_row
from kanon_duck.inference.own_history import count_vulnerable
from kanon_duck.intake.kept_columns import rare_kept_values
from kanon_duck.maintenance.changes import changes, classes_in, people, rows_of
from kanon_duck.maintenance.drift import rebuild_recommended
from kanon_duck.maintenance.state import State, keep_in_mind
from kanon_duck.maintenance.without_release import no_release
from kanon_duck.release.classes import add_classes, remove_ended_classes, replace_diversity, with_look_alikes
from kanon_duck.release.generalization import generalize
from kanon_duck.release.history import keep_history
from kanon_duck.release.members import held_back, update_members
from kanon_duck.release.publish import Counts, describe_release, publish_changes
from kanon_duck.release.stays import end_versions, purge
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database


def succeed(
    call: Call,
    view: MaskedView,
    settings: Settings,
    state: State,
    before: NDArray[np.int64],
    changed: NDArray[np.int64],
    write: Callable[[int], None],
    cause: str,
    warnings: list[str],
    started: float,
) -> Row:
    """Release what the members' classes have become; where readers would see no difference, there is no release.

    Cost: that of the classes that have changed.

    Parameters
    ----------
    call, view, settings
    state : State
        The members as they are now.
    before : int64, shape (n,)
        Their classes in the last release, -1 for one in none.
    changed : int64
        Row numbers of members of before that have other values now.
    write : function
        Brings the table of members up to date, once what the release before needs of it is kept. Told the release
        that follows, or that before where nothing has changed for readers.
    cause, warnings
        Of the release.
    started : float
        When the call began.

    Returns
    -------
    dict
        The release's row of ``kanon.releases``, or that of the last.
    """
    database, number, after = call.database, view.number, state.labels
    touched = classes_in(changes(before, after).touched, after[changed])
    state.version = new_version()
    stays: dict[str, Any] = {"members_version": state.version, "status": "current", "reason": None}
    keep_in_mind(call, state)
    if not len(touched):
        write(view.release)
        waiting, _ = held_back(database, number)
        told = "nothing that readers see has changed: no new release"
        told += f" ({waiting} rows wait)" if waiting else ""
        return no_release(call, view, "unchanged", [told], False, waiting=waiting, **stays)

    call.phase("generalizing")
    if state.levels is not None:  # all classes show the same levels, which may be others than before
        touched = classes_in(before, after)
    touched = classes_in(touched, with_look_alikes(database, number, touched))
    rows = rows_of(touched, after)
    numbers, dense = np.unique(after[rows], return_inverse=True)
    microdata = state.microdata.take(rows)
    classes = generalize(microdata, dense, state.levels)
    call.phase("publishing")
    release = view.release + 1
    add_classes(database, number, microdata, classes, numbers, touched, release)
    keep_history(database, settings, number, release)
    end_versions(database, number, settings, release)
    write(release)
    remove_ended_classes(database, number, release)
    publish_changes(database, number, settings, release)
    replace_diversity(database, number, settings, release)

    is_changed = np.zeros(len(after), bool)
    is_changed[changed] = True
    call.phase("comparing releases")
    waiting, suppressed = held_back(database, number)
    counts = Counts(**people(before, after, is_changed), waiting=waiting, suppressed=suppressed)
    released = f"(FROM {members_table(number)} WHERE class IS NOT NULL)"
    row, losses = describe_release(database, number, settings, release, cause, counts)
    if not view.secure:
        row["vulnerable_rows"], uncounted = count_vulnerable(call, number, settings, release, near=True)
        warnings = warnings + uncounted
        purge(database, number, settings)
    row |= {
        "settings_version": view.settings_version,
        "warnings": warnings + rare_kept_values(database, settings, released),
        "seconds": time.perf_counter() - started,
    }
    record_release(database, number, row, losses)
    recommended = rebuild_recommended(database, view, state)
    record_state(database, number, refresh_recommended=recommended, waiting=waiting, **stays)
    return release_row(database, view.name, release)


def move_members(
    database: Database, number: int, state: State, before: NDArray[np.int64], written: NDArray[np.int64]
) -> None:
    """Give members whose class is another than before that class, but for those whose row numbers are written anew."""
    moved = (before != state.labels) & state.present
    moved[written] = False
    rows = np.flatnonzero(moved)
    if len(rows):
        update_members(database, number, rows, state.labels[rows])

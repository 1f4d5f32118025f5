"""One release of a secure series after the other.

Guarantee: a release is returned only if `kanon_duck.secure.certificates.verify` finds a certificate for everybody who
has ever been in one; else `UncertifiedError` is raised, and the state is as before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.box import fill_boxes
from kanon_duck.runtime.parallel import Checkpoint, part
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import verify
from kanon_duck.secure.departures import take_away
from kanon_duck.secure.people import Changes, let_movers_leave, let_return, vacate
from kanon_duck.secure.placing import crowding, find_plan, newcomers, no_cohorts
from kanon_duck.secure.plan import Plan, carry_out
from kanon_duck.secure.pool import find_places
from kanon_duck.secure.prices import HIDDEN_PRICE, PLACED_PRICE, in_units, mean_loss
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.splits import changed_cohorts, split_cohorts
from kanon_duck.secure.state import NONE, SeriesState, empty_state, own_copy, with_people

Integers = NDArray[np.int64]

NOT_WAITING, NO_GROUP, HIDDEN, NO_HOME = 0, 1, 2, 3
REASONS = (
    "",
    "not enough newcomers like it",
    "its class lost somebody and is not shown until the empty place is filled",
    "was in an earlier release, and no place of its value keeps what is possible for it",
)
"""Why somebody is not in a release, by code."""


@dataclass(frozen=True)
class Release:
    """A release, and what later ones need.

    Attributes
    ----------
    state : SeriesState
    reason : int64, shape (people,)
        Why each is not shown, as an index into ``REASONS``; NOT_WAITING for those who are shown or not there.
    counterfeits : int
        Rows without a person.
    """

    state: SeriesState
    reason: Integers
    counterfeits: int


def first_release(
    encoding: Encoding,
    value: Integers,
    labels: Integers,
    bounds: Bounds,
    settings: SeriesSettings,
    seed: int,
    checkpoint: Checkpoint,
) -> Release:
    """Begin a series with the classes of a clustering, improved by annealing unless the effort is 0.

    Parameters
    ----------
    encoding : Encoding
        Of all people.
    value : int64, shape (people,)
        Code of the tuple of sensitive and kept values.
    labels : int64, shape (people,)
        Class of each, which satisfies the bounds; -1 for one who waits.
    bounds : Bounds
    settings : SeriesSettings
    seed : int
    checkpoint : function
        See ``parallel.run``.

    Raises
    ------
    UncertifiedError
        When a class does not satisfy the bounds.
    """
    state = with_people(empty_state(encoding.codes.shape[1], encoding.codes.dtype), encoding.rows)
    state = replace(state, release=1)
    person = np.flatnonzero(labels >= 0)
    state.waiting[:] = 1
    if len(person):
        groups = np.unique(labels[person], return_inverse=True)[1].astype(np.int64)
        state = replace(state, unit=mean_loss(encoding, *_boxes(encoding, person, groups)))
        if settings.effort > 0:
            waiting = newcomers(person, value[person], np.full(len(person), PLACED_PRICE))
            _, groups = find_places(
                in_units(encoding, state.unit), waiting, no_cohorts(encoding), bounds, HIDDEN_PRICE, crowding(settings),
                settings.effort, seed, checkpoint, groups,
            )  # fmt: skip
        nowhere = np.full(len(person), NONE)
        plan = Plan(person, np.where(groups >= 0, groups, NONE), nowhere, nowhere)
        state = carry_out(state, value, plan.take(groups >= 0), bounds, settings, np.random.default_rng([seed, 1]))
    state = _with_boxes(state, encoding, state.slot[:0])
    return _finish(state, bounds, settings)


def next_release(
    state: SeriesState,
    encoding: Encoding,
    value: Integers,
    changes: Changes,
    bounds: Bounds,
    settings: SeriesSettings,
    seed: int,
    checkpoint: Checkpoint,
) -> Release:
    """Bring changes into a series.

    Parameters
    ----------
    state : SeriesState
        Of the last release; it is not changed.
    encoding : Encoding
        Of all people there ever were, with the new ones behind the old ones.
    value : int64, shape (people,)
    changes : Changes
    bounds : Bounds
        Those of the series; there may be more tuples.
    settings : SeriesSettings
    seed : int
    checkpoint : function

    Raises
    ------
    UncertifiedError
        When somebody would have no certificate.
    """
    state = own_copy(with_people(state, encoding.rows))
    state = replace(state, release=state.release + 1)
    if state.unit == 0.0:
        people = np.bincount(state.cohort[state.held()], minlength=state.cohorts)
        state = replace(state, unit=mean_loss(encoding, state.low, state.high, people))
    encoding = in_units(encoding, state.unit)
    vacate(state, changes.left)
    state.waiting[changes.left] = NONE
    state.waiting[changes.arrived] = state.release
    if settings.on_delete == "remove":
        state = split_cohorts(state, encoding, bounds, True, changed_cohorts(state, changes.moved))
    let_movers_leave(state, encoding, settings, changes.moved)
    let_return(state, encoding, settings)
    plan, ways_in = find_plan(state, encoding, value, bounds, settings, seed, part(checkpoint, 0.0, 0.9))
    state = carry_out(state, value, plan, bounds, settings, np.random.default_rng([seed, 1]))
    state = take_away(state, bounds, ways_in, settings.hides)
    state = _with_boxes(state, encoding, changes.moved)
    state = split_cohorts(state, encoding, bounds, settings.hides, changed_cohorts(state, changes.moved))
    return _finish(state, bounds, settings)


def _boxes(
    encoding: Encoding, person: Integers, groups: Integers
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], Integers]:
    """Boxes of groups from 0, and how many people each has."""
    low = np.full((int(groups.max()) + 1, encoding.codes.shape[1]), np.iinfo(encoding.codes.dtype).max)
    low = low.astype(encoding.codes.dtype)
    high, people = np.zeros_like(low), np.zeros(len(low), np.int64)
    fill_boxes(encoding.codes.take(person, axis=0), groups, 0, low, high, people)
    return low, high, people


def _with_boxes(state: SeriesState, encoding: Encoding, moved: Integers) -> SeriesState:
    """Widen the boxes of cohorts by the people who have come or moved: they never shrink here."""
    new = state.since == state.release
    new[moved] = True
    held = np.flatnonzero(state.held())
    held = held[new[state.holder[held]]]
    codes = encoding.codes[state.holder[held]]
    low, high = state.low.copy(), state.high.copy()
    np.minimum.at(low, state.cohort[held], codes)
    np.maximum.at(high, state.cohort[held], codes)
    return replace(state, low=low, high=high)


def _finish(state: SeriesState, bounds: Bounds, settings: SeriesSettings) -> Release:
    """Say what is shown and why others wait, and refuse what is not certified."""
    verify(state, bounds)
    held = state.held()
    shown = state.showing(settings.hides)
    state = replace(state, shown=shown)
    reason = np.full(len(state.slot), NOT_WAITING)
    waits = state.waiting != NONE
    reason[waits] = np.where(state.slot[waits] == NONE, NO_GROUP, NO_HOME)
    reason[state.holder[held & ~shown[state.cohort]]] = HIDDEN
    counterfeits = int(np.count_nonzero(~held & ~state.gone() & shown[state.cohort]))
    return Release(state, reason, counterfeits)

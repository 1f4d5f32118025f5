"""Empty slots that are taken away when another slot of their cohort gets a new holder.

Guarantee: a slot is taken away only if everybody keeps a certificate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.kernels.secure_pool import GOES_WITH_ANY, MOST_DOORS, STAYS
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import failures, offer, offered_by_originals, sound_cohorts
from kanon_duck.secure.people import claimed, sound_without
from kanon_duck.secure.state import NONE, SeriesState, own_copy

Integers = NDArray[np.int64]

ROUNDS = 6
"""Times that one slot of each unsound cohort is kept, before all of them are."""


def candidates(state: SeriesState, planned: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which slots may be taken away beside a witness, as far as their cohort can do without them.

    Guarantee: they are empty, nobody who held one has held another or waits to, and they are no witnesses. They
    are original slots, or company that has not parted from its witness.
    """
    empty = ~state.held() & ~state.never_held() & ~state.gone() & state.living()[state.cohort]
    return empty & planned & ~state.witnesses() & ~state.parted()


def what_goes(
    state: SeriesState, bounds: Bounds, planned: NDArray[np.bool_], empties: Integers, ways_in: Integers
) -> Integers:
    """Of each empty slot, the door beside which it can be taken away: see ``Cohorts``."""
    may = candidates(state, planned)
    base = may & (state.witness == NONE)
    without = offer(state, bounds, planned & ~base)
    slots = np.flatnonzero(base)
    sound = sound_cohorts(state, bounds, without)[state.cohort[slots]]
    replaced = without.count(state.cohort[slots], state.value[slots]) > 0
    # where not all can go, those whose value others have, if enough rows are left
    rows = np.bincount(state.cohort[planned & state.base()], minlength=state.cohorts)
    rows -= np.bincount(state.cohort[slots[replaced]], minlength=state.cohorts)
    goes_with = np.full(state.slots, STAYS)
    can = sound | (replaced & (rows[state.cohort[slots]] >= bounds.k))
    goes_with[slots[can]] = GOES_WITH_ANY
    # company whose value is offered goes with any door too, other company with the one that it came beside
    first = np.searchsorted(state.cohort[empties], state.cohort[empties])
    place = np.full(state.slots, STAYS)
    place[empties] = np.arange(len(empties)) - first
    place[place >= MOST_DOORS] = STAYS
    not_door = np.ones(state.slots, bool)
    not_door[ways_in] = False
    place[not_door] = STAYS
    company = np.flatnonzero(may & (state.witness != NONE))
    goes_with[company] = place[state.witness[company]]
    goes_with[company[goes_with_any(state, bounds, planned & ~base, company)]] = GOES_WITH_ANY
    goes = goes_with[empties]
    goes[(np.arange(len(empties)) - first) >= MOST_DOORS] = STAYS
    return goes


def goes_with_any(
    state: SeriesState, bounds: Bounds, static: NDArray[np.bool_], company: Integers
) -> NDArray[np.bool_]:
    """Which company can be taken away beside any original slot: that came beside one, with a value they offer."""
    original = static & (state.witness == NONE)
    offers = offered_by_originals(state, bounds, static, state.cohort[company])
    offered = offers.count(state.cohort[company], state.value[company]) > 0
    return offered & original[state.witness[company]]


def _unclaimed(state: SeriesState) -> NDArray[np.bool_]:
    """Which slots stay static when those who wait get others."""
    static = state.static()
    static[claimed(state)] = False
    return static


def take_away(state: SeriesState, bounds: Bounds, ways_in: Integers, hides: bool) -> SeriesState:
    """Take away the empty slots that can go beside a door that got a new holder, or is still empty but shown.

    Guarantee: whoever waits and could have had another slot still can.

    Parameters
    ----------
    ways_in : int64
        The doors there were before people came.
    """
    static = _unclaimed(state)
    witnesses = state.witnesses()
    doors = ways_in[static[ways_in]]
    changed = state.held()[doors]
    doors = doors[changed | (state.never_held()[doors] if hides else np.ones(len(doors), bool))]
    # rather an original door, one that is a witness already, and of the others one that is filled
    filled, parted = state.held()[doors], state.parted()
    doors = doors[np.lexsort((~filled, ~witnesses[doors], parted[doors], state.cohort[doors]))]
    of_cohort = np.full(state.cohorts, NONE)
    of_cohort[state.cohort[doors[::-1]]] = doors[::-1]
    is_door = np.zeros(state.slots, bool)
    is_door[doors] = True
    may = candidates(state, static)
    slots = np.flatnonzero(may)
    own = state.witness[slots]
    beside = np.where((own != NONE) & is_door[np.maximum(own, 0)], own, of_cohort[state.cohort[slots]])
    goes = (beside != NONE) & (beside != slots)
    with_any = (own == NONE) | goes_with_any(state, bounds, static, slots)
    goes &= (own == beside) | (with_any & ~parted[np.maximum(beside, 0)])
    slots, beside = slots[goes], beside[goes]
    movable = sound_without(state, bounds, static)
    before = state
    for nth in range(2 * ROUNDS):
        if not len(slots):
            return before
        state = own_copy(before)
        state.beside[slots] = beside
        base = state.witness[slots] == NONE
        state.witness[slots[base]] = beside[base]
        state.empty_until[slots] = state.release
        stuck = movable & ~sound_without(state, bounds, _unclaimed(state))
        blamed = np.union1d(failures(state, bounds).cohorts, np.flatnonzero(stuck))
        if not len(blamed):
            return state
        wrong = np.isin(state.cohort[slots], blamed)
        if wrong.any() and nth < ROUNDS:
            last = np.full(state.cohorts, NONE)
            np.maximum.at(last, state.cohort[slots[wrong]], slots[wrong])
            wrong = np.isin(slots, last[last != NONE])
        keeps = ~wrong if wrong.any() else np.zeros(len(slots), bool)
        slots, beside = slots[keeps], beside[keeps]
    return before

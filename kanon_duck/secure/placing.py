"""Slots for those who wait: what the search is told of the state, and what its answer means there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.secure_pool import ALWAYS, GOES_WITH_ANY, IF_NEW
from kanon_duck.runtime.parallel import Checkpoint
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import examine_links, lasting, offer, roots
from kanon_duck.secure.departures import what_goes
from kanon_duck.secure.people import claimed, sound_without
from kanon_duck.secure.plan import Plan
from kanon_duck.secure.pool import Open, Waiting, find_places
from kanon_duck.secure.prices import (
    COUNTERFEIT_PRICE,
    CROWDING_PRICE,
    DOOR_PRICE,
    FORCED_PRICE,
    HIDDEN_PRICE,
    MANY_COUNTERFEITS,
    RISING,
    WAITING_PRICE,
)
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NONE, SeriesState

Integers = NDArray[np.int64]


def find_plan(
    state: SeriesState,
    encoding: Encoding,
    value: Integers,
    bounds: Bounds,
    settings: SeriesSettings,
    seed: int,
    checkpoint: Checkpoint,
) -> tuple[Plan, Integers]:
    """Find slots for those who wait; returned with the doors that they were found by."""
    person = np.flatnonzero(state.waiting != NONE)
    static = state.static()
    planned = static.copy()
    planned[claimed(state)] = False
    person, counted = who_may_move(state, person, bounds, planned, np.random.default_rng([seed, 2]))
    root = roots(state)
    waiting = pool_of(state, person, value, bounds, settings, root, counted)
    hiding = state.hiding(settings.hides)
    empties = empty_slots(state, hiding)
    ways_in = doors(state, empties, planned)
    empties = empties[
        np.lexsort((filling_rank(state, empties, ways_in, hiding), state.value[empties], state.cohort[empties]))
    ]
    cohorts = open_cohorts(state, empties, ways_in, hiding, bounds, root, counted)
    cohort, group = find_places(
        encoding, waiting, cohorts, bounds, HIDDEN_PRICE, crowding(settings), settings.effort, seed, checkpoint
    )
    number = np.where(cohort >= 0, cohorts.cohort[cohort] if len(cohorts.cohort) else NONE, group)
    known = waiting.known > 0
    slot, witness = choose_slots(
        state, person, value[person], known, np.where(cohort >= 0, number, NONE), empties, ways_in, hiding
    )
    placed = (group >= 0) | (slot != NONE) | (witness != NONE)
    return Plan(person, number, slot, witness).take(placed), ways_in


def who_may_move(
    state: SeriesState, person: Integers, bounds: Bounds, planned: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[Integers, NDArray[np.bool_]]:
    """Who of those who wait may get a slot now; and which slots count as static then.

    Whoever held a witness may not have another slot. Of a cohort that needs the slots of those who left it, one of them
    may at a time: the other slots stay what they are, and the cohort keeps what it offers if that one finds all of it
    elsewhere.
    """
    sound = sound_without(state, bounds, planned)
    former = state.slot[person]
    stuck = former != NONE
    stuck[stuck] = state.witnesses()[former[stuck]]
    needed = (former != NONE) & ~stuck
    needed[needed] = ~sound[state.cohort[former[needed]]]
    drawn = generator.permutation(np.flatnonzero(needed))
    _, first = np.unique(state.cohort[former[drawn]], return_index=True)
    others = np.setdiff1d(drawn, drawn[first])
    counted = planned.copy()
    counted[former[others]] = state.static()[former[others]]
    stuck[others] = True
    return person[~stuck], counted


def crowding(settings: SeriesSettings) -> float:
    """What people of a class cost for each other: where an empty slot hides all, classes had better be small."""
    return CROWDING_PRICE if settings.hides else 0.0


def empty_slots(state: SeriesState, hiding: NDArray[np.bool_]) -> Integers:
    """Slots of living cohorts that nobody holds, by cohort and value; first those that hide the cohort."""
    slots = np.flatnonzero(~state.held() & ~state.reserve() & ~state.gone() & state.living()[state.cohort])
    return slots[np.lexsort((slots, ~hiding[slots], state.value[slots], state.cohort[slots]))]


def filling_rank(state: SeriesState, empties: Integers, ways_in: Integers, hiding: NDArray[np.bool_]) -> Integers:
    """Which of the empty slots with one value are filled first: those that cannot be witnesses."""
    usable = np.isin(empties, ways_in)
    return 4 * ~hiding[empties] + 2 * usable + (usable & state.witnesses()[empties])


def doors(state: SeriesState, empties: Integers, planned: NDArray[np.bool_]) -> Integers:
    """Slots beside which company may come.

    Guarantee: each is a static base slot that is empty, and that no person who waits has held.
    """
    reserve = np.flatnonzero(state.reserve() & state.living()[state.cohort])
    slots = np.concatenate([empties, reserve])
    return slots[planned[slots] & state.base()[slots]]


def choose_slots(
    state: SeriesState,
    person: Integers,
    value: Integers,
    known: NDArray[np.bool_],
    cohort: Integers,
    empties: Integers,
    ways_in: Integers,
    hiding: NDArray[np.bool_],
) -> tuple[Integers, Integers]:
    """Empty slots for those who can fill one of their cohort, and witnesses for those who come as company.

    Guarantee: a witness is one of the doors that stays empty or is filled by somebody new; who has held a slot before
    fills no witness.

    Parameters
    ----------
    person, value, known, cohort : shape (n,)
        Who is to come into which cohort, NONE for others.
    empties : int64
        The slots that may be filled, by cohort and value, and as they are to be filled.
    ways_in : int64
        Those that are `doors`.
    hiding : bool, shape (slots,)

    Returns
    -------
    slot, witness : int64, shape (n,)
        NONE for no slot, or no witness. Who gets neither cannot come.
    """
    slot, witness = np.full(len(person), NONE), np.full(len(person), NONE)
    comes = np.flatnonzero(cohort != NONE)
    if not len(comes):
        return slot, witness
    usable = np.zeros(state.slots, bool)
    usable[ways_in] = True
    tuples = int(max(value.max(), state.value.max())) + 1
    witnesses = state.witnesses()
    key = state.cohort[empties] * tuples + state.value[empties]
    comes = comes[np.lexsort((~known[comes], value[comes], cohort[comes]))]
    wanted = cohort[comes] * tuples + value[comes]
    nth = np.arange(len(comes)) - np.searchsorted(wanted, wanted)
    place = np.searchsorted(key, wanted) + nth
    fits = place < len(key)
    fits[fits] = key[place[fits]] == wanted[fits]
    # who has held a slot comes rather as company: a slot that is filled so proves nothing any more
    takes_company = np.zeros(state.cohorts, bool)
    takes_company[state.cohort[ways_in[~hiding[ways_in]]]] = True
    fits[fits] = ~(known[comes[fits]] & (witnesses[empties[place[fits]]] | takes_company[cohort[comes[fits]]]))
    slot[comes[fits]] = empties[place[fits]]
    # a witness: rather one that stays empty, and is one already
    taken = slot[comes[fits]]
    usable[taken[known[comes[fits]]]] = False
    filled = np.zeros(state.slots, bool)
    filled[taken] = True
    candidates = ways_in[usable[ways_in] & (filled[ways_in] | ~hiding[ways_in])]
    candidates = candidates[np.lexsort((~witnesses[candidates], filled[candidates], state.cohort[candidates]))]
    of_cohort = np.full(state.cohorts, NONE)
    of_cohort[state.cohort[candidates[::-1]]] = candidates[::-1]
    company = comes[~fits]
    witness[company] = of_cohort[cohort[company]]
    return slot, witness


def pool_of(
    state: SeriesState,
    person: Integers,
    value: Integers,
    bounds: Bounds,
    settings: SeriesSettings,
    root: Integers,
    static: NDArray[np.bool_],
) -> Waiting:
    """The people of the pool, with what those who were in a release before may have."""
    waited = state.release - state.waiting[person]
    price = WAITING_PRICE * RISING ** np.minimum(waited, 100)
    price[waited >= settings.patience] = FORCED_PRICE
    former = state.slot[person]
    known = np.zeros(len(person), np.int64)
    back = np.flatnonzero(former != NONE)
    known[back] = np.arange(1, len(back) + 1)
    former = former[back]
    offered = offer(state, bounds, static)
    really_static = state.static()
    links = examine_links(state, bounds, offered, really_static)
    which, allowed, counts = lasting(state, bounds, offered).expanded(state.cohort[former])
    group_of_slot = np.full(state.slots, NONE)
    group_of_slot[links.slots] = links.group
    key = group_of_slot[former[which]] * bounds.tuples + allowed
    of_group = np.repeat(np.arange(len(links.stops)), np.diff(links.stops, prepend=0))
    stays = really_static[former][which] | np.isin(key, of_group * bounds.tuples + links.values)
    stops = np.cumsum(np.bincount(which[stays], minlength=len(back)))
    return Waiting(
        person, value[person], price, known, stops, allowed[stays], counts[stays], root[state.cohort[former]]
    )


def newcomers(person: Integers, value: Integers, price: NDArray[np.float64]) -> Waiting:
    """People who have never been in a release."""
    none = np.empty(0, np.int64)
    return Waiting(person, value, price, np.zeros(len(person), np.int64), none, none, none, none)


def open_cohorts(
    state: SeriesState,
    empties: Integers,
    ways_in: Integers,
    hiding: NDArray[np.bool_],
    bounds: Bounds,
    root: Integers,
    static: NDArray[np.bool_],
) -> Open:
    """The living cohorts with empty slots or doors."""
    numbers = np.unique(state.cohort[np.concatenate([empties, ways_in])])
    held = state.held()
    people = np.bincount(state.cohort[held], minlength=state.cohorts)
    some = np.full(state.cohorts, NONE)
    some[state.cohort[held]] = state.holder[held]
    takes = np.zeros(state.cohorts, np.int64)
    takes[state.cohort[ways_in]] = IF_NEW
    takes[state.cohort[ways_in[state.reserve()[ways_in]]]] = ALWAYS
    offered = offer(state, bounds, static)
    which, values, counts = lasting(state, bounds, offered).expanded(numbers)
    goes = what_goes(state, bounds, static, empties, ways_in)
    return Open(
        numbers,
        people[numbers],
        root[numbers],
        some[numbers],
        state.low[numbers],
        state.high[numbers],
        np.searchsorted(state.cohort[empties], numbers, side="right"),
        state.value[empties],
        hiding[empties],
        np.isin(empties, ways_in),
        goes,
        savings(state, empties, ways_in, goes),
        takes[numbers],
        np.cumsum(np.bincount(which, minlength=len(numbers))),
        values,
        counts,
    )


def savings(state: SeriesState, empties: Integers, ways_in: Integers, goes: Integers) -> NDArray[np.float64]:
    """What is saved when empty slots are filled: a counterfeit, but of the one door that a cohort keeps to the last.

    Those that can be taken away are no counterfeits anyway.
    """
    price = counterfeit_price(state)
    saving = np.full(state.slots, price)
    saving[empties[goes == GOES_WITH_ANY]] = 0.0
    witnesses = state.witnesses()[ways_in]
    last = ways_in[np.lexsort((witnesses, state.cohort[ways_in]))]
    of_cohort = np.full(state.cohorts, NONE)
    of_cohort[state.cohort[last]] = last
    saving[of_cohort[of_cohort != NONE]] = price - DOOR_PRICE
    return saving[empties]


def counterfeit_price(state: SeriesState) -> float:
    """What a counterfeit costs: the dearer, the more the last release had, so that they do not grow without end."""
    empty = ~state.held() & ~state.gone() & (state.empty_from < state.release)
    counterfeits = int(np.count_nonzero(empty & state.living()[state.cohort]))
    share = counterfeits / max(int(np.count_nonzero(state.held())), 1)
    return COUNTERFEIT_PRICE * max(1.0, share / MANY_COUNTERFEITS) ** 2


def no_cohorts(encoding: Encoding) -> Open:
    """No open cohorts."""
    none = np.empty(0, np.int64)
    box = encoding.codes[:0]
    never = np.empty(0, bool)
    return Open(none, none, none, none, box, box, none, none, never, never, none, np.empty(0), none, none, none, none)

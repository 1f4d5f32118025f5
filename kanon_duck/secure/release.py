"""One release of a secure series after the other.

Guarantee: a release is returned only if `kanon_duck.secure.certificates.verify` finds a certificate for everybody who
has ever been in one; else `UncertifiedError` is raised, and the state is as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.runtime.parallel import Checkpoint, part
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import (
    examine_links,
    failures,
    offer,
    roots,
    sound_cohorts,
    sound_daughters,
    verify,
)
from kanon_duck.secure.pool import Open, Waiting, find_places
from kanon_duck.secure.settings import Settings
from kanon_duck.secure.splits import changed_cohorts, split_cohorts
from kanon_duck.secure.state import (
    NOBODY,
    NONE,
    STILL,
    State,
    empty_state,
    own_copy,
    with_cohorts,
    with_people,
    with_slots,
)

Integers = NDArray[np.int64]

NOT_WAITING, NO_GROUP, HIDDEN, NO_HOME = 0, 1, 2, 3
REASONS = (
    "",
    "not enough newcomers like it",
    "its class lost somebody and is not shown until the empty place is filled",
    "was in an earlier release, and no place of its value keeps what is possible for it",
)
"""Why somebody is not in a release, by code."""

WAITING_PRICE, RISING = 1.5, 1.15
"""What it costs that one waits, in loss of a row, and what that is multiplied with for each release waited."""

FORCED_PRICE = 50.0
"""What it costs that one waits whose patience is at its end."""

COUNTERFEIT_PRICE, HIDDEN_PRICE = 1.0, 3.0
"""What a counterfeit costs, and a person of a class that is not shown."""

DOOR_PRICE = 1.0
"""What it costs to fill the last empty slot beside which company can come."""

MOVE_RISE = 3.0
"""Rise of a class's loss from which on somebody whose quasi-identifiers changed leaves it for another."""

PLACED_PRICE = 10.0
"""What it costs in the first release to leave somebody out who had a class."""


@dataclass(frozen=True)
class Changes:
    """What happened since the last release. A person is a row of the encoding, for as long as the series lasts.

    Who changes value leaves, and arrives as another person. Who comes back with the same value is the same person.

    Attributes
    ----------
    left : int64
        People who are no longer there, whether they were in a release or waited.
    arrived : int64
        People who are there now and were not: new ones, and those who come back.
    moved : int64
        People who were there and are, with other quasi-identifiers; the encoding has the new ones.
    """

    left: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    arrived: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    moved: Integers = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Release:
    """A release, and what later ones need.

    Attributes
    ----------
    state : State
    reason : int64, shape (people,)
        Why each is not shown, as an index into ``REASONS``; NOT_WAITING for those who are shown or not there.
    counterfeits : int
        Rows without a person.
    """

    state: State
    reason: Integers
    counterfeits: int


def first_release(
    encoding: Encoding,
    value: Integers,
    labels: Integers,
    bounds: Bounds,
    settings: Settings,
    seed: int,
    checkpoint: Checkpoint,
) -> Release:
    """Begin a series with the classes of a clustering, improved by annealing.

    Parameters
    ----------
    encoding : Encoding
        Of all people.
    value : int64, shape (people,)
        Code of the tuple of sensitive and kept values.
    labels : int64, shape (people,)
        Class of each, which satisfies the bounds; -1 for one who waits.
    bounds : Bounds
    settings : Settings
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
        waiting = _newcomers(person, value[person], np.full(len(person), PLACED_PRICE))
        _, groups = find_places(
            encoding, waiting, _no_cohorts(encoding), bounds, HIDDEN_PRICE,
            settings.effort, seed, checkpoint, groups,
        )  # fmt: skip
        nowhere = np.full(len(person), NONE)
        plan = Plan(person, np.where(groups >= 0, groups, NONE), nowhere, nowhere)
        state = carry_out(state, value, plan.take(groups >= 0), bounds, settings, np.random.default_rng([seed, 1]))
    state = _with_boxes(state, encoding)
    return _finish(state, bounds, settings, state.slot[:0])


def next_release(
    state: State,
    encoding: Encoding,
    value: Integers,
    changes: Changes,
    bounds: Bounds,
    settings: Settings,
    seed: int,
    checkpoint: Checkpoint,
) -> Release:
    """Bring changes into a series.

    Parameters
    ----------
    state : State
        Of the last release; it is not changed.
    encoding : Encoding
        Of all people there ever were, with the new ones behind the old ones.
    value : int64, shape (people,)
    changes : Changes
    bounds : Bounds
        Those of the series; there may be more tuples.
    settings : Settings
    seed : int
    checkpoint : function

    Raises
    ------
    UncertifiedError
        When somebody would have no certificate.
    """
    state = own_copy(with_people(state, encoding.rows))
    state = replace(state, release=state.release + 1)
    vacate(state, changes.left)
    state.waiting[changes.left] = NONE
    state.waiting[changes.arrived] = state.release
    if settings.on_delete == "remove":
        state = split_cohorts(state, encoding, bounds, True, changed_cohorts(state, changes.moved))
    let_movers_leave(state, encoding, bounds, settings, changes.moved)
    let_return(state, encoding, settings)
    plan = find_plan(state, encoding, value, bounds, settings, seed, part(checkpoint, 0.0, 0.9))
    state = carry_out(state, value, plan, bounds, settings, np.random.default_rng([seed, 1]))
    state = _with_boxes(state, encoding)
    state = split_cohorts(state, encoding, bounds, settings.hides, changed_cohorts(state, changes.moved))
    return _finish(state, bounds, settings, changes.moved)


def vacate(state: State, people: Integers) -> None:
    """Let people leave the slots that they hold."""
    slot = state.slot[people]
    slot = slot[slot != NONE]
    slot = slot[np.isin(state.holder[slot], people)]
    state.holder[slot] = NOBODY
    state.empty_from[slot] = state.release
    state.empty_until[slot] = STILL


def occupy(state: State, people: Integers, slots: Integers) -> None:
    """Let people hold existing slots, which are empty."""
    state.holder[slots] = people
    state.empty_until[slots] = state.release
    state.slot[people] = slots
    state.since[people] = state.release
    state.waiting[people] = NONE


def let_movers_leave(
    state: State, encoding: Encoding, bounds: Bounds, settings: Settings, moved: Integers
) -> None:
    """Let those leave whose quasi-identifiers changed so much that their class would lose too much.

    Only where the empty slot does not hide the class, and where its cohort stays sound without it.
    """
    slot = state.slot[moved]
    holds = slot != NONE
    holds[holds] = state.holder[slot[holds]] == moved[holds]
    person, slot = moved[holds], slot[holds]
    if settings.hides or not len(person):
        return
    rise = _rise(state, encoding, person, state.cohort[slot])
    leaves = (rise > MOVE_RISE) & ~state.witnesses()[slot]
    person, slot = person[leaves], slot[leaves]
    static = state.static()
    static[claimed(state)] = False
    static[slot] = False
    sound = sound_cohorts(state, bounds, offer(state, bounds, static)) & sound_daughters_of(state, bounds, static)
    person = person[sound[state.cohort[slot]]]
    vacate(state, person)
    state.waiting[person] = state.release


def sound_daughters_of(state: State, bounds: Bounds, static: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cohorts neither miss a value of another cohort nor offer too little to their daughters."""
    lost = np.flatnonzero(~sound_daughters(state, offer(state, bounds, static)))
    sound = np.ones(state.cohorts, bool)
    sound[lost] = False
    sound[state.cohort[state.origin[lost]]] = False
    return sound


def claimed(state: State) -> Integers:
    """Slots that somebody held who waits: they are no witnesses, so that this person may have another."""
    slot = state.slot[state.waiting != NONE]
    return slot[slot != NONE]


def _rise(state: State, encoding: Encoding, person: Integers, cohort: Integers) -> NDArray[np.float64]:
    """Rise of the loss of cohorts if a person with new quasi-identifiers is, or comes, among their people."""
    rows = np.bincount(state.cohort[state.held()], minlength=state.cohorts)[cohort]
    low, high, own = state.low[cohort], state.high[cohort], encoding.codes[person]
    before = _cost(encoding, low, high)
    after = _cost(encoding, np.minimum(low, own), np.maximum(high, own))
    return rows * (after - before)


def _cost(
    encoding: Encoding, low: NDArray[np.unsignedinteger], high: NDArray[np.unsignedinteger]
) -> NDArray[np.float64]:
    """Cost per row of boxes."""
    return np.minimum(high - low, encoding.caps) @ encoding.weights.astype(np.float64)


def let_return(state: State, encoding: Encoding, settings: Settings) -> None:
    """Let those who wait return to the slot that they held last, if it is empty, no witness, and near.

    Guarantee: whoever has held a witness before it changed hands does not hold it again, so that those who held it
    before company came and those who hold it since are different people.
    """
    person = np.flatnonzero((state.waiting != NONE) & (state.slot != NONE))
    slot = state.slot[person]
    free = (state.holder[slot] == NOBODY) & ~state.witnesses()[slot] & state.living()[state.cohort[slot]]
    person, slot = person[free], slot[free]
    _, first = np.unique(slot, return_index=True)  # several may have held one
    person, slot = person[first], slot[first]
    rise = _rise(state, encoding, person, state.cohort[slot])
    tired = state.release - state.waiting[person] >= settings.patience
    near = tired | (rise <= MOVE_RISE)
    occupy(state, person[near], slot[near])


@dataclass(frozen=True)
class Plan:
    """Who is to have which slot.

    Attributes
    ----------
    person, cohort, slot, witness : int64, shape (places,)
        A ``slot`` that exists; or NONE and, of an existing cohort, the ``witness`` of the company; or NONE for both and,
        as ``cohort``, the number of a group of new slots.
    """

    person: Integers
    cohort: Integers
    slot: Integers
    witness: Integers

    def take(self, chosen: NDArray[np.bool_]) -> Plan:
        """Some of the places."""
        return Plan(self.person[chosen], self.cohort[chosen], self.slot[chosen], self.witness[chosen])


def find_plan(
    state: State,
    encoding: Encoding,
    value: Integers,
    bounds: Bounds,
    settings: Settings,
    seed: int,
    checkpoint: Checkpoint,
) -> Plan:
    """Find slots for those who wait."""
    person = np.flatnonzero(state.waiting != NONE)
    static = state.static()
    planned = static.copy()
    planned[claimed(state)] = False
    offered = offer(state, bounds, planned)
    sound = sound_cohorts(state, bounds, offered) & sound_daughters_of(state, bounds, planned)
    former = state.slot[person]
    witnesses = state.witnesses()
    stuck = former != NONE
    stuck[stuck] = ~sound[state.cohort[former[stuck]]] | witnesses[former[stuck]]
    person = person[~stuck]
    root = roots(state)
    waiting = pool_of(state, person, value, bounds, settings, root, planned)
    hiding = state.hiding(settings.hides)
    empties = empty_slots(state, hiding)
    ways_in = doors(state, empties, planned)
    cohorts = _open(state, empties, ways_in, hiding, bounds, root, planned)
    cohort, group = find_places(
        encoding, waiting, cohorts, bounds, HIDDEN_PRICE, settings.effort,
        seed, checkpoint,
    )  # fmt: skip
    number = np.where(cohort >= 0, cohorts.cohort[cohort] if len(cohorts.cohort) else NONE, group)
    known = waiting.known > 0
    slot, witness = choose_slots(
        state, person, value[person], known, np.where(cohort >= 0, number, NONE), empties, ways_in, hiding
    )
    placed = (group >= 0) | (slot != NONE) | (witness != NONE)
    return Plan(person, number, slot, witness).take(placed)


def empty_slots(state: State, hiding: NDArray[np.bool_]) -> Integers:
    """Empty slots of living cohorts, by cohort and value; first those that hide the cohort."""
    slots = np.flatnonzero(~state.held() & state.living()[state.cohort])
    return slots[np.lexsort((slots, ~hiding[slots], state.value[slots], state.cohort[slots]))]


def doors(state: State, empties: Integers, planned: NDArray[np.bool_]) -> Integers:
    """Slots beside which company may come.

    Guarantee: each is a static base slot that is empty, and that no person who waits has held.
    """
    return empties[planned[empties] & (state.witness[empties] == NONE)]


def choose_slots(
    state: State,
    person: Integers,
    value: Integers,
    known: NDArray[np.bool_],
    cohort: Integers,
    empties: Integers,
    ways_in: Integers,
    hiding: NDArray[np.bool_],
) -> tuple[Integers, Integers]:
    """Empty slots for those who can fill one of their cohort, and witnesses for those who come as company.

    Guarantee: a witness is one of the doors that stays empty or is filled by somebody new.

    Parameters
    ----------
    person, value, known, cohort : shape (n,)
        Who is to come into which cohort, NONE for others.
    empties : int64
        The empty slots of living cohorts.
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
    # slots that cannot be witnesses are filled first, people who were never in a release fill the others
    rank = 4 * ~hiding[empties] + 2 * usable[empties] + (usable[empties] & witnesses[empties])
    empties = empties[np.lexsort((rank, state.value[empties], state.cohort[empties]))]
    key = state.cohort[empties] * tuples + state.value[empties]
    comes = comes[np.lexsort((~known[comes], value[comes], cohort[comes]))]
    wanted = cohort[comes] * tuples + value[comes]
    nth = np.arange(len(comes)) - np.searchsorted(wanted, wanted)
    place = np.searchsorted(key, wanted) + nth
    fits = place < len(key)
    fits[fits] = key[place[fits]] == wanted[fits]
    slot[comes[fits]] = empties[place[fits]]
    # a witness: rather one that stays empty, and is one already
    taken = slot[comes[fits]]
    usable[taken[known[comes[fits]]]] = False
    filled = np.zeros(state.slots, bool)
    filled[taken] = True
    candidates = ways_in[usable[ways_in]]
    candidates = candidates[np.lexsort((~witnesses[candidates], filled[candidates], state.cohort[candidates]))]
    of_cohort = np.full(state.cohorts, NONE)
    of_cohort[state.cohort[candidates[::-1]]] = candidates[::-1]
    company = comes[~fits]
    witness[company] = of_cohort[cohort[company]]
    return slot, witness


def carry_out(
    state: State, value: Integers, plan: Plan, bounds: Bounds, settings: Settings, generator: np.random.Generator
) -> State:
    """Give people their slots; those whose links would leave somebody without a certificate go on waiting.

    Guarantee: a person who held another slot before is placed only if all is sound with the link between the two.
    """
    groups, plan_cohort = np.unique(plan.cohort[_is_new(plan)], return_inverse=True)
    cohort = plan.cohort.copy()
    cohort[_is_new(plan)] = plan_cohort
    plan = replace(plan, cohort=cohort)
    reserved = generator.random(len(groups)) < settings.reserve
    reserve_value = _reserve_values(plan, value, len(groups), generator)
    before = state
    while True:
        state = _with_places(before, value, plan, len(groups), reserved, reserve_value)
        linked = (before.slot[plan.person] != NONE) & (before.slot[plan.person] != state.slot[plan.person])
        if not linked.any():
            return state
        blamed = failures(state, bounds).cohorts
        if not len(blamed):
            return state
        # of each cohort to blame, the last link goes
        numbers = np.flatnonzero(linked)
        touched = np.stack([state.cohort[before.slot[plan.person[numbers]]], state.cohort[state.slot[plan.person[numbers]]]])
        last = np.full(state.cohorts, NONE)
        for each in touched:
            last[each] = np.maximum(last[each], numbers)
        goes = np.zeros(len(numbers), bool)
        goes[np.isin(numbers, last[blamed])] = True
        if not goes.any():
            goes[:] = True
        dropped = np.zeros(len(plan.person), bool)
        dropped[numbers[goes]] = True
        if settings.hides:  # a cohort whose slots are not all filled is not shown, and takes nobody
            old = ~_is_new(plan)
            dropped |= old & np.isin(plan.cohort, plan.cohort[dropped & old])
        plan = plan.take(~dropped)


def _is_new(plan: Plan) -> NDArray[np.bool_]:
    return (plan.slot == NONE) & (plan.witness == NONE)


def _reserve_values(plan: Plan, value: Integers, groups: int, generator: np.random.Generator) -> Integers:
    """For each group the value of somebody in it, drawn at random."""
    new = np.flatnonzero(_is_new(plan))
    drawn = np.full(groups, NONE)
    shuffled = generator.permutation(new)
    drawn[plan.cohort[shuffled]] = value[plan.person[shuffled]]
    return drawn


def _with_places(
    state: State, value: Integers, plan: Plan, groups: int, reserved: NDArray[np.bool_], reserve_value: Integers
) -> State:
    """The state in which people have the slots of a plan, and former and new slots are linked."""
    state = own_copy(state)
    former = state.slot[plan.person]
    old = plan.slot != NONE
    occupy(state, plan.person[old], plan.slot[old])
    new = _is_new(plan)
    cohort = plan.cohort + np.where(new, state.cohorts, 0)
    first = state.cohorts
    state = with_cohorts(state, groups, np.full(groups, NONE))
    person = plan.person[~old]
    with_reserve = np.flatnonzero(reserved)
    slots = state.slots + np.arange(len(person))
    nobody = np.full(len(with_reserve), NOBODY)
    state = with_slots(
        state,
        np.concatenate([value[person], reserve_value[with_reserve]]),
        np.concatenate([cohort[~old], first + with_reserve]),
        np.concatenate([plan.witness[~old], np.full(len(with_reserve), NONE)]),
        np.concatenate([person, nobody]),
        np.concatenate([np.zeros(len(person), bool), nobody == NOBODY]),
    )
    state.slot[person] = slots
    state.since[person] = state.release
    state.waiting[person] = NONE
    linked = (former != NONE) & (former != state.slot[plan.person])
    return replace(state, link=joined(state.link, former[linked], state.slot[plan.person[linked]]))


def joined(link: Integers, first: Integers, second: Integers) -> Integers:
    """Groups of slots after pairs have been linked; each has its least number."""
    link = link.copy()
    while True:
        one, other = link[first], link[second]
        apart = one != other
        if not apart.any():
            return link
        low, high = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
        target = np.arange(len(link))
        np.minimum.at(target, high, low)
        link = target[link]


def pool_of(
    state: State,
    person: Integers,
    value: Integers,
    bounds: Bounds,
    settings: Settings,
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
    which, allowed, _ = offered.expanded(state.cohort[former])
    group_of_slot = np.full(state.slots, NONE)
    group_of_slot[links.slots] = links.group
    key = group_of_slot[former[which]] * bounds.tuples + allowed
    stays = really_static[former][which] | np.isin(key, links.of_group * bounds.tuples + links.values)
    stops = np.cumsum(np.bincount(which[stays], minlength=len(back)))
    return Waiting(person, value[person], price, known, stops, allowed[stays], root[state.cohort[former]])


def _newcomers(person: Integers, value: Integers, price: NDArray[np.float64]) -> Waiting:
    none = np.empty(0, np.int64)
    return Waiting(person, value, price, np.zeros(len(person), np.int64), none, none, none)


def _open(
    state: State,
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
    takes = np.zeros(state.cohorts, bool)
    takes[state.cohort[ways_in]] = True
    offered = offer(state, bounds, static)
    which, values, counts = offered.expanded(numbers)
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
        _savings(state, empties, ways_in),
        takes[numbers],
        np.cumsum(np.bincount(which, minlength=len(numbers))),
        values,
        counts,
    )


def _savings(state: State, empties: Integers, ways_in: Integers) -> NDArray[np.float64]:
    """What is saved when empty slots are filled: a counterfeit, but of the one door that a cohort keeps to the last."""
    saving = np.full(state.slots, COUNTERFEIT_PRICE)
    witnesses = state.witnesses()[ways_in]
    last = ways_in[np.lexsort((witnesses, state.cohort[ways_in]))]
    of_cohort = np.full(state.cohorts, NONE)
    of_cohort[state.cohort[last]] = last
    saving[of_cohort[of_cohort != NONE]] = COUNTERFEIT_PRICE - DOOR_PRICE
    return saving[empties]


def _no_cohorts(encoding: Encoding) -> Open:
    none = np.empty(0, np.int64)
    box = encoding.codes[:0]
    return Open(none, none, none, none, box, box, none, none, np.empty(0, bool), np.empty(0), np.empty(0, bool), none, none, none)


def _with_boxes(state: State, encoding: Encoding) -> State:
    """Widen the boxes of cohorts by the people who hold their slots: they never shrink here."""
    held = np.flatnonzero(state.held())
    codes = encoding.codes[state.holder[held]]
    low, high = state.low.copy(), state.high.copy()
    np.minimum.at(low, state.cohort[held], codes)
    np.maximum.at(high, state.cohort[held], codes)
    return replace(state, low=low, high=high)


def _finish(state: State, bounds: Bounds, settings: Settings, moved: Integers) -> Release:
    """Say what is shown and why others wait, and refuse what is not certified."""
    verify(state, bounds)
    held = state.held()
    shown = state.living()
    shown[state.cohort[state.hiding(settings.hides)]] = False
    state = replace(state, shown=shown)
    reason = np.full(len(state.slot), NOT_WAITING)
    waits = state.waiting != NONE
    reason[waits] = np.where(state.slot[waits] == NONE, NO_GROUP, NO_HOME)
    reason[state.holder[held & ~shown[state.cohort]]] = HIDDEN
    counterfeits = int(np.count_nonzero(~held & shown[state.cohort]))
    return Release(state, reason, counterfeits)

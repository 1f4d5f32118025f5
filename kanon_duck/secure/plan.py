"""A plan of who is to have which slot, and what it makes of a state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import failures
from kanon_duck.secure.people import occupy
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NOBODY, NONE, SeriesState, own_copy, with_cohorts, with_slots

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Who is to have which slot.

    Attributes
    ----------
    person, cohort, slot, witness : int64, shape (places,)
        A ``slot`` that exists; or NONE and the ``witness`` of company in an existing cohort; or NONE for both and, as
        ``cohort``, the number of a group of new slots.
    """

    person: Integers
    cohort: Integers
    slot: Integers
    witness: Integers

    @property
    def new(self) -> NDArray[np.bool_]:
        """Which slots belong to new cohorts."""
        return (self.slot == NONE) & (self.witness == NONE)

    def take(self, chosen: NDArray[np.bool_]) -> Plan:
        """Some of the places."""
        return Plan(self.person[chosen], self.cohort[chosen], self.slot[chosen], self.witness[chosen])


def carry_out(
    state: SeriesState,
    value: Integers,
    plan: Plan,
    bounds: Bounds,
    settings: SeriesSettings,
    generator: np.random.Generator,
) -> SeriesState:
    """Give people their slots; those whose links would leave somebody without a certificate go on waiting.

    Guarantee: a person who held another slot before is placed only if all is sound with the link between the two.
    """
    groups, plan_cohort = np.unique(plan.cohort[plan.new], return_inverse=True)
    cohort = plan.cohort.copy()
    cohort[plan.new] = plan_cohort
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
        people = plan.person[numbers]
        last = np.full(state.cohorts, NONE)
        for slot in (before.slot[people], state.slot[people]):
            np.maximum.at(last, state.cohort[slot], numbers)
        goes = np.zeros(len(numbers), bool)
        goes[np.isin(numbers, last[blamed])] = True
        if not goes.any():
            goes[:] = True
        dropped = np.zeros(len(plan.person), bool)
        dropped[numbers[goes]] = True
        if settings.hides:  # a cohort whose slots are not all filled is not shown, and takes nobody
            old = ~plan.new
            dropped |= old & np.isin(plan.cohort, plan.cohort[dropped & old])
        plan = plan.take(~dropped)


def _is_new(plan: Plan) -> NDArray[np.bool_]:
    return (plan.slot == NONE) & (plan.witness == NONE)


def _reserve_values(plan: Plan, value: Integers, groups: int, generator: np.random.Generator) -> Integers:
    """For each group the value of somebody in it, drawn at random."""
    new = np.flatnonzero(plan.new)
    drawn = np.full(groups, NONE)
    shuffled = generator.permutation(new)
    drawn[plan.cohort[shuffled]] = value[plan.person[shuffled]]
    return drawn


def _with_places(
    state: SeriesState, value: Integers, plan: Plan, groups: int, reserved: NDArray[np.bool_], reserve_value: Integers
) -> SeriesState:
    """The state in which people have the slots of a plan, and former and new slots are linked."""
    state = own_copy(state)
    former = state.slot[plan.person]
    old = plan.slot != NONE
    occupy(state, plan.person[old], plan.slot[old])
    new = plan.new
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

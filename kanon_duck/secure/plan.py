"""A plan of who is to have which slot, and what it makes of a state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import failures
from kanon_duck.secure.people import occupy
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NOBODY, NONE, SeriesState, joined, own_copy, with_cohorts, with_slots

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Who is to have which slot.

    Attributes
    ----------
    person, cohort, slot, witness : int64, shape (places,)
        A ``slot`` that exists; or NONE and the ``witness`` of company in an existing cohort; or NONE for both and, as
        ``cohort``, the number of a group of new slots.
    counterfeit_group, counterfeit_value : int64, shape (counterfeits,)
        Slots of groups that nobody holds.
    """

    person: Integers
    cohort: Integers
    slot: Integers
    witness: Integers
    counterfeit_group: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    counterfeit_value: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def new(self) -> NDArray[np.bool_]:
        """Which slots belong to new cohorts."""
        return (self.slot == NONE) & (self.witness == NONE)

    def take(self, chosen: NDArray[np.bool_]) -> Plan:
        """Some of the places."""
        return replace(
            self,
            person=self.person[chosen],
            cohort=self.cohort[chosen],
            slot=self.slot[chosen],
            witness=self.witness[chosen],
        )

    def without_groups(self, groups: Integers) -> Plan:
        """The plan without some groups of new slots."""
        stays = ~np.isin(self.counterfeit_group, groups)
        return replace(
            self.take(~(self.new & np.isin(self.cohort, groups))),
            counterfeit_group=self.counterfeit_group[stays],
            counterfeit_value=self.counterfeit_value[stays],
        )


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
    plan = with_reserve(replace(plan, cohort=cohort), value, len(groups), settings.reserve, generator)
    before = state
    while True:
        state = _with_places(before, value, plan, len(groups))
        linked = (before.slot[plan.person] != NONE) & (before.slot[plan.person] != state.slot[plan.person])
        if not linked.any():
            return state
        found = failures(state, bounds)
        if not len(found.cohorts):
            return state
        # those without a certificate go on waiting; where others lack one, of each cohort to blame the last link goes
        numbers = np.flatnonzero(linked)
        people = plan.person[numbers]
        goes = np.isin(state.slot[people], found.linked)
        if not goes.any():
            last = np.full(state.cohorts, NONE)
            for slot in (before.slot[people], state.slot[people]):
                np.maximum.at(last, state.cohort[slot], numbers)
            goes[np.isin(numbers, last[found.cohorts])] = True
        if not goes.any():
            goes[:] = True
        dropped = np.zeros(len(plan.person), bool)
        dropped[numbers[goes]] = True
        if settings.hides:  # a cohort whose slots are not all filled is not shown, and takes nobody
            old = ~plan.new
            dropped |= old & np.isin(plan.cohort, plan.cohort[dropped & old])
        short = np.unique(plan.cohort[dropped & plan.new])  # a new group that loses somebody is not made
        plan = plan.take(~dropped).without_groups(short)


def with_reserve(plan: Plan, value: Integers, groups: int, share: float, generator: np.random.Generator) -> Plan:
    """A plan in which a share of the groups get a counterfeit, with the value of somebody in it."""
    drawn = np.full(groups, NONE)
    shuffled = generator.permutation(np.flatnonzero(plan.new))
    drawn[plan.cohort[shuffled]] = value[plan.person[shuffled]]
    reserved = np.flatnonzero(generator.random(groups) < share)
    return replace(plan, counterfeit_group=reserved, counterfeit_value=drawn[reserved])


def _with_places(state: SeriesState, value: Integers, plan: Plan, groups: int) -> SeriesState:
    """The state in which people have the slots of a plan, and former and new slots are linked."""
    state = own_copy(state)
    former = state.slot[plan.person]
    old = plan.slot != NONE
    occupy(state, plan.person[old], plan.slot[old])
    first = state.cohorts
    cohort = plan.cohort + np.where(plan.new, first, 0)
    state = with_cohorts(state, groups)
    person = plan.person[~old]
    slots = state.slots + np.arange(len(person))
    nobody = np.full(len(plan.counterfeit_group), NOBODY)
    state = with_slots(
        state,
        np.concatenate([value[person], plan.counterfeit_value]),
        np.concatenate([cohort[~old], first + plan.counterfeit_group]),
        np.concatenate([plan.witness[~old], np.full(len(nobody), NONE)]),
        np.concatenate([person, nobody]),
        np.concatenate([np.zeros(len(person), bool), np.ones(len(nobody), bool)]),
    )
    state.slot[person] = slots
    state.since[person] = state.release
    state.waiting[person] = NONE
    linked = (former != NONE) & (former != state.slot[plan.person])
    return replace(state, link=joined(state.link, former[linked], state.slot[plan.person[linked]]))

"""People who leave, come back, or have other quasi-identifiers than before."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import certifying, examine_links, offer, sound_cohorts, sound_parts
from kanon_duck.secure.prices import MOVE_RISE, cost
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NOBODY, NONE, STILL, SeriesState

Integers = NDArray[np.int64]


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


def vacate(state: SeriesState, people: Integers) -> None:
    """Let people leave the slots that they hold."""
    slot = state.slot[people]
    slot = slot[slot != NONE]
    slot = slot[np.isin(state.holder[slot], people)]
    state.holder[slot] = NOBODY
    state.empty_from[slot] = state.release
    state.empty_until[slot] = STILL


def occupy(state: SeriesState, people: Integers, slots: Integers) -> None:
    """Let people hold existing slots, which are empty."""
    state.holder[slots] = people
    state.empty_until[slots] = state.release
    state.slot[people] = slots
    state.since[people] = state.release
    state.waiting[people] = NONE


def let_movers_leave(state: SeriesState, encoding: Encoding, settings: SeriesSettings, moved: Integers) -> None:
    """Let those leave whose quasi-identifiers changed so much that their class would lose too much.

    Only where the empty slot does not hide the class. Whether they find another slot, or return, is seen later: until
    then their slot is what it was.
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
    vacate(state, person)
    state.waiting[person] = state.release


def sound_without(state: SeriesState, bounds: Bounds, static: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cohorts stay sound, for those too who have had linked slots, if no more than some slots are static."""
    offered = offer(state, bounds, static)
    links = examine_links(state, bounds, offered, state.static())
    certified = certifying(state, bounds, offered, links, static)
    sound = sound_cohorts(state, bounds, certified) & sound_parts(state, bounds, offered, static)
    sound[state.cohort[links.slots[~links.sound[links.group]]]] = False
    return sound


def claimed(state: SeriesState) -> Integers:
    """Slots that somebody held who waits: they are no witnesses, so that this person may have another."""
    slot = state.slot[state.waiting != NONE]
    return slot[slot != NONE]


def _rise(state: SeriesState, encoding: Encoding, person: Integers, cohort: Integers) -> NDArray[np.float64]:
    """Rise of the loss of cohorts if a person with new quasi-identifiers is, or comes, among their people."""
    rows = np.bincount(state.cohort[state.held()], minlength=state.cohorts)[cohort]
    low, high, own = state.low[cohort], state.high[cohort], encoding.codes[person]
    before = cost(encoding, low, high)
    after = cost(encoding, np.minimum(low, own), np.maximum(high, own))
    return rows * (after - before)


def let_return(state: SeriesState, encoding: Encoding, settings: SeriesSettings) -> None:
    """Let those who wait return to the slot that they held last, if it is empty, no witness, and near.

    Guarantee: whoever has held a witness before it changed hands does not hold it again, so that those who held it
    before company came and those who hold it since are different people.
    """
    person = np.flatnonzero((state.waiting != NONE) & (state.slot != NONE))
    slot = state.slot[person]
    free = (state.holder[slot] == NOBODY) & ~state.gone()[slot]
    free &= ~state.witnesses()[slot] & state.living()[state.cohort[slot]]
    person, slot = person[free], slot[free]
    _, first = np.unique(slot, return_index=True)  # several may have held one
    person, slot = person[first], slot[first]
    rise = _rise(state, encoding, person, state.cohort[slot])
    tired = state.release - state.waiting[person] >= settings.patience
    near = tired | (rise <= MOVE_RISE)
    occupy(state, person[near], slot[near])

"""The private state of a secure series: slots, cohorts and people.

A *slot* is a place in a class with a fixed value. At every release it is held by one person, who has that value, or by
nobody: then its row is a counterfeit. A *cohort* is a set of slots that is shown as a whole or not at all, as one
class. It forms with *original* slots; *company* came later, beside a base slot whose holder changed, its *witness*.
Where a cohort is split, company may part from its witness. *Base* slots, which prove one another safe, are original
slots and those that have parted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

NOBODY = -1
"""Holder of an empty slot."""

NONE = -1
"""No slot, no cohort, no release."""

STILL = np.iinfo(np.int64).max
"""Release until which a slot is empty that still is."""


@dataclass(frozen=True)
class SeriesState:
    """Everything that later releases need; whatever is not here follows from it.

    Slots and cohorts keep their numbers for ever, and what has been shown is never taken out: people who left may
    return, and are protected although they are gone. All integers are int64.

    Attributes
    ----------
    release : int
        Number of the last release; the first is 1.
    value : shape (slots,)
        Code of the whole tuple of sensitive and kept values.
    cohort : shape (slots,)
    witness : shape (slots,)
        NONE for an original slot; of one that came as company, the base slot beside which it came, which is in another
        cohort if the two have parted; of an original slot that was taken away, the base slot beside which it went.
    born : shape (slots,)
        Release that the slot was first shown in.
    holder : shape (slots,)
        Person, or NOBODY.
    empty_from, empty_until : shape (slots,)
        The last time when the slot's holder changed: first release without its last holder, and first release with its
        new one; equal where one took over from the other, STILL if nobody has, NONE if the holder never changed. Of a
        slot that was taken away, ``empty_until`` is the first release without it.
    beside : shape (slots,)
        NONE; of a slot that was taken away, the base slot of the same cohort whose holder changed then. It is the
        witness of a base slot.
    link : shape (slots,)
        Slots that somebody has held one after the other are linked, and so is whatever is linked with these: their
        least number. A slot is *static* where it is linked with no other.
    low, high : dtype of the codes, shape (cohorts, width)
        Box of all that the cohort has held since it last split.
    shown : bool, shape (cohorts,)
        Whether the last release shows the cohort.
    slot : shape (people,)
        The slot that each person holds, or held last; NONE for one who was never in a release.
    since : shape (people,)
        Release in which each took this slot; NONE likewise.
    waiting : shape (people,)
        Release since which each waits for a slot; NONE for others.
    unit : float
        What a row of the first release lost, which prices are counted in; 0 where that is not known.
    """

    release: int
    value: Integers
    cohort: Integers
    witness: Integers
    born: Integers
    holder: Integers
    empty_from: Integers
    empty_until: Integers
    beside: Integers
    link: Integers
    low: NDArray[np.unsignedinteger]
    high: NDArray[np.unsignedinteger]
    shown: NDArray[np.bool_]
    slot: Integers
    since: Integers
    waiting: Integers
    unit: float = 0.0

    @property
    def slots(self) -> int:
        """Number of slots."""
        return len(self.value)

    @property
    def cohorts(self) -> int:
        """Number of cohorts."""
        return len(self.shown)

    def held(self) -> NDArray[np.bool_]:
        """Which slots somebody holds."""
        return self.holder != NOBODY

    def static(self) -> NDArray[np.bool_]:
        """Which slots are linked with no other."""
        return np.bincount(self.link, minlength=self.slots)[self.link] == 1

    def parted(self) -> NDArray[np.bool_]:
        """Which slots have parted from their witness: it is in another cohort."""
        return (self.witness != NONE) & (self.cohort[self.witness] != self.cohort)

    def base(self) -> NDArray[np.bool_]:
        """Which slots are base slots: the original ones of a cohort, and those that have parted from their witness."""
        return (self.witness == NONE) | self.parted()

    def witnesses(self) -> NDArray[np.bool_]:
        """Which slots are witnesses."""
        found = np.zeros(self.slots, bool)
        found[self.witness[self.witness != NONE]] = True
        found[self.beside[self.beside != NONE]] = True
        return found

    def gone(self) -> NDArray[np.bool_]:
        """Which slots have been taken away."""
        return self.beside != NONE

    def never_held(self) -> NDArray[np.bool_]:
        """Which slots have been empty from the start: counterfeits, which keep no cohort from being shown."""
        return (self.empty_from == self.born) & (self.empty_until == STILL)

    def reserve(self) -> NDArray[np.bool_]:
        """Of each cohort the first slot that was never held: it stays empty, as a way in for company."""
        slots = np.flatnonzero(self.never_held())
        reserve = np.zeros(self.slots, bool)
        reserve[slots[np.unique(self.cohort[slots], return_index=True)[1]]] = True
        return reserve

    def hiding(self, hides: bool) -> NDArray[np.bool_]:
        """Which slots keep their cohort from being shown: those that somebody left, if empty slots hide."""
        return hides & ~self.held() & ~self.never_held() & ~self.gone()

    def living(self) -> NDArray[np.bool_]:
        """Which cohorts somebody is in: the others are never shown again."""
        return np.bincount(self.cohort[self.held()], minlength=self.cohorts) > 0

    def showing(self, hides: bool) -> NDArray[np.bool_]:
        """Which cohorts a release shows: those that somebody is in, if no slot keeps them from it."""
        shown = self.living()
        shown[self.cohort[self.hiding(hides)]] = False
        return shown

    def classes(self) -> Integers:
        """Class of each person in the last release: the number of the cohort, NONE for one who is not shown."""
        holding = self.held() & self.shown[self.cohort]
        classes = np.full(len(self.slot), NONE)
        classes[self.holder[holding]] = self.cohort[holding]
        return classes


def empty_state(width: int, dtype: Any) -> SeriesState:
    """The state before the first release, with no people; ``width`` and ``dtype`` are those of the codes."""
    none = np.empty(0, np.int64)
    box = np.empty((0, width), dtype)
    slots = (none, none, none, none, none, none, none, none, none)
    return SeriesState(0, *slots, box, box, np.empty(0, bool), none, none, none)


def with_people(state: SeriesState, people: int) -> SeriesState:
    """The same state with room for people up to a number."""
    more = max(people - len(state.slot), 0)
    return replace(
        state,
        slot=np.append(state.slot, np.full(more, NONE)),
        since=np.append(state.since, np.full(more, NONE)),
        waiting=np.append(state.waiting, np.full(more, NONE)),
    )


def own_copy(state: SeriesState) -> SeriesState:
    """A state whose arrays may be changed."""
    return replace(state, **{field.name: getattr(state, field.name).copy() for field in fields(state)[1:-1]})


def with_slots(
    state: SeriesState, value: Integers, cohort: Integers, witness: Integers, holder: Integers, empty: NDArray[np.bool_]
) -> SeriesState:
    """The same state with more slots, born in its release; those that are ``empty`` have been so from the start.

    A holder's former slot is as before: to link it is the caller's part.
    """
    count = len(value)
    first = state.slots
    added: dict[str, Any] = {
        "value": value,
        "cohort": cohort,
        "witness": witness,
        "born": np.full(count, state.release),
        "holder": np.where(empty, NOBODY, holder),
        "empty_from": np.where(empty, state.release, NONE),
        "empty_until": np.where(empty, STILL, NONE),
        "beside": np.full(count, NONE),
        "link": np.arange(first, first + count),
    }
    grown: dict[str, Any] = {name: np.append(getattr(state, name), more) for name, more in added.items()}
    return replace(state, **grown)


def with_cohorts(state: SeriesState, count: int) -> SeriesState:
    """The same state with more cohorts, which are shown and whose boxes are around nothing yet."""
    width, dtype = state.low.shape[1], state.low.dtype
    return replace(
        state,
        low=np.concatenate([state.low, np.full((count, width), np.iinfo(dtype).max, dtype)]),
        high=np.concatenate([state.high, np.zeros((count, width), dtype)]),
        shown=np.append(state.shown, np.ones(count, bool)),
    )


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

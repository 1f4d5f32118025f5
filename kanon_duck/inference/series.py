"""A series of releases as an intruder sees it: sets of people, what is known about them, who was where when.

An intruder has all releases, knows who is in each and in which class (or in one of which), and does not know who has
which value. A *value* is the whole tuple of what is released of a person as it is; releases are linked by all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

NOBODY = -1
"""Group of a person whom a release does not have."""


@dataclass(frozen=True)
class Sets:
    """Sets of people: values that somebody in each may have, by set and rising.

    Attributes
    ----------
    stops : int64, shape (sets,)
        Where the values of each set end.
    values : int64, shape (entries,)
    counts : int64, same shape
        Rows with the value that may be those of people of the set.
    low, high : int64, same shape
        Bounds of the number of people of the set who have the value; equal for a class.
    """

    stops: Integers
    values: Integers
    counts: Integers
    low: Integers
    high: Integers

    def __len__(self) -> int:
        """Number of sets."""
        return len(self.stops)

    def take(self, chosen: Integers) -> Sets:
        """Some of these sets."""
        places, lengths = slices(self.stops, chosen)
        return Sets(np.cumsum(lengths), self.values[places], self.counts[places], self.low[places], self.high[places])


@dataclass(frozen=True)
class Series:
    """Releases, numbered from 0, and people, numbered from 0.

    A *group* are the people of a release of whom the intruder knows the same: their class, where that is known.
    Each lies in sets of which something is known, the last of which, its *block*, is known exactly and consists of
    whole groups. Where everybody's class is known, groups, blocks and classes are the same.

    Attributes
    ----------
    people, releases : int
    person, group : int64, shape (stays,)
        Who is in which group, as long as the group exists; nobody is in two at a time.
    begins, ends : int64, shape (groups,)
        First release of each group, and the first after it.
    group_stops, group_sets : int64
        The sets that each group lies in, its block last.
    sets : Sets
    class_stops, classes : int64
        The classes that the people of each group may be in.
    contents : Sets
        The classes.
    nobody : bool, shape (people,), or None
        Whom an intruder takes for people of a class although they are none: each stands for a counterfeit row, and is
        in one class alone. Nothing can be told of them.
    """

    people: int
    releases: int
    person: Integers
    group: Integers
    begins: Integers
    ends: Integers
    group_stops: Integers
    group_sets: Integers
    sets: Sets
    class_stops: Integers
    classes: Integers
    contents: Sets
    nobody: NDArray[np.bool_] | None = None

    def blocks(self) -> Integers:
        """The block of each group."""
        return self.group_sets[self.group_stops - 1]


def series_of_classes(
    people: int, releases: int, person: Integers, group: Integers, begins: Integers, ends: Integers, value: Integers
) -> Series:
    """The series of releases in which everybody's class is known.

    Parameters
    ----------
    person, group : int64, shape (stays,)
        Members of each class, as it was from one change to the next.
    begins, ends : int64, shape (groups,)
    value : int64, shape (people,)
        What each person has; of it, the series holds only how often it is in each class.
    """
    values = int(value.max(initial=-1)) + 1
    pairs, counts = np.unique(group * values + value[person], return_counts=True)
    number = np.arange(len(begins))
    stops = np.searchsorted(pairs, values * (number + 1))
    sets = Sets(stops, pairs % max(values, 1), counts, counts, counts)
    return Series(people, releases, person, group, begins, ends, number + 1, number, sets, number + 1, number, sets)


def joined(parts: list[Sets]) -> Sets:
    """All sets of some lists, one list behind the other."""
    shifts = np.cumsum([0] + [len(part.values) for part in parts])
    return Sets(
        np.concatenate([part.stops + shift for part, shift in zip(parts, shifts, strict=False)]),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "counts", "low", "high")),
    )


def slices(stops: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Places of all elements of some of the lists that stand one behind the other, and how many each has.

    Parameters
    ----------
    stops : int64
        Where each list ends.
    chosen : int64
        Numbers of lists.
    """
    starts = np.where(chosen > 0, stops[chosen - 1], 0)
    lengths = stops[chosen] - starts
    shift = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    return shift + np.arange(len(shift)), lengths

"""What all releases together leave possible for every person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from kanon_duck.inference.bounds import Cells, lying_in, tightened
from kanon_duck.inference.comparison import Comparison, Groups, compare
from kanon_duck.inference.series import Integers, Series, Sets, slices
from kanon_duck.kernels.atoms import split_by_sets


@dataclass(frozen=True)
class Conclusion:
    """People told apart by all that is known, as cells.

    Attributes
    ----------
    cell : int64, shape (people,)
        Cell of each person, -1 for one who was never there.
    concluded : Cells
    """

    cell: Integers
    concluded: Cells


def comparisons(series: Series, second: Iterable[int] | None = None) -> Iterator[Comparison]:
    """Compare every pair of releases that tells something new.

    Parameters
    ----------
    second : iterable of int, optional
        The later release of each pair; by default all.
    """
    ended, begun = np.unique(series.ends) - 1, np.unique(series.begins)
    for later in np.intersect1d(begun, np.arange(series.releases) if second is None else list(second)):
        after = series.groups_at(later)
        for earlier in reversed(ended[ended < later]):
            found = compare(series, earlier, later, Groups(series.groups_at(earlier), after))
            if found is not None:
                yield found


def conclude(series: Series, compared: Iterable[Comparison]) -> Conclusion:
    """Put everything together: all classes, and what comparing pairs of releases has told of sets of people.

    Guarantee: no value is excluded that a person can have in some assignment that agrees with all releases.
    """
    known, stops, people = series.sets, *_members(series)
    for comparison in compared:
        told, members = _told(comparison)
        known = known.extended(told)
        stops = np.concatenate([stops, stops[-1:] + np.cumsum(np.bincount(members[0], minlength=len(told)))])
        people = np.concatenate([people, members[1]])
    atoms = np.zeros(series.people, np.int64)
    split_by_sets(stops, people, atoms)
    there = np.zeros(series.people, bool)
    there[people] = True
    _, some, of_person, sizes = np.unique(atoms[there], return_index=True, return_inverse=True, return_counts=True)
    cell = np.full(series.people, -1)
    cell[there] = of_person
    # the sets of an atom are those of any of its people
    order = np.argsort(people, kind="stable")
    sets = np.repeat(np.arange(len(known)), np.diff(stops, prepend=0))[order]
    places, lengths = slices(np.cumsum(np.bincount(people, minlength=series.people)), np.flatnonzero(there)[some])
    cells, links = lying_in(sizes, np.cumsum(lengths), sets[places], known)
    return Conclusion(cell, tightened(cells, links, known))


def _members(series: Series) -> tuple[Integers, Integers]:
    """The people of each set, set by set."""
    places, lengths = slices(series.group_stops, series.group)
    sets, person = series.group_sets[places], np.repeat(series.person, lengths)
    order = np.argsort(sets, kind="stable")
    return np.cumsum(np.bincount(sets, minlength=len(series.sets))), person[order]


def _told(comparison: Comparison) -> tuple[Sets, tuple[Integers, Integers]]:
    """Cells of which a comparison tells more than that they lie in their classes, and their people."""
    cells = comparison.concluded
    known = cells.known
    told = np.bincount(cells.cell(), known.low, len(cells)) > 0
    told |= np.diff(known.stops, prepend=0) < np.diff(comparison.compared.known.stops, prepend=0)
    chosen = np.flatnonzero(told)
    places, lengths = slices(known.stops, chosen)
    sets = Sets(np.cumsum(lengths), known.values[places], known.counts[places], known.low[places], known.high[places])
    number = np.full(len(cells) + 1, -1)
    number[chosen] = np.arange(len(chosen))
    of_person = number[comparison.cell]
    people = np.flatnonzero(of_person >= 0)
    order = np.argsort(of_person[people], kind="stable")
    return sets, (of_person[people][order], people[order])

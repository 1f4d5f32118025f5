"""Concludes from all releases together what stays possible for every person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kanon_duck.inference.bounds import Cells, lying_in, tightened
from kanon_duck.inference.comparison import Comparison
from kanon_duck.inference.series import Integers, Series, Sets, joined, slices
from kanon_duck.kernels.atoms import in_lists, split_by_sets


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


class Findings(NamedTuple):
    """Sets of people of whom a comparison tells more than that they lie in their classes.

    Attributes
    ----------
    sets : Sets
    number, person : int64
        Who is in which.
    """

    sets: Sets
    number: Integers
    person: Integers


def findings(comparison: Comparison, alike: bool = False) -> Findings:
    """What a comparison tells, to be put together with what others tell.

    Parameters
    ----------
    alike : bool
        Whether rows with equal values count as alike, see `LeastPossible`.
    """
    cells = comparison.concluded
    if alike and cells.alike is not None:
        cells = replace(cells, known=replace(cells.known, counts=cells.alike))
    chosen = np.bincount(cells.cell(), cells.known.low, len(cells)) > 0
    chosen |= np.diff(cells.known.stops, prepend=0) < np.diff(comparison.compared.known.stops, prepend=0)
    of_people = comparison.cell_of_people()
    meant = chosen[of_people]
    numbers = np.cumsum(chosen) - 1
    return Findings(cells.known.take(np.flatnonzero(chosen)), numbers[of_people[meant]], comparison.people[meant])


def conclude(series: Series, compared: Iterable[Findings]) -> Conclusion:
    """Put everything together: all classes, and what comparing pairs of releases has told of sets of people.

    Guarantee: no value is excluded that a person can have in some assignment that agrees with all releases.
    """
    places, lengths = slices(series.group_stops, series.group)
    sets, people, known = [series.group_sets[places]], [np.repeat(series.person, lengths)], [series.sets]
    numbers = len(series.sets)
    for more in compared:
        sets.append(more.number + numbers)
        people.append(more.person)
        known.append(more.sets)
        numbers += len(more.sets)
    return _told_apart(series.people, np.concatenate(people), np.concatenate(sets), joined(known))


def _told_apart(count: int, people: Integers, sets: Integers, known: Sets) -> Conclusion:
    """Tell people apart by the sets that they are in, given as pairs of a person and a set."""
    atoms = np.zeros(count, np.int64)
    split_by_sets(*in_lists(sets, people, len(known)), atoms)
    stops, sets_of_people = in_lists(people, sets, count)
    there = np.flatnonzero(np.diff(stops, prepend=0))
    _, some, of_person, sizes = np.unique(atoms[there], return_index=True, return_inverse=True, return_counts=True)
    cell = np.full(count, -1)
    cell[there] = of_person
    places, lengths = slices(stops, there[some])  # the sets of a cell are those of any of its people
    cells, links = lying_in(sizes, np.cumsum(lengths), sets_of_people[places], known)
    return Conclusion(cell, tightened(cells, links, known))

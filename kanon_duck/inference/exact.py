"""The exact intruder: looks at every assignment of rows to people to see what stays possible.

It is the standard for the fast checks, and works on small series alone. People whom no class connects are looked at
by themselves, since what they have says nothing of one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.errors import KanonError
from kanon_duck.inference.series import Integers, Series, slices
from kanon_duck.kernels.atoms import connect, split_by_sets
from kanon_duck.kernels.intruder import enumerate_assignments

MOST_STEPS = 50_000_000
"""Steps of the search after which it gives up; about a second."""


@dataclass(frozen=True)
class Exact:
    """What the exact intruder knows.

    Attributes
    ----------
    cell : int64, shape (people,)
        People of one cell are known the same of; -1 for one who was never there.
    expected : float64, shape (cells, values)
        Mean number of people of the cell with each value, over all assignments of rows to people.
    low, high : int64, shape (cells + sets, values)
        Its bounds, and behind them those of the sets that were asked for.
    assignments : float
        Number of assignments.
    """

    cell: Integers
    expected: NDArray[np.float64]
    low: Integers
    high: Integers
    assignments: float

    def possible(self) -> NDArray[np.bool_]:
        """Which values are possible for a person of each cell."""
        return self.high[: len(self.expected)] > 0


def enumerate_all(
    series: Series,
    people: Integers | None = None,
    sets: Sequence[Integers] = (),
    most_steps: int = MOST_STEPS,
) -> Exact:
    """Look at every assignment of values to people that agrees with all releases.

    Parameters
    ----------
    series : Series
    people : int64, optional
        Only these, and whoever is connected with them through the classes of any release; by default everybody.
    sets : sequence of int64
        People of further sets of whom bounds are asked; of a cell all or nobody.
    most_steps : int

    Raises
    ------
    KanonError
        When there are too many assignments to look at, or none.
    """
    cell, some = _atoms(series)
    values = int(series.contents.values.max(initial=-1)) + 1
    bounds = (len(some) + len(sets), values)
    found = Exact(cell, np.zeros((len(some), values)), np.zeros(bounds, np.int64), np.zeros(bounds, np.int64), 1.0)
    component = _components(series)
    total = 1.0
    for number in np.unique(component[cell >= 0] if people is None else component[people]):
        these = np.flatnonzero((component == number) & (cell >= 0))
        total *= _enumerate(series, these[np.argsort(cell[these], kind="stable")], sets, found, most_steps)
    return replace(found, assignments=total)


def _atoms(series: Series) -> tuple[Integers, Integers]:
    """Number people by the groups they have been in; returns the numbers, and one person of each."""
    order = np.argsort(series.group, kind="stable")
    atoms = np.zeros(series.people, np.int64)
    split_by_sets(np.cumsum(np.bincount(series.group, minlength=len(series.begins))), series.person[order], atoms)
    there = np.unique(series.person)
    _, some, of_person = np.unique(atoms[there], return_index=True, return_inverse=True)
    cell = np.full(series.people, -1)
    cell[there] = of_person
    return cell, there[some]


def _components(series: Series) -> Integers:
    """Number of the component of each person."""
    nodes = np.arange(series.people + len(series.sets))
    connect(series.person, series.people + series.blocks()[series.group], nodes)
    return nodes[: series.people]


def _enumerate(series: Series, people: Integers, sets: Sequence[Integers], found: Exact, most_steps: int) -> float:
    """Look at the people of one component, and write down what is found of their cells."""
    cells, atom = np.unique(found.cell[people], return_inverse=True)
    options = [_options(series, person) for person in people[np.searchsorted(atom, np.arange(len(cells)))]]
    values = np.concatenate([value for value, _ in options])
    rows = np.concatenate([taken.ravel() for _, taken in options])
    widths = np.concatenate([np.full(len(taken), taken.shape[1]) for _, taken in options])
    tracked = [np.array([number]) for number in range(len(cells))]
    tracked += [np.flatnonzero(np.isin(cells, found.cell[members])) for members in sets]
    weights = np.zeros((len(cells), found.expected.shape[1]))
    least = np.full((len(tracked), weights.shape[1]), len(people))
    most = np.zeros(least.shape, np.int64)
    total = enumerate_assignments(
        atom, np.cumsum([len(value) for value, _ in options]), values, np.cumsum(widths), rows,
        series.contents.counts.copy(), np.cumsum([len(each) for each in tracked]), np.concatenate(tracked), weights,
        least, most, most_steps,
    )  # fmt: skip
    if total < 0:
        raise KanonError(
            f"exact is true, but releases connect {len(people)} people, and the exact intruder gives up after "
            f"{most_steps:,} steps: leave exact out"
        )
    if total == 0:
        raise KanonError("releases contradict each other: no assignment of their rows to people agrees with all")
    places = np.concatenate([cells, np.arange(len(found.expected), len(found.low))])
    found.expected[cells] = weights / total
    found.low[places] += least
    found.high[places] += most
    return total


def _options(series: Series, person: int) -> tuple[Integers, Integers]:
    """Values that a person may have with the rows, one in each class, that would be the person's; by value."""
    groups = series.group[series.person == person]
    options: list[tuple[int, list[int]]] = []
    for number, group in enumerate(groups):
        classes = series.classes[series.class_stops[group - 1] if group else 0 : series.class_stops[group]]
        entries, _ = slices(series.contents.stops, classes)
        found = [(int(series.contents.values[entry]), int(entry)) for entry in entries]
        if number == 0:
            options = [(value, [entry]) for value, entry in found]
        else:
            options = [(value, [*taken, entry]) for value, taken in options for other, entry in found if other == value]
    options.sort()
    rows = np.array([taken for _, taken in options], np.int64).reshape(len(options), len(groups))
    return np.array([value for value, _ in options], np.int64), rows

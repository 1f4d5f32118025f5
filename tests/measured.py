"""How far the fast checks fall short of an intruder who looks at every assignment."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from kanon_duck.inference.bounds import LeastPossible
from kanon_duck.inference.channels import vulnerable
from kanon_duck.inference.comparison import Comparison, comparisons
from kanon_duck.inference.exact import Exact, enumerate_all
from kanon_duck.inference.series import Integers, Series
from tests.series import random_series

MOST_MISSED = 0.02
"""Share of the people of whom the exact intruder learns too much that the fast checks may miss."""


@dataclass
class Measured:
    """What was found in some series.

    Attributes
    ----------
    series, people : int
    disclosed : int
        People of whom the exact intruder learns too much.
    missed : int
        Those of these whom the fast checks do not name.
    false_alarms : int
        People whom they name and of whom the exact intruder does not learn too much.
    clean, unnoticed : int
        Series in which they name nobody, and those of these in which somebody is disclosed all the same.
    """

    series: int = 0
    people: int = 0
    disclosed: int = 0
    missed: int = 0
    false_alarms: int = 0
    clean: int = 0
    unnoticed: int = 0

    def __iadd__(self, other: Measured) -> Measured:
        """Add what was found in others."""
        return Measured(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


def measure(seed: int, releases: int, kind: str, least: int = 2, by_rows: bool = False) -> Measured:
    """Let both look at a random series."""
    generator = np.random.default_rng([seed, releases, *kind.encode()])
    made, value = random_series(generator, releases, kind, least, values=2 * least)
    compared = list(comparisons(made))
    codes = None if by_rows else np.arange(value.max() + 1)
    told = vulnerable(made, [LeastPossible(None, codes, least)], compared)
    told_apart = [people for each in compared for people in nameable(each)]
    exact = enumerate_all(made, sets=told_apart if by_rows else ())
    left = rows_left(made, told_apart, exact) if by_rows else exact.possible().sum(axis=1)[exact.cell]
    there = exact.cell >= 0
    true = there & (left < least)
    assert exact.possible()[exact.cell[there], value[there]].all(), "what is true is possible"
    return Measured(
        series=1,
        people=int(there.sum()),
        disclosed=int(true.sum()),
        missed=int(np.sum(true & ~told)),
        false_alarms=int(np.sum(told & ~true)),
        clean=int(not told.any()),
        unnoticed=int(true.any() and not told.any()),
    )


def nameable(comparison: Comparison) -> list[Integers]:
    """People whom two releases tell apart: by both their classes, in classes that hold one of the other's people, and
    all in connected classes who are in one release alone."""
    cell = comparison.cell_of_people()
    found = [comparison.people[cell == number] for number in range(len(comparison.before))]
    for one, other in ((comparison.before, comparison.after), (comparison.after, comparison.before)):
        for group in np.unique(one[one >= 0]):
            hosts = other[one == group]
            if (hosts >= 0).all():
                found.append(comparison.people[(np.isin(other, hosts) & (one != group))[cell]])
        component = np.arange(len(one))
        for _ in one:  # cells that share a class have the same number in the end
            for groups in (one, other):
                for group in np.unique(groups[groups >= 0]):
                    component[groups == group] = component[groups == group].min()
        for number in np.unique(component):
            found.append(comparison.people[((component == number) & (one < 0))[cell]])
    return [people for people in found if len(people)]


def rows_left(made: Series, told_apart: list[Integers], exact: Exact) -> Integers:
    """By how few rows the exact intruder knows each person.

    The person has one of the values that are possible, and is one of the people with it of every set whose values
    are known: classes, people who can be told apart by two releases, and by all.
    """
    number = made.sets.values.max() + 1
    classes = np.zeros((len(made.sets), number), np.int64)
    classes[np.repeat(np.arange(len(made.sets)), np.diff(made.sets.stops, prepend=0)), made.sets.values] = (
        made.sets.counts
    )
    known = [(made.person[made.group == group], classes[group]) for group in range(len(classes))]
    cells = [np.flatnonzero(exact.cell == cell) for cell in range(len(exact.expected))]
    for place, people in enumerate(cells + told_apart):
        if (exact.low[place] == exact.high[place]).all():
            known.append((people, exact.low[place]))
    rows = np.full((made.people, number), made.people)
    for people, counts in known:
        rows[people] = np.minimum(rows[people], counts)
    return np.where(exact.possible()[exact.cell], rows, 0).sum(axis=1)

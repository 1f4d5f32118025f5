"""Finds inference channels: releases that, compared, leave too few rows or values possible for somebody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.inference.bounds import Cells, LeastPossible, candidates
from kanon_duck.inference.comparison import Comparison
from kanon_duck.inference.conclusion import Conclusion, Findings, conclude, findings
from kanon_duck.inference.series import NOBODY, Integers, Series, slices

ONE_RELEASE = "one release"
"""A class breaks the requirement by itself."""
ABSENT_BEFORE, IN_BOTH, ABSENT_AFTER = "absent before", "in both", "absent after"
"""A set of Fig. 6 of Byun et al. 2006 does, for people who are not in the earlier release (its first line) or in both
(its second), or the mirror image of the first line, for people who are not in the later one."""
COMPLEMENT = "complement"
"""What is left when the other sets of the two releases are taken away."""
SERIES = "series"
"""What is left when all releases are put together."""


@dataclass(frozen=True)
class Channel:
    """One set of people of whom too little is hidden.

    Attributes
    ----------
    kind : str
    first, second : int
        The releases that tell it; the first and the last of all for a series.
    requirement : LeastPossible
    people : int64
    candidates : int
        How many values, or rows, stay possible.
    values : int64
        The values that do.
    before, after : int64
        Groups that were compared in the two releases.
    """

    kind: str
    first: int
    second: int
    requirement: LeastPossible
    people: Integers
    candidates: int
    values: Integers
    before: Integers
    after: Integers


def channels(
    series: Series, requirements: list[LeastPossible], compared: Iterable[Comparison]
) -> tuple[list[Channel], NDArray[np.bool_]]:
    """All channels of a series, each told once, where two releases tell it first.

    Parameters
    ----------
    compared : iterable of Comparison
        Of every pair of releases.

    Returns
    -------
    list of Channel
    bool, shape (people,)
        Who is the victim of any.
    """
    victims = np.zeros((len(requirements), series.people), bool)
    if series.nobody is not None:
        victims[:, series.nobody] = True  # whoever is a victim already makes no channel
    each = list(zip(requirements, victims, strict=True))
    found = [channel for requirement, own in each for channel in _single(series, requirement, own)]
    collected: list[Findings] = []
    for comparison in compared:
        collected.append(findings(comparison, any(each.alike for each in requirements)))
        found += [channel for requirement, own in each for channel in _between(comparison, requirement, own)]
    conclusion = conclude(series, collected)
    found += [channel for requirement, own in each for channel in _of_all(series, conclusion, requirement, own)]
    if series.nobody is None:
        return found, np.asarray(victims.any(axis=0))
    of_people = [replace(channel, people=channel.people[~series.nobody[channel.people]]) for channel in found]
    return of_people, np.asarray(victims.any(axis=0) & ~series.nobody)


def vulnerable(series: Series, requirements: list[LeastPossible], compared: Iterable[Comparison]) -> NDArray[np.bool_]:
    """Who is the victim of any channel, by person."""
    found = np.zeros(series.people, bool)
    collected: list[Findings] = []
    for comparison in compared:
        collected.append(findings(comparison, any(each.alike for each in requirements)))
        for requirement in requirements:
            few = candidates(comparison.concluded, requirement) < requirement.least
            found[comparison.people[few[comparison.cell_of_people()]]] = True
    conclusion = conclude(series, collected)
    for requirement in requirements:
        few = candidates(conclusion.concluded, requirement) < requirement.least
        found |= np.append(few, False)[conclusion.cell]  # who is in no cell takes the last element
    return found if series.nobody is None else found & ~series.nobody


def _single(series: Series, requirement: LeastPossible, victims: NDArray[np.bool_]) -> list[Channel]:
    """Classes that break the requirement by themselves."""
    numbers = np.arange(len(series.sets))
    few = candidates(Cells(np.zeros_like(numbers), numbers + 1, numbers, series.sets), requirement)
    first_sets = series.group_sets[np.concatenate([[0], series.group_stops[:-1]]).astype(np.int64)]
    found = []
    for group in np.flatnonzero(few[first_sets] < requirement.least):
        number = first_sets[group]
        people = np.unique(series.person[series.group == group])
        victims[people] = True
        release = int(series.begins[group])
        values = _values(series.sets.stops, series.sets.values, number)
        nothing = np.array([], np.int64)
        found.append(
            Channel(
                ONE_RELEASE, release, release, requirement, people, int(few[number]), values, nothing, np.array([group])
            )
        )
    return found


def _between(comparison: Comparison, requirement: LeastPossible, victims: NDArray[np.bool_]) -> list[Channel]:
    """What two releases tell of people of whom no earlier ones have told as much."""
    at_sight = candidates(comparison.compared, requirement)
    left = candidates(comparison.concluded, requirement)
    broken = np.flatnonzero(left < requirement.least)
    stops = np.cumsum(comparison.compared.sizes)
    found = []
    for cell in broken:
        people = np.sort(comparison.people[stops[cell] - comparison.compared.sizes[cell] : stops[cell]])
        if victims[people].all():
            continue
        victims[people] = True
        before, after = comparison.before[cell], comparison.after[cell]
        kind = COMPLEMENT
        if at_sight[cell] < requirement.least:
            kind = ABSENT_BEFORE if before == NOBODY else ABSENT_AFTER if after == NOBODY else IN_BOTH
        known = comparison.concluded.known
        values = _values(known.stops, known.values, cell)
        found.append(
            Channel(
                kind, comparison.first, comparison.second, requirement, people, int(left[cell]), values,
                _partners(comparison.before, comparison.after, before, after),
                _partners(comparison.after, comparison.before, after, before),
            )
        )  # fmt: skip
    return found


def _partners(these: Integers, others: Integers, own: int, other: int) -> Integers:
    """The group of a cell in one release, or those that the people of its group in the other have in this one."""
    groups = np.array([own]) if own != NOBODY else np.unique(these[others == other])
    return groups[groups != NOBODY]


def _of_all(
    series: Series, conclusion: Conclusion, requirement: LeastPossible, victims: NDArray[np.bool_]
) -> list[Channel]:
    """What all releases tell together of people of whom no two tell as much."""
    left = candidates(conclusion.concluded, requirement)
    order = np.argsort(conclusion.cell, kind="stable")
    stops = np.searchsorted(conclusion.cell[order], np.arange(len(left)), side="right")
    found = []
    for cell in np.flatnonzero(left < requirement.least):
        people = order[stops[cell] - conclusion.concluded.sizes[cell] : stops[cell]]
        if victims[people].all():
            continue
        victims[people] = True
        groups = series.group[series.person == people[0]]
        groups = groups[np.argsort(series.begins[groups], kind="stable")]
        values = _values(conclusion.concluded.known.stops, conclusion.concluded.known.values, cell)
        first, last = int(series.begins[groups[0]]), int(series.begins[groups[-1]])
        found.append(
            Channel(SERIES, first, last, requirement, people, int(left[cell]), values, groups[:-1], groups[-1:])
        )
    return found


def _values(stops: Integers, values: Integers, number: np.int64) -> Integers:
    """The values of one of some sets."""
    places, _ = slices(stops, np.array([number]))
    return values[places]

"""Follows what an intruder learns about one person, release by release."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.inference.comparison import Comparison, comparisons
from kanon_duck.inference.conclusion import Findings, conclude, findings
from kanon_duck.inference.exact import enumerate_all
from kanon_duck.inference.series import NOBODY, Integers, Series, Sets, slices


@dataclass(frozen=True)
class AttackStep:
    """What is known after a release and all before it.

    Attributes
    ----------
    release : int
    class_rows : int or None
        Rows of the victim's class, None where the release does not have the victim.
    values : int64
        Values still possible.
    probabilities : float64, same shape
    narrowed_by : str or None
        What has ruled values out, None where nothing has.
    """

    release: int
    class_rows: int | None
    values: Integers
    probabilities: NDArray[np.float64]
    narrowed_by: str | None


def trace_victim(series: Series, victim: int, titles: list[str], exact: bool) -> list[AttackStep]:
    """Follow a person who has a class in some release; nothing is known before the first of these.

    Parameters
    ----------
    series : Series
    victim : int
    titles : list of str
        What the releases are called.
    exact : bool
        Look at every assignment instead of at bounds.

    Raises
    ------
    KanonError
        When there are too many assignments to look at.
    """
    steps: list[AttackStep] = []
    collected: list[Findings] = []
    possible: Integers | None = None
    groups = series.group[series.person == victim]
    for release in range(series.releases):
        known = _until(series, release + 1)
        new = list(comparisons(series, [release]))
        collected += map(findings, new)
        own = next((int(group) for group in groups if series.begins[group] <= release < series.ends[group]), NOBODY)
        if own == NOBODY and possible is None:
            continue
        values, probabilities = _exactly(known, victim) if exact else _within_bounds(known, victim, collected)
        narrowed_by = _cause(series, victim, own, possible, values, new, titles, release)
        rows = None if own == NOBODY else int(series.contents.counts[_entries(series.contents, own)].sum())
        possible = values
        steps.append(AttackStep(release, rows, values, probabilities, narrowed_by))
    return steps


def _until(series: Series, stop: int) -> Series:
    """The same series without the releases from ``stop`` on."""
    there = series.begins[series.group] < stop
    return replace(
        series,
        releases=stop,
        person=series.person[there],
        group=series.group[there],
        ends=np.minimum(series.ends, stop),
    )


def _entries(sets: Sets, number: int) -> Integers:
    """Places of the values of a set."""
    return slices(sets.stops, np.array([number]))[0]


def _exactly(series: Series, victim: int) -> tuple[Integers, NDArray[np.float64]]:
    """Values of a person, and the share of all assignments in which each is the person's."""
    found = enumerate_all(series, np.array([victim]))
    expected = found.expected[found.cell[victim]]
    values = np.flatnonzero(found.possible()[found.cell[victim]])
    return values, expected[values] / expected.sum()


def _within_bounds(series: Series, victim: int, compared: list[Findings]) -> tuple[Integers, NDArray[np.float64]]:
    """Values that the bounds leave to a person, each by the middle of its bounds."""
    found = conclude(series, compared)
    known = found.concluded.known
    entries = _entries(known, int(found.cell[victim]))
    middle = known.low[entries] + known.high[entries]
    return known.values[entries], middle / middle.sum()


def _cause(
    series: Series,
    victim: int,
    own: int,
    before: Integers | None,
    after: Integers,
    compared: list[Comparison],
    titles: list[str],
    release: int,
) -> str | None:
    """What has ruled out values that were possible before."""
    if before is not None and len(before) == len(after):
        return None
    left = before
    if own != NOBODY:
        held = series.contents.values[_entries(series.contents, own)]
        left = held if before is None else np.intersect1d(before, held)
        if len(left) == len(after):
            return f"the class in {titles[release]}"
    assert left is not None
    for comparison in compared:
        known = comparison.concluded.known
        for cell in comparison.cell_of_people()[comparison.people == victim]:
            if len(np.intersect1d(left, known.values[_entries(known, cell)])) == len(after):
                return f"{titles[comparison.first]} and {titles[release]} compared"
    return f"all releases up to {titles[release]} together"

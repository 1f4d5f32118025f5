"""People who are known by quasi-identifiers alone, where regions of classes overlap."""

from __future__ import annotations

import numpy as np
import pytest

from kanon_duck.errors import KanonError
from kanon_duck.inference.bounds import LeastPossible
from kanon_duck.inference.channels import vulnerable
from kanon_duck.inference.comparison import comparisons
from kanon_duck.inference.exact import enumerate_all
from kanon_duck.inference.regions import series_of_regions
from kanon_duck.inference.series import Series, Sets
from tests.measured import MOST_MISSED


def overlapping(seed: int, releases: int) -> Series:
    """Random releases of people with an age, whose classes are intervals that may overlap."""
    generator = np.random.default_rng(seed)
    people = 9
    ages, value = generator.permutation(people), generator.integers(3, size=people)
    begins = np.where(np.arange(people) < 6, 0, generator.integers(releases, size=people))
    stops, values, counts = [], [], []
    class_stops, candidates = [], []
    for release in range(releases):
        there = np.flatnonzero(begins <= release)
        by_age = there[np.argsort(ages[there])]
        labels = np.arange(len(there)) // 3
        swapped = generator.integers(len(there) - 1, size=2)
        for place in swapped:  # neighbours change places, so that intervals overlap
            labels[[place, place + 1]] = labels[[place + 1, place]]
        first = len(stops)
        pairs = []
        for label in np.unique(labels):
            members = by_age[labels == label]
            held, count = np.unique(value[members], return_counts=True)
            values += list(held)
            counts += list(count)
            covered = there[(ages[there] >= ages[members].min()) & (ages[there] <= ages[members].max())]
            pairs += [(person, len(stops)) for person in covered]
            stops.append(len(values))
        assert first < len(stops)
        class_stops.append(len(stops))
        person, number = np.array(sorted(pairs)).T
        candidates.append((person, number))
    held = np.array(counts)
    contents = Sets(np.array(stops), np.array(values), held, held, held)
    return series_of_regions(people, contents, np.array(class_stops), candidates)


def test_overlapping_regions_hide_something_and_the_checks_stay_true() -> None:
    disclosed = missed = unsure = 0
    for seed in range(40):
        made = overlapping(seed, 2 + seed % 2)
        unsure += int((np.diff(made.class_stops, prepend=0) > 1).any())
        compared = list(comparisons(made))
        named = vulnerable(made, [LeastPossible("value", np.arange(3), 2)], compared)
        exact = enumerate_all(made)
        few = exact.possible().sum(axis=1)[exact.cell] < 2
        assert not (named & ~few).any()
        disclosed += few.sum()
        missed += (few & ~named).sum()
    print(f"{unsure} series with overlaps, {disclosed} people disclosed, {missed} missed")
    assert unsure > 15
    assert disclosed > 50
    assert missed <= MOST_MISSED * disclosed


def test_people_who_are_not_those_of_a_release_are_refused() -> None:
    counts = np.array([2, 2])
    contents = Sets(np.array([1, 2]), np.array([0, 1]), counts, counts, counts)
    person, number = np.array([0, 1, 2, 3]), np.array([0, 0, 0, 1])
    with pytest.raises(KanonError, match="release 1: a class of 2 rows can only be made of"):
        series_of_regions(4, contents, np.array([2]), [(person, number)])

"""An intruder who tries every assignment of values to people, and a check of named ones; both know releases alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from kanon_duck.inference.exact import enumerate_all
from kanon_duck.inference.series import Series, Sets


@dataclass
class Releases:
    """Classes of all releases, one behind the other: the people of each, and how often each value is in its rows."""

    people: list[frozenset[int]] = field(default_factory=list)
    values: list[Counter[int]] = field(default_factory=list)
    release: list[int] = field(default_factory=list)

    def add(self, release: int, people: list[int], values: list[int]) -> None:
        self.release.append(release)
        self.people.append(frozenset(people))
        self.values.append(Counter(values))

    def everybody(self) -> list[int]:
        return sorted(set().union(*self.people))


def agrees(releases: Releases, value: dict[int, int]) -> bool:
    """Whether values of people reproduce every class, counterfeits having what is left over."""
    for people, values in zip(releases.people, releases.values, strict=True):
        if Counter(value[person] for person in people) - values:
            return False
    return True


def possible_values(releases: Releases) -> dict[int, set[int]]:
    """The values that each person has in some assignment that agrees with all releases."""
    found: dict[int, set[int]] = {person: set() for person in releases.everybody()}
    distinct = {
        (people, tuple(sorted(values.items()))) for people, values in zip(releases.people, releases.values, strict=True)
    }
    rows = sorted(distinct, key=lambda each: (sorted(each[0]), each[1]))
    classes_of = {person: [n for n, (people, _) in enumerate(rows) if person in people] for person in found}
    for group in _connected(rows):
        order = _near_order(group, rows, classes_of)
        for person in order:
            options = set.intersection(*(set(dict(rows[n][1])) for n in classes_of[person]))
            for value in options - found[person]:
                left = [dict(values) for _, values in rows]
                given = {person: value}
                if _take(left, classes_of[person], value) and _search(order, 0, left, classes_of, given):
                    for each, own in given.items():
                        found[each].add(own)
    return found


def _connected(rows: list) -> list[set[int]]:
    groups: list[set[int]] = []
    for people, _ in rows:
        touching = [group for group in groups if group & people]
        groups = [group for group in groups if not group & people]
        groups.append(set(people).union(*touching))
    return groups


def _near_order(group: set[int], rows: list, classes_of: dict[int, list[int]]) -> list[int]:
    """People of a class one after the other, so that contradictions show early."""
    order: list[int] = []
    todo = set(group)
    while todo:
        seen = set(order)
        best = max(
            sorted(todo), key=lambda person: max(len(rows[n][0] & seen) / len(rows[n][0]) for n in classes_of[person])
        )
        order.append(best)
        todo.remove(best)
    return order


def _take(left: list[dict[int, int]], classes: list[int], value: int) -> bool:
    if any(left[n].get(value, 0) == 0 for n in classes):
        return False
    for n in classes:
        left[n][value] -= 1
    return True


def _search(
    order: list[int], at: int, left: list[dict[int, int]], classes_of: dict[int, list[int]], given: dict[int, int]
) -> bool:
    while at < len(order) and order[at] in given:
        at += 1
    if at == len(order):
        return True
    person = order[at]
    classes = classes_of[person]
    for value in list(left[classes[0]]):
        if _take(left, classes, value):
            given[person] = value
            if _search(order, at + 1, left, classes_of, given):
                return True
            del given[person]
            for n in classes:
                left[n][value] += 1
    return False


def possible_by_product(releases: Releases) -> dict[int, set[int]]:
    """The same by the product's exact intruder."""
    everybody = releases.everybody()
    number = {person: place for place, person in enumerate(everybody)}
    person = np.array([number[each] for people in releases.people for each in sorted(people)])
    group = np.repeat(np.arange(len(releases.people)), [len(people) for people in releases.people])
    values = np.array([value for each in releases.values for value in sorted(each)])
    counts = np.array([each[value] for each in releases.values for value in sorted(each)])
    stops = np.cumsum([len(each) for each in releases.values])
    sets = Sets(stops, values, counts, counts, counts)
    begins = np.array(releases.release)
    begins -= begins.min()
    numbers = np.arange(len(begins))
    series = Series(
        len(everybody), int(begins.max()) + 1, person, group, begins, begins + 1, numbers + 1, numbers, sets,
        numbers + 1, numbers, sets,
    )  # fmt: skip
    exact = enumerate_all(series)
    possible = exact.possible()[exact.cell]
    return {each: set(np.flatnonzero(possible[place]).tolist()) for place, each in enumerate(everybody)}

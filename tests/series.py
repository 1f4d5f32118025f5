"""Tiny random series of releases, in which an intruder who looks at everything can be afforded."""

from __future__ import annotations

import numpy as np

from kanon_duck.inference.series import Integers, Series, series_of_classes


def random_series(
    generator: np.random.Generator,
    releases: int,
    kind: str,
    diverse: int = 2,
    rows: int = 8,
    values: int = 4,
) -> tuple[Series, Integers]:
    """Releases of people who come, and with ``kind`` deletes or updates go or change; and everybody's value.

    Each release is put into classes of two people or more at random, or as before with some of them mended, as
    maintenance does; every class has ``diverse`` different values, as far as a few tries find such classes.
    """
    value = list(generator.integers(values, size=rows))
    there = list(range(rows))
    labels = dict(zip(there, _classes(generator, np.array(value), diverse), strict=True))
    stays: list[tuple[int, int, int]] = []
    begins: list[int] = []
    ends: list[int] = []
    standing: dict[tuple[int, ...], int] = {}
    for release in range(releases):
        if release:
            if kind != "inserts":
                gone = generator.choice(there, generator.integers(0, 3), replace=False)
                there = [person for person in there if person not in gone]
                for person in gone if kind == "updates" else ():
                    if generator.random() < 0.6:  # the same with another value is somebody else
                        value.append(int(generator.integers(values)))
                        there.append(len(value) - 1)
                        labels[len(value) - 1] = labels[person]
            for _ in range(generator.integers(1, 4)):
                value.append(int(generator.integers(values)))
                there.append(len(value) - 1)
            labels = _succeed(generator, there, labels, np.array(value), diverse)
        members: dict[int, list[int]] = {}
        for person in there:
            members.setdefault(labels[person], []).append(person)
        kept = {}
        for people in members.values():
            number = standing.get(tuple(people))
            if number is None:
                number = len(begins)
                begins.append(release)
                ends.append(release)
                stays += [(person, number, 0) for person in people]
            ends[number] = release + 1
            kept[tuple(people)] = number
        standing = kept
    person, group, _ = np.array(stays).T
    return series_of_classes(
        len(value), releases, person, group, np.array(begins), np.array(ends), np.array(value)
    ), np.array(value)


def _diverse(labels: Integers, value: Integers, diverse: int) -> bool:
    """Whether every class has two people and enough values."""
    return all(
        np.count_nonzero(labels == label) >= 2 and len(set(value[labels == label])) >= diverse
        for label in np.unique(labels)
    )


def _classes(generator: np.random.Generator, value: Integers, diverse: int) -> Integers:
    """Random classes."""
    for _ in range(200):
        labels = generator.integers(max(1, len(value) // 3), size=len(value))
        if _diverse(labels, value, diverse):
            return labels
    return np.zeros(len(value), np.int64)


def _succeed(
    generator: np.random.Generator, there: list[int], labels: dict[int, int], value: Integers, diverse: int
) -> dict[int, int]:
    """Classes of the next release: those of the last with new people in some of them and a few moves, or new ones."""
    own = value[there]
    if generator.random() < 0.7:
        last = max(labels.values()) + 1
        for _ in range(50):
            tried = np.array([labels.get(person, -1) for person in there])
            new = tried < 0
            tried[new] = generator.integers(last + 1, size=np.count_nonzero(new))
            moves = generator.integers(0, 4)
            moved = generator.integers(len(there), size=moves)
            tried[moved] = generator.integers(last + 1, size=moves)
            if _diverse(tried, own, diverse):
                return dict(zip(there, map(int, tried), strict=True))
    return dict(zip(there, map(int, _classes(generator, own, diverse)), strict=True))

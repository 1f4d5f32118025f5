"""Tiny random series of secure releases, and what is known of each person afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kanon_duck.encoding.codes import Encoding
from kanon_duck.secure.assignment import assignment
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import certificates
from kanon_duck.secure.people import Changes
from kanon_duck.secure.release import Release, first_release, next_release
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NONE, SeriesState
from tests.secure_intruder import Releases, agrees, possible_by_product, possible_values


@dataclass
class Outcome:
    """A series: what was released, the last state, everybody's value, and how often each rule was at work."""

    releases: Releases
    state: SeriesState
    value: np.ndarray
    bounds: Bounds
    waiting: int = 0


def _encoding(codes: np.ndarray) -> Encoding:
    padded = np.zeros((len(codes), 16), np.uint16)
    padded[:, :2] = codes
    caps, weights = np.zeros(16, np.uint16), np.zeros(16, np.float32)
    caps[:2], weights[:2] = 20, 1 / 20
    return Encoding(padded, caps, weights, 2, np.array([0, 1]), np.array([True, True]))


def random_bounds(generator: np.random.Generator) -> Bounds:
    """k alone, one sensitive attribute, two, or one and a kept column."""
    k = int(generator.integers(2, 4))
    kind = generator.integers(4)
    if kind == 0:
        return Bounds(k, np.zeros((1, 0), np.int64), np.zeros(0, np.int64))
    if kind == 1:
        values = int(generator.integers(3, 6))
        return Bounds(k, np.arange(values)[:, None], np.array([generator.integers(2, 4)]))
    if kind == 2:
        return Bounds(
            k, np.array([[a, b] for a in range(3) for b in range(2)]), np.array([generator.integers(2, 4), 2])
        )
    return Bounds(k, np.array([[a] for a in range(3) for _ in range(2)]), np.array([generator.integers(2, 4)]))


def random_series(seed: int, most_releases: int = 5, churns: bool = False) -> Outcome | None:
    """A series of random changes; None where not even the first release is possible.

    Where it ``churns``, many people come and leave under the least bounds, so that many slots are taken away.
    """
    generator = np.random.default_rng(seed)
    bounds = random_bounds(generator)
    settings = SeriesSettings(
        on_delete=str(generator.choice(["retire", "counterfeit", "counterfeit", "remove"])),
        reserve=float(generator.choice([0.0, 0.5, 1.0])),
        patience=int(generator.integers(1, 4)),
        effort=200.0,
    )
    grows = (
        generator.random() < 0.4
    )  # many newcomers, and counterfeits that let them in: slots part from their witnesses
    if grows:
        bounds = replace(bounds, k=int(generator.integers(2, 5)), required=np.minimum(bounds.required, 2))
        settings = replace(settings, on_delete="counterfeit", reserve=1.0)
    if churns:
        bounds = replace(bounds, k=2, required=np.minimum(bounds.required, 2))
        settings = replace(settings, on_delete=str(generator.choice(["retire", "counterfeit"])))
    people = int(bounds.k + generator.integers(2, 6) if grows else generator.integers(6, 13))
    skew = generator.dirichlet(np.ones(bounds.tuples) * 3)
    most = 60
    value = generator.choice(bounds.tuples, most, p=skew)
    codes = generator.integers(0, 21, (most, 2))
    labels = _labels(value[:people], bounds, generator)
    release = first_release(_encoding(codes[:people]), value[:people], labels, bounds, settings, seed, _no_check)
    outcome = Outcome(Releases(), release.state, value, bounds)
    _publish(outcome, release, value)
    there, gone = list(range(people)), []
    for _ in range(int(generator.integers(1, most_releases))):
        left, arrived, moved = [], [], []
        for _ in range(int(generator.integers(1, 5) if churns else generator.integers(0, 2 if grows else 4))):
            if there:
                left.append(there.pop(int(generator.integers(len(there)))))
        for person in left:
            if generator.random() < 0.3:  # another value: another person
                codes[people] = codes[person]
                arrived.append(people)
                people += 1
        for person in list(gone):
            if generator.random() < 0.4:
                gone.remove(person)
                arrived.append(person)
                if generator.random() < 0.5:
                    codes[person] = generator.integers(0, 21, 2)
        for _ in range(int(generator.integers(2, 6) if grows or churns else generator.integers(0, 6))):
            arrived.append(people)
            people += 1
        for person in there:
            if generator.random() < 0.1:
                codes[person] = generator.integers(0, 21, 2)
                moved.append(person)
        gone += left
        there += arrived
        changes = Changes(*(np.array(sorted(each), np.int64) for each in (left, arrived, moved)))
        release = next_release(
            release.state, _encoding(codes[:people]), value[:people], changes, bounds, settings, seed, _no_check
        )
        assert_whole(release, there)
        _publish(outcome, release, value)
    outcome.state = release.state
    return outcome if outcome.releases.people else None


def assert_whole(release: Release, there: list[int]) -> None:
    """Everybody who is there is shown or waits, with a reason, and nobody else."""
    shown = release.state.classes() != NONE
    assert not np.any(shown & (release.reason != 0))
    assert sorted(np.flatnonzero(shown | (release.reason != 0))) == sorted(there)


def _no_check(_share: float | None) -> None:
    pass


def _labels(value: np.ndarray, bounds: Bounds, generator: np.random.Generator) -> np.ndarray:
    """Random classes that satisfy the bounds, or one, or none."""
    for groups in (3, 3, 3, 2, 2, 2, 1):
        labels = generator.integers(groups, size=len(value))
        sizes = np.bincount(labels, minlength=groups)
        order = np.argsort(labels, kind="stable")
        enough = bounds.diverse(np.cumsum(sizes), value[order]) & (sizes >= bounds.k)
        if np.all(enough[sizes > 0]):
            return np.unique(labels, return_inverse=True)[1]
    return np.full(len(value), -1)


def _publish(outcome: Outcome, release: Release, value: np.ndarray) -> None:
    """What readers see of a release, in terms of people and rows."""
    state = release.state
    classes = state.classes()
    for number in np.unique(classes[classes != NONE]):
        people = np.flatnonzero(classes == number)
        rows = state.value[(state.cohort == number) & ~state.gone()]
        assert not np.any(value[people] != state.value[state.slot[people]])
        outcome.releases.add(state.release, people.tolist(), rows.tolist())
    outcome.waiting += int(np.count_nonzero(release.reason))


def below_bound(outcome: Outcome, intruder: Callable[[Releases], dict[int, set[int]]] = possible_values) -> list[int]:
    """People for whom too few values stay possible, or too few rows of one of their classes."""
    bounds, found = outcome.bounds, []
    for person, values in intruder(outcome.releases).items():
        assert int(outcome.value[person]) in values
        classes = [
            contents
            for people, contents in zip(outcome.releases.people, outcome.releases.values, strict=True)
            if person in people
        ]
        # rows that all classes of the person have in common, by value
        rows = sum(min(contents[value] for contents in classes) for value in values)
        different = [len(set(column)) for column in bounds.attribute_values[sorted(values)].T]
        if rows < bounds.k or any(have < need for have, need in zip(different, bounds.required, strict=True)):
            found.append(person)
    return found


def check_certificates(outcome: Outcome) -> np.ndarray:
    """Every assignment that a certificate names agrees with all releases; how many people have each rule."""
    state, bounds = outcome.state, outcome.bounds
    people = np.array(outcome.releases.everybody())
    found = certificates(state, bounds, people)
    begin = 0
    for place, person in enumerate(people):
        values = found.values[begin : found.stops[place]]
        begin = found.stops[place]
        assert found.candidates[place] >= bounds.k
        for column, need in zip(bounds.attribute_values[values].T, bounds.required, strict=True):
            assert len(set(column)) >= need
        assert outcome.value[person] in values
        for value in values:
            given = assignment(state, int(person), int(value))
            assert given.get(int(person), int(outcome.value[person])) == value
            assert agrees(outcome.releases, dict(enumerate(outcome.value.tolist())) | given)
    return np.bincount(found.rule, minlength=3)


def both_intruders(outcome: Outcome) -> tuple[list[int], list[int]]:
    return below_bound(outcome), below_bound(outcome, possible_by_product)

"""Tiny random series of secure releases, and what is known of each person afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from kanon_duck.encoding.codes import Encoding
from kanon_duck.secure.assignment import assignment
from kanon_duck.secure.bounds import Bounds, Unions
from kanon_duck.secure.certificates import certificates, verify
from kanon_duck.secure.people import Changes
from kanon_duck.secure.release import Release, first_release, next_release
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NONE, SeriesState
from kanon_duck.secure.union_forming import form_unions, no_unions
from kanon_duck.secure.unions import as_series
from tests.secure_intruder import Releases, agrees, possible_by_product, possible_values

MOST_PEOPLE = 60


@dataclass
class Outcome:
    """A series: what was released, the last state, everybody's value, and the series of a view derived from it.

    Of a derived series, ``last`` has the slot of the series that each person has held last of those in it, and ``since``
    the release since when.
    """

    releases: Releases
    state: SeriesState
    value: np.ndarray
    bounds: Bounds
    derived: Outcome | None = None
    last: np.ndarray = field(default_factory=lambda: np.full(MOST_PEOPLE, NONE))
    since: np.ndarray = field(default_factory=lambda: np.full(MOST_PEOPLE, NONE))


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


def random_series(seed: int, most_releases: int = 5, churns: bool = False, derives: bool = False) -> Outcome | None:
    """A series of random changes; None where not even the first release is possible.

    Where it ``churns``, many people come and leave under the least bounds, so that many slots are taken away. Where it
    ``derives``, another view with higher bounds is derived from it, at the first release or later.
    """
    generator = np.random.default_rng(seed)
    bounds = random_bounds(generator)
    settings = SeriesSettings(
        on_delete=str(generator.choice(["retire", "counterfeit", "counterfeit", "remove"])),
        reserve=float(generator.choice([0.0, 0.5, 1.0])),
        patience=int(generator.integers(1, 4)),
        effort=200.0,
    )
    # many newcomers, and counterfeits that let them in: slots part from their witnesses
    grows = generator.random() < 0.4
    if grows:
        bounds = replace(bounds, k=int(generator.integers(2, 5)), required=np.minimum(bounds.required, 2))
        settings = replace(settings, on_delete="counterfeit", reserve=1.0)
    if churns:
        bounds = replace(bounds, k=2, required=np.minimum(bounds.required, 2))
        settings = replace(settings, on_delete=str(generator.choice(["retire", "counterfeit"])))
    people = int(bounds.k + generator.integers(2, 6) if grows else generator.integers(6, 13))
    skew = generator.dirichlet(np.ones(bounds.tuples) * 3)
    value = generator.choice(bounds.tuples, MOST_PEOPLE, p=skew)
    codes = generator.integers(0, 21, (MOST_PEOPLE, 2))
    labels = _labels(value[:people], bounds, generator)
    release = first_release(_encoding(codes[:people]), value[:people], labels, bounds, settings, seed, _no_check)
    outcome = Outcome(Releases(), release.state, value, bounds)
    _publish(outcome, release.state, value)
    if derives:
        outcome.derived = Outcome(Releases(), release.state, value, _higher(bounds, np.random.default_rng(seed + 1)))
    unions = _derive(outcome, release, _encoding(codes[:people]), settings, seed % 3 == 0, None)
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
        guarded = replace(bounds, derived=() if unions is None else (unions,))
        release = next_release(
            release.state, _encoding(codes[:people]), value[:people], changes, guarded, settings, seed, _no_check
        )
        assert_whole(release, there)
        _publish(outcome, release.state, value)
        unions = _derive(outcome, release, _encoding(codes[:people]), settings, True, unions)
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


def _higher(bounds: Bounds, generator: np.random.Generator) -> Bounds:
    """Bounds of a derived view."""
    most = [len(np.unique(column)) for column in bounds.attribute_values.T]
    required = np.minimum(bounds.required + generator.integers(0, 2), most)
    return replace(bounds, k=bounds.k + int(generator.integers(0, 4)), required=required.astype(np.int64))


def _derive(
    outcome: Outcome,
    release: Release,
    encoding: Encoding,
    settings: SeriesSettings,
    begins: bool,
    unions: Unions | None,
) -> Unions | None:
    """Release the derived view, where there is one; the unions that it has then."""
    derived = outcome.derived
    if derived is None or not begins:
        return None
    before = no_unions(derived.bounds) if unions is None else unions
    unions = form_unions(release.state, before, encoding, _no_check)
    known = np.flatnonzero(before.union != NONE)
    assert np.array_equal(unions.union[known], before.union[known])  # nothing leaves a union
    seen = as_series(release.state, unions)
    seen = replace(seen, shown=seen.showing(settings.hides))
    verify(seen, derived.bounds)
    assert not np.any(seen.parted())
    _publish(derived, seen, outcome.value)
    # whoever holds a slot that the view has not shown is known there by the last one that it has
    numbers = np.flatnonzero(unions.union != NONE)
    left = np.flatnonzero((seen.slot == NONE) & (derived.last[: len(seen.slot)] != NONE))
    seen.slot[left], seen.since[left] = np.searchsorted(numbers, derived.last[left]), derived.since[left]
    held = np.flatnonzero(seen.slot != NONE)
    derived.last[held], derived.since[held] = numbers[seen.slot[held]], seen.since[held]
    derived.state = seen
    return unions


def _publish(outcome: Outcome, state: SeriesState, value: np.ndarray) -> None:
    """What readers see of a release, in terms of people and rows."""
    classes = state.classes()
    for number in np.unique(classes[classes != NONE]):
        people = np.flatnonzero(classes == number)
        rows = state.value[(state.cohort == number) & ~state.gone()]
        assert not np.any(value[people] != state.value[state.slot[people]])
        outcome.releases.add(state.release, people.tolist(), rows.tolist())


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


def together(outcome: Outcome) -> Outcome:
    """What somebody sees who has the releases of a series and those of a view derived from it."""
    inner, outer = outcome.releases, outcome.derived.releases
    both = Releases(inner.people + outer.people, inner.values + outer.values, inner.release + outer.release)
    return Outcome(both, outcome.state, outcome.value, outcome.bounds)


def both_intruders(outcome: Outcome) -> tuple[list[int], list[int]]:
    return below_bound(outcome), below_bound(outcome, possible_by_product)

"""Releases of a secure series on a few hundred people: what each step promises."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from kanon_duck.encoding.codes import Encoding
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import UncertifiedError, certificates, verify
from kanon_duck.secure.people import Changes
from kanon_duck.secure.release import HIDDEN, Release, first_release, next_release
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NOBODY, NONE, SeriesState

FIRST, BATCH = 120, 12
BOUNDS = Bounds(3, np.arange(6)[:, None], np.array([3]))


class Register:
    """People with two numbers and one of six values, who come in batches."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.codes = np.zeros((1000, 16), np.uint16)
        self.codes[:, :2] = self.generator.integers(0, 100, (1000, 2))
        self.value = self.generator.integers(0, 6, 1000)
        self.there = np.arange(1000) < FIRST
        self.known = FIRST

    def encoding(self) -> Encoding:
        caps, weights = np.zeros(16, np.uint16), np.zeros(16, np.float32)
        caps[:2], weights[:2] = 100, 0.01
        codes = self.codes[: self.known].copy()
        return Encoding(codes, caps, weights, 2, np.array([0, 1]), np.array([True, True]))

    def start(self, settings: SeriesSettings) -> Release:
        labels = np.repeat(np.arange(FIRST // 12), 12)
        return first_release(self.encoding(), self.value[:FIRST], labels, BOUNDS, settings, 1, _go_on)

    def change(self, leave: int, move: int) -> Changes:
        drawn = self.generator.permutation(np.flatnonzero(self.there))
        left, moved = drawn[:leave], drawn[leave : leave + move]
        self.there[left] = False
        self.codes[moved, :2] = self.generator.integers(0, 100, (move, 2))
        arrived = np.arange(self.known, self.known + BATCH)
        self.there[arrived] = True
        self.known += BATCH
        return Changes(left, arrived, moved)

    def go_on(self, state: SeriesState, changes: Changes, settings: SeriesSettings) -> Release:
        return next_release(
            state, self.encoding(), self.value[: self.known], changes, BOUNDS, settings, state.release, _go_on
        )


def _go_on(_share: float | None) -> None:
    """Nobody interrupts."""


def _settings(on_delete: str, reserve: float = 0.0) -> SeriesSettings:
    return SeriesSettings(on_delete, reserve, 2, 60.0)


@pytest.mark.parametrize("on_delete", ["retire", "counterfeit", "remove"])
@pytest.mark.parametrize("reserve", [0.0, 1.0])
def test_everybody_of_a_release_is_certified(on_delete: str, reserve: float) -> None:
    register, settings = Register(3), _settings(on_delete, reserve)
    release = register.start(settings)
    for _ in range(8):
        changes = register.change(4, 3)
        before = release.state
        release = register.go_on(before, changes, settings)
        state = release.state
        shown = np.flatnonzero(state.classes() != NONE)
        assert np.all(register.there[shown])
        assert np.array_equal(np.flatnonzero(release.reason), np.setdiff1d(np.flatnonzero(register.there), shown))
        ever = np.flatnonzero(state.slot != NONE)
        found = certificates(state, BOUNDS, ever)
        assert found.candidates.min() >= BOUNDS.k
        assert np.diff(found.stops, prepend=0).min() >= BOUNDS.required[0]
        if on_delete != "counterfeit":  # only what was never held is without a person
            rows = state.shown[state.cohort] & (state.holder == NOBODY) & ~state.gone()
            assert np.all(state.never_held()[rows])
        codes = register.codes[state.holder[state.held()]]
        cohort = state.cohort[state.held()]
        assert np.all((state.low[cohort] <= codes) & (codes <= state.high[cohort]))


def test_nobody_waits_for_ever_where_counterfeits_are_allowed() -> None:
    register, settings = Register(4), _settings("counterfeit")
    release = register.start(settings)
    for _ in range(8):
        release = register.go_on(release.state, register.change(3, 0), settings)
        state = release.state
        assert np.all(state.release - state.waiting[state.waiting != NONE] <= settings.patience)


def test_a_class_that_lost_somebody_is_not_shown_until_the_place_is_filled() -> None:
    register, settings = Register(5), _settings("retire")
    release = register.start(settings)
    [someone] = np.flatnonzero(register.there)[:1]
    cohort = release.state.cohort[release.state.slot[someone]]
    changes = Changes(left=np.array([someone]))
    register.there[someone] = False
    hidden = register.go_on(release.state, changes, settings)
    others = release.state.holder[release.state.cohort == cohort]
    others = others[others != someone]
    assert np.all(hidden.reason[others] == HIDDEN)
    back = register.go_on(hidden.state, Changes(arrived=np.array([someone])), settings)
    assert np.all(back.reason == 0)


def test_boxes_shrink_by_splits_alone() -> None:
    register, settings = Register(6), _settings("counterfeit", 1.0)
    release = register.start(settings)
    for _ in range(6):
        before = release.state
        release = register.go_on(before, register.change(3, 3), settings)
        after = release.state
        kept = np.arange(before.cohorts)
        same = np.isin(kept, after.cohort[: before.slots][after.cohort[: before.slots] != before.cohort], invert=True)
        parted = np.unique(before.cohort[after.cohort[: before.slots] != before.cohort])
        same[parted] = False
        assert np.all(after.low[: before.cohorts][same] <= before.low[same])
        assert np.all(after.high[: before.cohorts][same] >= before.high[same])


def test_the_same_seed_gives_the_same_release_and_the_state_before_is_not_changed() -> None:
    register, settings = Register(7), _settings("counterfeit")
    first = register.start(settings).state
    copies = {field.name: np.copy(getattr(first, field.name)) for field in fields(first)}
    changes = register.change(4, 2)
    one, other = (register.go_on(first, changes, settings).state for _ in range(2))
    for field in fields(first):
        assert np.array_equal(getattr(one, field.name), getattr(other, field.name))
        assert np.array_equal(getattr(first, field.name), copies[field.name])


def test_what_is_not_certified_is_refused() -> None:
    register, settings = Register(8), _settings("retire")
    state = register.start(settings).state
    verify(state, BOUNDS)
    with pytest.raises(UncertifiedError, match="without a certificate"):
        verify(replace(state, value=np.zeros_like(state.value)), BOUNDS)
    with pytest.raises(UncertifiedError):
        verify(replace(state, link=np.zeros_like(state.link)), BOUNDS)
    with pytest.raises(UncertifiedError):
        verify(state, replace(BOUNDS, k=30))

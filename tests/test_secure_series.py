"""Secure releases: nobody is below the bounds, whoever looks; and every named assignment agrees with all releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kanon_duck.encoding.codes import Encoding
from kanon_duck.secure import certificates, departures, placing, plan, release, splits
from kanon_duck.secure.bounds import Bounds, Unions
from kanon_duck.secure.certificates import Failures
from kanon_duck.secure.pool import Waiting
from kanon_duck.secure.state import NONE, SeriesState
from kanon_duck.secure.union_forming import form_unions
from kanon_duck.secure.unions import union_of_slots
from tests import secure_series
from tests.secure_intruder import possible_by_product, possible_values
from tests.secure_series import below_bound, check_certificates, random_series, together

SERIES = 600


@pytest.mark.parametrize("first", range(0, SERIES, 100))
def test_nobody_is_below_the_bounds(first: int) -> None:
    rules = np.zeros(3, np.int64)
    for seed in range(first, first + 100):
        outcome = random_series(seed)
        if outcome is None:
            continue
        assert below_bound(outcome) == [], seed
        rules += check_certificates(outcome)
    assert np.all(rules > 0)


@pytest.mark.parametrize("first", [0, 100])
def test_nobody_is_below_the_bounds_where_slots_are_taken_away(first: int) -> None:
    gone = 0
    for seed in range(first, first + 100):
        outcome = random_series(seed, churns=True)
        if outcome is None:
            continue
        assert below_bound(outcome) == [], seed
        check_certificates(outcome)
        gone += np.count_nonzero(outcome.state.gone())
    assert gone > 0


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_nobody_is_below_the_bounds_in_a_derived_view_or_in_both(first: int) -> None:
    rules = np.zeros(3, np.int64)
    for seed in range(first, first + 100):
        outcome = random_series(seed, derives=True, churns=seed % 4 == 0)
        if outcome is None or outcome.derived is None or not outcome.derived.releases.people:
            continue
        assert below_bound(outcome.derived) == [], seed
        assert below_bound(together(outcome)) == [], seed
        rules += check_certificates(outcome.derived)
        check_certificates(together(outcome))
    assert np.all(rules > 0)


def test_both_intruders_find_the_same() -> None:
    for seed in range(2000, 2060):
        outcome = random_series(seed)
        if outcome is not None:
            assert possible_values(outcome.releases) == possible_by_product(outcome.releases)


def _everything_passes(*_: object) -> Failures:
    return Failures(np.empty(0, np.int64), np.empty(0, np.int64))


def _any_base_slot(state: SeriesState, _empties: np.ndarray, planned: np.ndarray) -> np.ndarray:
    return np.flatnonzero(planned & state.base() & state.living()[state.cohort])


def _company_without_a_changed_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placing, "doors", _any_base_slot)
    patch.setattr(certificates, "unchanged", lambda _state, slots: np.zeros(len(slots), bool))


def _moves_without_the_link_rule(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "failures", _everything_passes)
    patch.setattr(certificates, "failures", _everything_passes)
    pool_of = placing.pool_of

    def with_everything(
        state: SeriesState, person: np.ndarray, value: np.ndarray, bounds: Bounds, *more: Any
    ) -> Waiting:
        pool = pool_of(state, person, value, bounds, *more)
        known = np.count_nonzero(pool.known)
        everything = np.tile(np.arange(bounds.tuples), known)
        stops = bounds.tuples * np.arange(1, known + 1)
        plenty = np.full(len(everything), len(state.slot))
        return replace(pool, allowed_stops=stops, allowed=everything, allowed_counts=plenty)

    patch.setattr(placing, "pool_of", with_everything)


def _slots_taken_away_without_a_changed_one(patch: pytest.MonkeyPatch) -> None:
    def beside_anybody(state: SeriesState, bounds: Bounds, _ways_in: np.ndarray, hides: bool) -> SeriesState:
        return departures.take_away(state, bounds, np.flatnonzero(state.held() & state.base()), hides)

    patch.setattr(release, "take_away", beside_anybody)
    patch.setattr(certificates, "unchanged", lambda _state, slots: np.zeros(len(slots), bool))


def _splits_without_the_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(certificates, "failures", _everything_passes)
    patch.setattr(splits, "failures", _everything_passes)
    best_parts = splits.best_parts

    def any_parts(state: SeriesState, encoding: Encoding, bounds: Bounds, *more: Any) -> Any:
        return best_parts(state, encoding, replace(bounds, k=1, required=np.zeros_like(bounds.required)), *more)

    patch.setattr(splits, "best_parts", any_parts)


def _company_that_parts_with_any_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(certificates, "failures", _everything_passes)
    patch.setattr(splits, "failures", _everything_passes)
    find_parts = splits.find_parts

    def all_values_offered(*arguments: Any) -> None:
        original = 9
        every = np.ones_like(arguments[original])
        find_parts(*arguments[:original], every, *arguments[original + 1 :])

    patch.setattr(splits, "find_parts", all_values_offered)


def test_somebody_is_disclosed_where_new_classes_join_old_ones_of_a_derived_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_the_first(state: SeriesState, unions: Unions, *more: Any) -> Unions:
        if not len(unions.formed):
            return form_unions(state, unions, *more)
        union = union_of_slots(state, unions)
        union[(union == NONE) & state.shown[state.cohort] & ~state.gone()] = 0
        return replace(unions, union=union)

    monkeypatch.setattr(secure_series, "form_unions", with_the_first)
    monkeypatch.setattr(secure_series, "verify", lambda *_: None)
    for module in (certificates, departures, plan, splits):
        monkeypatch.setattr(module, "failures", certificates.unsound)
    for seed in range(400):
        outcome = random_series(seed, derives=True)
        if outcome is not None and outcome.derived is not None and below_bound(outcome.derived):
            return
    pytest.fail("nobody is below the bounds")


@pytest.mark.parametrize(
    "switch_off",
    [
        _company_without_a_changed_slot,
        _moves_without_the_link_rule,
        _slots_taken_away_without_a_changed_one,
        _splits_without_the_check,
        _company_that_parts_with_any_value,
    ],
)
def test_without_one_rule_somebody_is_disclosed(
    switch_off: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch)
    for seed in range(400):
        outcome = random_series(seed)
        if outcome is not None and below_bound(outcome):
            return
    pytest.fail("nobody is below the bounds")

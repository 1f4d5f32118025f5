"""Classes of derived views on arrays: how cohorts are united, and what a series may do for their sake."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kanon_duck.kernels.unions import LONGEST, cut_classes
from kanon_duck.secure import certificates, departures, plan, splits
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import UncertifiedError
from kanon_duck.secure.union_forming import demand_of
from tests.secure_series import random_series


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_of_classes_costs_least(seed: int) -> None:
    generator = np.random.default_rng(seed)
    classes, fewest = int(generator.integers(1, 9)), int(generator.integers(2, 8))
    low = generator.integers(0, 20, (classes, 2)).astype(np.uint16)
    high = (low + generator.integers(0, 5, (classes, 2))).astype(np.uint16)
    rows = generator.integers(1, 6, classes)
    caps, weights = np.array([15, 20], np.uint16), np.array([0.5, 0.25], np.float32)
    values = generator.integers(0, 3, rows.sum())
    members, starts = np.arange(rows.sum())[None], np.append(0, np.cumsum(rows))
    bounds = Bounds(fewest, np.arange(3)[:, None], np.array([2]))
    least, begins = np.empty(classes + 1), np.empty(classes + 1, np.int64)
    box = np.empty((2, 2), np.uint16)
    cut_classes(low, high, members, starts, fewest, demand_of(bounds, values), 9.0, caps, weights, box, least, begins)

    def cost(run: np.ndarray) -> float:
        width = np.minimum(high[run].max(axis=0) - low[run].min(axis=0), caps)
        diverse = len(set(values[starts[run[0]] : starts[run[-1] + 1]])) >= 2
        return float(rows[run].sum() * (width @ weights + (0 if diverse else 9)))

    best = np.inf
    for borders in (each for count in range(classes) for each in combinations(range(1, classes), count)):
        runs = np.split(np.arange(classes), borders)
        if all(fewest <= rows[run].sum() and rows[run[1:]].sum() < LONGEST * fewest for run in runs):
            best = min(best, sum(map(cost, runs)))
    assert least[-1] == pytest.approx(best)


def test_a_series_without_regard_to_a_derived_view_would_take_certificates_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (certificates, departures, plan, splits):
        monkeypatch.setattr(module, "failures", certificates.unsound)
    for seed in range(200):
        try:
            random_series(seed, derives=True, churns=True)
        except UncertifiedError:
            return
    pytest.fail("every derived view has certificates")

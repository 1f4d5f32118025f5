"""Neighbours of the rows of a window, against all distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.clustering.anneal import _neighbours
from tests.encodings import Numeric, Tree, encode, tables


def all_distances(encoding):
    codes = encoding.codes.astype(np.int64)
    spans = np.minimum(np.abs(codes[:, None] - codes), encoding.caps.astype(np.int64))
    return spans @ encoding.weights.astype(np.float64)


@settings(deadline=None, max_examples=40)  # the first example waits for the compiler
@given(tables(max_rows=60), st.integers(2, 9), st.sampled_from([0.5, 1.0, 5.0, 100.0]))
def test_the_nearest_row_within_reach_is_a_neighbour_and_none_is_out_of_reach(table, k, steps_per_row):
    encoding = encode(*table)
    distances = all_distances(encoding)
    rows = np.arange(encoding.rows)
    neighbours = _neighbours(encoding, encoding.codes, k, steps_per_row).astype(np.int64)
    assert neighbours.shape[0] == len(rows)
    reach = 16 * int(np.ceil(steps_per_row))
    within = (np.abs(rows[:, None] - rows) <= reach) & (rows[:, None] != rows)
    assert (np.abs(neighbours - rows[:, None]) <= reach).all()
    found = np.where(neighbours == rows[:, None], np.inf, distances[rows[:, None], neighbours])
    nearest = np.where(within, distances, np.inf).min(axis=1, initial=np.inf)
    furthest = distances.max(initial=0.0)
    useful = nearest < furthest - 1e-5  # as far as can be is not near
    assert found.min(axis=1)[useful] == pytest.approx(nearest[useful], abs=1e-5)


def test_large_classes_have_more_neighbours_if_there_are_steps_for_them():
    encoding = encode([(i % 100, "ab"[i % 2]) for i in range(300)], [Numeric(0, 99), Tree({"a": "*", "b": "*"})])
    shapes = [_neighbours(encoding, encoding.codes, k, steps).shape[1] for k, steps in [(3, 6), (5, 50), (25, 100)]]
    assert shapes == [8, 16, 32]

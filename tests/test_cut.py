"""The order of the rows, and its cheapest cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kanon_duck.clustering.cut import SEGMENT, cut
from kanon_duck.clustering.order import order
from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.hilbert import hilbert_keys
from kanon_duck.runtime.call import no_checkpoint
from tests.encodings import Numeric, Tree, encode, tables


def loss(encoding: Encoding, labels: NDArray[np.int64]) -> float:
    """Total loss of the labelled rows, from the definition."""
    total = 0.0
    for label in np.unique(labels[labels >= 0]):
        rows = encoding.codes[labels == label]
        spans = np.minimum(rows.max(axis=0) - rows.min(axis=0), encoding.caps)
        total += len(rows) * float(spans.astype(np.float64) @ encoding.weights.astype(np.float64))
    return total


def cuts(n: int, k: int) -> list[list[int]]:
    """All ways to write n as a sum of numbers of at least k, in order."""
    whole = [[n]] if n >= k else []
    return whole + [[first, *rest] for first in range(k, n - k + 1) for rest in cuts(n - first, k)]


@settings(deadline=None)
@given(tables(min_rows=2, max_rows=14), st.integers(2, 5), st.sampled_from([np.uint16, np.uint32]), st.randoms())
def test_a_cut_is_as_cheap_as_the_cheapest_of_all(table, k, dtype, random):
    rows, quasi_identifiers = table
    if len(rows) < k:
        return
    encoding = encode(rows, quasi_identifiers, dtype)
    sequence = list(range(len(rows)))
    random.shuffle(sequence)
    sequence = np.array(sequence)
    labels = cut(encoding, sequence, k, no_checkpoint)

    possible = []
    for lengths in cuts(len(rows), k):
        candidate = np.empty(len(rows), np.int64)
        candidate[sequence] = np.repeat(np.arange(len(lengths)), lengths)
        possible.append(loss(encoding, candidate))
    assert loss(encoding, labels) == pytest.approx(min(possible), abs=1e-4)
    steps = np.diff(labels[sequence], prepend=0)
    assert set(steps) <= {0, 1}, "classes are runs of the order, numbered along it"
    assert np.bincount(labels).min() >= k
    assert np.bincount(labels).max() <= 2 * k - 1 or len(rows) < 2 * k


def test_a_cut_of_several_segments_numbers_its_classes_along_the_order():
    n = 2 * SEGMENT + 77
    values = np.random.default_rng(0).integers(0, 1000, n)
    encoding = encode([(int(value),) for value in values], [Numeric(0, 1000)])
    sequence = order(encoding, 7, no_checkpoint)
    labels = cut(encoding, sequence, 7, no_checkpoint)
    assert set(np.diff(labels[sequence], prepend=0)) == {0, 1}
    sizes = np.bincount(labels)
    assert sizes.min() >= 7
    assert sizes.max() <= 13


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 5), (2, 4), (3, 3), (4, 2), (5, 2)])
def test_the_curve_visits_every_cell_once_and_steps_to_a_neighbour_each_time(dimensions, bits):
    cells = np.array(list(itertools.product(range(2**bits), repeat=dimensions)), np.uint16)
    keys = np.empty(len(cells), np.uint64)
    columns = np.arange(dimensions)
    # the cells are the lower half of each axis: beyond it, coordinates are pressed together
    hilbert_keys(cells, columns, np.ones(dimensions), bits + 1, np.empty(dimensions, np.uint64), keys)
    assert sorted(keys.tolist()) == list(range(len(cells)))
    path = cells[np.argsort(keys)].astype(int)
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


@settings(deadline=None)
@given(tables(max_rows=40))
def test_an_order_is_a_permutation_in_which_equal_rows_stand_together(table):
    rows, quasi_identifiers = table
    encoding = encode(rows, quasi_identifiers)
    sequence = order(encoding, 3, no_checkpoint)
    assert sorted(sequence.tolist()) == list(range(len(rows)))
    codes = np.where(encoding.caps > 0, encoding.codes, 0)
    runs = [key for key, _ in itertools.groupby(codes[row].tobytes() for row in sequence)]
    assert len(runs) == len(set(runs))


def test_an_order_whose_keys_need_many_words_sorts_by_all_of_them():
    generator = np.random.default_rng(1)
    flat = Tree({str(leaf): "*" for leaf in range(300)})
    rows = generator.integers(0, 300, (50, 20))[generator.integers(0, 50, 400)]
    encoding = encode([tuple(map(str, row)) for row in rows], [flat] * 20)
    sequence = order(encoding, 3, no_checkpoint)
    runs = [key for key, _ in itertools.groupby(encoding.codes[row].tobytes() for row in sequence)]
    assert len(runs) == len(set(runs)) == len(np.unique(rows, axis=0))

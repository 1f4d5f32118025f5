"""Incremental maintenance against a literal one, its guarantees, and what it costs in quality."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.clustering.cut import cut
from kanon_duck.clustering.order import order
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.loss import class_boxes
from kanon_duck.maintenance.changes import changes
from kanon_duck.maintenance.class_index import build_index
from kanon_duck.maintenance.i3m import delete_rows, exchange_rows, insert_rows, split_large
from kanon_duck.maintenance.improve import improve_touched
from kanon_duck.maintenance.optimization import optimize
from kanon_duck.maintenance.partition import Partition, build_partition, regrouped
from kanon_duck.runtime.call import no_checkpoint
from tests import oracle
from tests.benchmarks.tables import encode_synthetic
from tests.encodings import TABLE_1, TABLE_1_QUASI_IDENTIFIERS, Numeric, encode, leaves, tables
from tests.literal_i3m import LiteralPartition
from tests.test_class_index import assert_tight


def assert_consistent(partition: Partition) -> None:
    """Lists, boxes and index are those that the labels alone give."""
    labels, index = partition.labels, partition.class_index
    for label in range(len(index.sizes)):
        members = []
        row = partition.first[label]
        while row >= 0:
            members.append(row)
            row = partition.following[row]
        assert sorted(members) == np.flatnonzero(labels == label).tolist()
        assert index.sizes[label] == len(members)
        if members:
            assert (index.low[label] == partition.codes[members].min(axis=0)).all()
            assert (index.high[label] == partition.codes[members].max(axis=0)).all()
    assert_tight(index)


def in_chunks(random: np.random.Generator, rows: np.ndarray, n: int, k: int, largest: int) -> np.ndarray:
    """Labels of a random partition of some of n rows into classes of k to ``largest`` rows."""
    labels = np.full(n, -1)
    rows = random.permutation(rows)
    number = 0
    while len(rows):
        size = int(random.integers(k, largest + 1))
        if len(rows) - size < k:
            size = len(rows)
        labels[rows[:size]] = number
        rows, number = rows[size:], number + 1
    return labels


def values(random: np.random.Generator, quasi_identifiers: list[Any], n: int) -> list[tuple[Any, ...]]:
    """Random rows, one value in ten missing."""
    columns: list[list[Any]] = []
    for item in quasi_identifiers:
        domain: list[Any] = list(range(item.low, item.high + 1)) if isinstance(item, Numeric) else leaves(item)
        drawn = random.integers(0, len(domain), n)
        missing = random.random(n) < 0.1
        columns.append([None if gone else domain[place] for place, gone in zip(drawn, missing, strict=True)])
    return list(zip(*columns, strict=True))


def satisfied(labels: np.ndarray, k: int) -> bool:
    sizes = np.bincount(labels[labels >= 0])
    return bool((sizes[sizes > 0] >= k).all())


@settings(max_examples=60, deadline=None)
@given(tables(1, 1, exact=True), st.integers(2, 80), st.integers(2, 5), st.integers(0, 2**32), st.booleans())
def test_any_sequence_of_batches_does_what_the_figures_say(made, n, k, seed, large):
    quasi_identifiers = made[1]
    random = np.random.default_rng(seed)
    rows = values(random, quasi_identifiers, n)
    start = np.flatnonzero(random.random(n) < 0.7)
    labels = in_chunks(random, start, n, k, 5 * k if large else 2 * k - 1) if len(start) >= k else np.full(n, -1)
    partition = build_partition(encode(rows, quasi_identifiers), labels)
    literal = LiteralPartition(rows, quasi_identifiers, labels.tolist(), k)
    assert_consistent(partition)
    for _ in range(6):
        operation = random.choice(["delete", "exchange", "insert", "insert", "optimize", "split"])
        before = literal.total_loss()
        if operation == "delete":
            batch = np.flatnonzero((partition.labels >= 0) & (random.random(n) < random.random()))
            partition = delete_rows(partition, batch, k, no_checkpoint)
            literal.delete(batch.tolist())
            assert (partition.labels[batch] == -1).all()
            assert partition.labels.max() >= 0 or not literal.classes
        elif operation == "exchange":
            leaving = np.flatnonzero((partition.labels >= 0) & (random.random(n) < random.random()))
            arriving = random.permutation(np.flatnonzero((partition.labels == -1) & (random.random(n) < 0.5)))
            arriving = np.concatenate([arriving, leaving[random.random(len(leaving)) < 0.5]])  # updated ones
            partition = exchange_rows(partition, leaving, arriving, k, no_checkpoint)
            literal.exchange(leaving.tolist(), arriving.tolist())
        elif operation == "insert":
            batch = random.permutation(np.flatnonzero((partition.labels == -1) & (random.random(n) < random.random())))
            partition = insert_rows(partition, batch, k, no_checkpoint)
            literal.insert(batch.tolist())
        elif operation == "optimize":
            optimize(partition, no_checkpoint)
            literal.optimize()
            assert literal.total_loss() <= before
        else:
            partition = split_large(partition, k, no_checkpoint)
            literal.split_large()
            assert np.bincount(partition.labels + 1)[1:].max(initial=0) < 2 * k
            assert literal.total_loss() <= before
        assert partition.labels.tolist() == literal.labels()
        assert satisfied(partition.labels, k)
        assert_consistent(partition)


@settings(max_examples=30, deadline=None)
@given(tables(20, 80), st.integers(2, 4), st.integers(0, 2**32), st.sampled_from([np.uint16, np.uint32]))
def test_every_placed_row_raises_the_loss_least(made, k, seed, dtype):
    """One row at a time, where rounding may decide between equals."""
    rows, quasi_identifiers = made
    random = np.random.default_rng(seed)
    n = len(rows)
    labels = in_chunks(random, np.arange(n - 10), n, k, 2 * k - 1)
    partition = build_partition(encode(rows, quasi_identifiers, dtype), labels)
    for row in range(n - 10, n):
        literal = LiteralPartition(rows, quasi_identifiers, partition.labels.tolist(), k)
        before = {number: float(literal.loss(members)) for number, members in literal.classes.items()}
        rises = {
            number: float(literal.loss(members | {row})) - before[number] for number, members in literal.classes.items()
        }
        partition = insert_rows(partition, np.array([row]), 10**6, no_checkpoint)
        assert rises[partition.labels[row]] == pytest.approx(min(rises.values()), abs=1e-6)
        partition = split_large(partition, k, no_checkpoint)
        after = LiteralPartition(rows, quasi_identifiers, partition.labels.tolist(), k).total_loss()
        assert float(after) <= sum(before.values()) + min(rises.values()) + 1e-6
        assert satisfied(partition.labels, k)
    assert_consistent(partition)


def test_optimization_of_table_1_of_truta_and_campan():
    literal = LiteralPartition(TABLE_1, TABLE_1_QUASI_IDENTIFIERS, [0, 0, 1, 1, 2, 2, 2], 2)
    assert literal.total_loss() == Fraction(397, 30)
    assert literal.optimal_break(0) is None
    assert literal.optimal_break(1) is None
    assert [literal.covers(0, row) for row in (4, 5, 6)] == [True, False, True]
    assert [literal.covers(1, row) for row in (4, 5, 6)] == [False, True, True]
    first = oracle.information_loss(TABLE_1, [0, 0, 1, 1, 0, 1, 0], TABLE_1_QUASI_IDENTIFIERS)
    assert first == Fraction(134, 10)  # the other break is not interesting
    partition = build_partition(encode(TABLE_1, TABLE_1_QUASI_IDENTIFIERS), np.array([0, 0, 1, 1, 2, 2, 2]))
    optimize(partition, no_checkpoint)
    literal.optimize()
    assert partition.labels.tolist() == literal.labels() == [0, 0, 1, 1, 0, 1, 1]
    assert literal.total_loss() == Fraction(389, 30)
    assert_consistent(partition)


def ages(*values: int) -> Encoding:
    return encode([(value,) for value in values], [Numeric(0, 128)])


@pytest.mark.parametrize(("end", "expected"), [(21, [0, 0, 1, 1, 0, 1]), (22, [0, 0, 1, 1, 2, 2])])
def test_a_covered_class_is_broken_only_where_that_lowers_the_loss(end, expected):
    # the two rows of class 2 cost 10 each; outside it they cost 8, and 11 or 12
    partition = build_partition(ages(0, 8, 10, end, 4, 14), np.array([0, 0, 1, 1, 2, 2]))
    optimize(partition, no_checkpoint)
    assert partition.labels.tolist() == expected


def test_a_class_without_rows_is_dropped_before_others_are_dispersed():
    partition = build_partition(ages(0, 0, 64, 64, 128, 128), np.array([0, 0, 1, 1, 2, 2]))
    partition = delete_rows(partition, np.array([0, 1, 2]), 2, no_checkpoint)
    assert partition.labels.tolist() == [-1, -1, -1, 2, 2, 2]


def test_a_small_class_that_has_grown_by_its_turn_stays():
    partition = build_partition(ages(1, 2, 3, 4, 100, 101), np.array([0, 0, 1, 1, 2, 2]))
    partition = delete_rows(partition, np.array([1, 2]), 2, no_checkpoint)
    assert partition.labels.tolist() == [1, -1, -1, 1, 2, 2]


def test_fewer_than_k_rows_are_left_in_no_class_and_wait():
    partition = build_partition(ages(1, 2, 3, 100), np.array([0, 0, 0, -1]))
    partition = delete_rows(partition, np.array([0]), 3, no_checkpoint)
    assert partition.labels.tolist() == [-1] * 4
    assert not partition.class_index.sizes.any()
    partition = insert_rows(partition, np.array([1, 2, 3]), 3, no_checkpoint)
    assert partition.labels.tolist() == [-1] * 4


def test_rows_in_no_class_can_be_deleted():
    partition = build_partition(ages(1, 2, 3), np.array([0, 0, -1]))
    partition = delete_rows(partition, np.array([2]), 2, no_checkpoint)
    assert partition.labels.tolist() == [0, 0, -1]


def test_an_empty_batch_changes_nothing():
    partition = build_partition(ages(1, 2, 3), np.array([0, 0, 0]))
    nothing = np.empty(0, np.int64)
    partition = insert_rows(delete_rows(partition, nothing, 2, no_checkpoint), nothing, 2, no_checkpoint)
    assert partition.labels.tolist() == [0, 0, 0]


def test_the_index_grows_with_the_classes():
    random = np.random.default_rng(0)
    encoding = ages(*random.integers(0, 129, 600))
    partition = build_partition(encoding, np.r_[0, 0, np.full(598, -1)])
    before = len(partition.class_index.sizes)
    partition = insert_rows(partition, np.arange(2, 600), 2, no_checkpoint)
    assert len(partition.class_index.sizes) > before
    assert np.count_nonzero(partition.class_index.sizes) > 200
    assert_consistent(partition)


def test_an_interrupt_reaches_the_caller():
    def interrupt(share):
        raise KeyboardInterrupt

    for change in (
        lambda partition: delete_rows(partition, np.array([0]), 2, interrupt),
        lambda partition: insert_rows(partition, np.array([4]), 2, interrupt),
        lambda partition: exchange_rows(partition, np.array([0]), np.array([4]), 2, interrupt),
        lambda partition: split_large(partition, 2, interrupt),
        lambda partition: optimize(partition, interrupt),
    ):
        partition = build_partition(ages(1, 2, 3, 4, 5), np.array([0, 0, 0, 0, -1]))
        with pytest.raises(KeyboardInterrupt):
            change(partition)


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), max_size=30))
def test_changes_are_classes_with_other_rows_and_rows_that_moved(pairs):
    before, after = np.array(pairs, np.int64).reshape(-1, 2).T
    result = changes(before, after)
    expected = [
        label
        for label in range(5)
        if np.flatnonzero(before == label).tolist() != np.flatnonzero(after == label).tolist()
    ]
    assert result.touched.tolist() == expected
    assert result.moved == sum(old != new and old >= 0 and new >= 0 for old, new in pairs)


@cache
def register(rows: int) -> Encoding:
    return encode_synthetic(rows)


def churned(rows: int, churn: int, k: int) -> tuple[Encoding, np.ndarray, Partition]:
    """A register of which some rows are new and as many are deleted: the labels before, the partition after."""
    encoding = register(rows + churn)
    old = replace(encoding, codes=encoding.codes[:rows])
    labels = np.r_[cut(old, order(old, k, no_checkpoint), k, no_checkpoint), np.full(churn, -1)]
    gone = np.random.default_rng(1).choice(rows, churn, replace=False)
    partition = delete_rows(build_partition(encoding, labels), gone, k, no_checkpoint)
    return encoding, labels, insert_rows(partition, np.arange(rows, rows + churn), k, no_checkpoint)


def loss(encoding: Encoding, labels: np.ndarray) -> float:
    low, high, sizes = class_boxes(encoding.codes, labels)
    return float(sizes @ (np.minimum(high - low, encoding.caps) @ encoding.weights.astype(np.float64)))


def test_one_percent_of_churn_costs_little_quality():
    k = 5
    encoding, before, partition = churned(100_000, 1000, k)
    assert satisfied(partition.labels, k)
    assert np.count_nonzero(partition.labels >= 0) == 100_000
    difference = changes(before, partition.labels)
    assert len(difference.touched) < 4000
    assert loss(encoding, partition.labels) < 1.03 * loss(encoding, before)  # of as many rows
    count = int(partition.labels.max()) + 1
    rebuilt = build_index(encoding, partition.labels)
    for name in ("low", "high", "sizes"):
        assert (getattr(partition.class_index, name)[:count] == getattr(rebuilt, name)[:count]).all()


@pytest.mark.parametrize("steps_per_row", [0.0, 20.0])
def test_improving_lowers_the_loss_and_leaves_the_rest_alone(steps_per_row):
    k = 5
    encoding, before, partition = churned(10_000, 100, k)
    maintained = partition.labels.copy()
    touched = changes(before, maintained).touched
    improved = improve_touched(encoding, partition, touched, k, 7, steps_per_row, no_checkpoint)
    assert (partition.labels == maintained).all()
    assert satisfied(improved, k)
    assert ((improved == -1) == (maintained == -1)).all()
    lower = loss(encoding, improved) < loss(encoding, maintained)
    assert lower == (steps_per_row > 0)
    # at most the touched classes and two on either side of each
    assert len(np.intersect1d(changes(maintained, improved).touched, maintained)) <= 5 * len(touched)
    members_before = {
        tuple(np.flatnonzero(maintained == label)): label for label in np.unique(maintained[maintained >= 0])
    }
    members_after = {tuple(np.flatnonzero(improved == label)): label for label in np.unique(improved[improved >= 0])}
    same = members_before.keys() & members_after.keys()
    assert len(same) > len(members_before) // 4
    assert all(members_before[members] == members_after[members] for members in same)
    partition = regrouped(partition, improved)
    assert (partition.labels == improved).all()
    assert_consistent(partition)


def test_nothing_touched_is_nothing_improved():
    encoding, _, partition = churned(10_000, 100, 5)
    for touched in ([], [len(partition.class_index.sizes) - 1]):
        improved = improve_touched(encoding, partition, np.array(touched, np.int64), 5, 0, 20.0, no_checkpoint)
        assert (improved == partition.labels).all()


def answer() -> list[int]:
    encoding, before, partition = churned(10_000, 100, 5)
    touched = changes(before, partition.labels).touched
    improved = improve_touched(encoding, partition, touched, 5, 3, 20.0, no_checkpoint)
    partition = build_partition(encoding, improved)
    optimize(partition, no_checkpoint)
    return split_large(partition, 5, no_checkpoint).labels.tolist()


def test_other_processes_hash_seeds_and_threads_give_the_same_classes():
    expected = answer()
    script = (
        f"import sys; sys.path = {sys.path}; import json, tests.test_maintenance as t; print(json.dumps(t.answer()))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == expected

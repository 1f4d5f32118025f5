"""The index for the best class of a row, against a scan over all classes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels import LANES
from kanon_duck.kernels import class_tree as kernels
from kanon_duck.kernels.class_tree import HIGH, LOW, NO_CLASS, NO_ENTRY
from kanon_duck.maintenance.class_index import best_classes, build_index, index_boxes, rebuild_index

CODES = (np.uint16, np.uint32)


@njit
def replace_class(index, label, low, high, size):
    """As a kernel calls it."""
    kernels.replace_class(index, label, low, high, size)


@njit
def take_entry(index, near):
    """As a kernel calls it."""
    return kernels.take_entry(index, near)


def remove(index, label):
    """Take a class out of the index."""
    code = index.low.dtype.type
    nowhere = np.full(index.low.shape[1], np.iinfo(code).max, code), np.zeros(index.low.shape[1], code)
    replace_class(index, label, *nowhere, 0)


def with_new_class(index, near, low, high, size):
    """An index with one more class, and its number."""
    label = take_entry(index, near)
    if label == NO_CLASS:
        index = rebuild_index(index)
        label = take_entry(index, near)
    replace_class(index, label, low, high, size)
    return index, label


def rises(row, low, high, sizes, caps, weights):
    """Rise of total information loss for each class, as Definition 4 reads; infinite without rows."""
    row, low, high, caps = (values.astype(np.int64) for values in (row, low, high, caps))
    weights = weights.astype(np.float64)
    before = np.minimum(high - low, caps) @ weights
    after = np.minimum(np.maximum(high, row) - np.minimum(low, row), caps) @ weights
    return np.where(sizes > 0, (sizes + 1) * after - sizes * before, np.inf)


def assert_exact(index, rows):
    """Every row gets a class of the least rise, and the lowest number among exact equals."""
    count = index.used[0]
    boxes = index.low[:count], index.high[:count], index.sizes[:count]
    classes, increases = best_classes(index, rows)
    for row, label, increase in zip(rows, classes, increases, strict=True):
        expected = rises(row, *boxes, index.caps, index.weights)
        least = expected.min(initial=np.inf)
        assert increase == pytest.approx(least, rel=1e-9, abs=1e-9)
        if label == NO_CLASS:
            assert least == np.inf
        else:
            assert expected[label] == pytest.approx(least, rel=1e-9, abs=1e-9)
            same = np.all((index.low == index.low[label]) & (index.high == index.high[label]), axis=1)
            assert label == np.flatnonzero(same & (index.sizes == index.sizes[label]))[0]


def assert_tight(index):
    """Every class stands in its leaf entry, and every inner entry says exactly what is below it."""
    inner, columns = index.rooms.shape[:2]
    caps, weights = index.caps[:columns], index.weights[:columns]
    for label in range(len(index.sizes)):
        assert (index.entries[label] == NO_ENTRY) == (index.sizes[label] == 0)
        if index.sizes[label]:
            block, entry = divmod(index.entries[label], LANES)
            assert block >= inner
            assert index.first_classes[block, entry] == label
            assert (index.boxes[block, :, LOW, entry] == index.low[label, :columns]).all()
            assert (index.boxes[block, :, HIGH, entry] == index.high[label, :columns]).all()
            assert index.least_sizes[block, entry] == index.sizes[label]
    members: list[list[int]] = [[] for _ in index.children]
    for label in np.flatnonzero(index.sizes):
        block = index.entries[label] // LANES
        members[block].append(label)
        while index.parents[block] != NO_ENTRY:
            block = index.parents[block] // LANES
            members[block].append(label)
    for block in range(1, len(index.children)):
        parent, place = divmod(index.parents[block], LANES)
        assert index.children[parent] + place == block
        labels = np.array(members[block], np.int64)
        if not len(labels):
            assert index.costs[parent, place] == np.inf
            continue
        low, high = index.low[labels, :columns], index.high[labels, :columns]
        widths = np.minimum((high - low), caps)
        assert (index.boxes[parent, :, LOW, place] == low.min(axis=0)).all()
        assert (index.boxes[parent, :, HIGH, place] == high.max(axis=0)).all()
        assert (index.rooms[parent, :, place] == (caps - widths).min(axis=0)).all()
        assert index.costs[parent, place] == pytest.approx((widths @ weights).min())
        assert index.least_sizes[parent, place] == index.sizes[labels].min()
        assert index.first_classes[parent, place] == labels.min()
        for column in np.flatnonzero(caps == 1):
            single = low[low[:, column] == high[:, column], column]
            words = np.isin(np.arange(kernels.BUCKETS), single % kernels.BUCKETS)
            assert ((index.codes[parent, column] >> place & 1).astype(bool) == words).all()


def random_boxes(random, dtype, classes, kind, null_share=0.1, widest=40):
    """Boxes over numeric and level columns; one kind may occur in many classes."""
    null = np.iinfo(dtype).max
    columns = int(random.integers(1, 20))
    width = -(-columns // LANES) * LANES
    caps, weights = np.zeros(width, dtype), np.zeros(width, np.float32)
    caps[:columns] = random.choice([0, 1, 1, 7, 1000, null // 2], columns)
    weights[:columns] = random.random(columns, np.float32) / np.maximum(caps[:columns].astype(np.float32), 1)

    def points(count):
        codes = np.zeros((count, width), dtype)
        for column in range(columns):
            top = widest if caps[column] <= 1 else min(int(caps[column]), null - 1)
            codes[:, column] = random.integers(0, top + 1, count)
        codes[:, :columns][random.random((count, columns)) < null_share] = null
        return codes

    first = points(classes)
    if kind == "equal":
        first[:] = first[:1]
    low, high = first, first.copy()
    if kind in ("nested", "random"):
        other = points(classes)
        changed = random.random((classes, width)) < 0.3
        low, high = (
            np.where(changed, np.minimum(first, other), first),
            np.where(changed, np.maximum(first, other), first),
        )
    if kind == "nested":
        low, high = np.minimum.accumulate(low), np.maximum.accumulate(high)
    sizes = random.integers(0, 4, classes) if kind == "random" else random.integers(1, 3, classes)
    return low, high, sizes.astype(np.int64), caps, weights, points


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(CODES),
    st.sampled_from([0, 1, 2, 13, 14, 300]),
    st.sampled_from(["points", "equal", "nested", "random"]),
)
def test_best_class_is_that_of_a_scan(seed, dtype, classes, kind):
    random = np.random.default_rng(seed)
    *boxes, points = random_boxes(random, dtype, classes, kind)
    index = index_boxes(*boxes, random.permutation(classes) if seed % 2 else None)
    assert_tight(index)
    rows = points(20)
    if classes:
        rows[:5] = boxes[0][random.integers(0, classes, 5)]
    assert_exact(index, rows)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(CODES), st.sampled_from([1, 5, 40, 250]))
def test_every_operation_keeps_the_index_exact(seed, dtype, classes):
    random = np.random.default_rng(seed)
    low, high, sizes, caps, weights, points = random_boxes(random, dtype, classes, "random", widest=100)
    sizes = np.maximum(sizes, 1)
    index = index_boxes(low, high, sizes, caps, weights)
    for _ in range(8):
        operation = random.choice(["insert", "replace", "remove", "split", "rebuild"])
        alive = np.flatnonzero(index.sizes)
        if operation == "insert":
            rows = points(10)
            labels = np.full(10, NO_CLASS)
            assert kernels.insert_rows(index, rows, labels, 0, 10**9) == 10
        elif len(alive) and operation in ("replace", "remove"):
            label = random.choice(alive)
            ends = np.sort(points(2), axis=0)
            if operation == "remove":
                remove(index, label)
            else:
                replace_class(index, label, ends[0], ends[1], 3)
        elif len(alive) and operation == "split":
            for _ in range(int(random.integers(1, 25))):
                ends = np.sort(points(2), axis=0)
                index, label = with_new_class(index, random.choice(alive), ends[0], ends[1], 2)
                assert index.sizes[label] == 2
                assert label == index.used[0] - 1
        elif operation == "rebuild":
            before = index
            index = rebuild_index(index)
            count = index.used[0]
            assert (index.sizes[:count] == before.sizes[:count]).all()
        assert_tight(index)
        assert_exact(index, points(5))


def test_an_empty_class_is_never_chosen():
    codes = np.zeros((3, LANES), np.uint16)
    codes[:, 0] = [0, 50, 100]
    caps, weights = np.zeros(LANES, np.uint16), np.zeros(LANES, np.float32)
    caps[0], weights[0] = 100, 0.01
    index = index_boxes(codes, codes, np.array([5, 0, 5]), caps, weights)
    assert best_classes(index, codes)[0].tolist() == [0, 0, 2]
    remove(index, 0)
    assert best_classes(index, codes)[0].tolist() == [2, 2, 2]
    remove(index, 2)
    classes, increases = best_classes(index, codes)
    assert classes.tolist() == [NO_CLASS] * 3
    assert np.isinf(increases).all()


def small_encoding(rows, seed):
    random = np.random.default_rng(seed)
    codes = np.zeros((rows, LANES), np.uint16)
    codes[:, 0] = random.integers(0, 101, rows)
    codes[:, 1] = random.integers(0, 12, rows)
    codes[:, 2] = codes[:, 1] // 4
    caps, weights = np.zeros(LANES, np.uint16), np.zeros(LANES, np.float32)
    caps[:3], weights[:3] = [100, 1, 1], [0.01, 0.5, 0.5]
    return Encoding(codes, caps, weights, 3, np.array([0, 1, 1]), np.array([True, False]))


def test_build_index_takes_boxes_from_labels():
    encoding = small_encoding(200, 0)
    labels = np.random.default_rng(1).integers(-1, 30, 200)
    index = build_index(encoding, labels)
    for label in range(30):
        members = encoding.codes[labels == label]
        assert index.sizes[label] == len(members)
        assert (index.low[label] == members.min(axis=0)).all()
        assert (index.high[label] == members.max(axis=0)).all()
    assert_tight(index)


def test_a_partition_without_classes_has_no_best_class():
    encoding = small_encoding(20, 0)
    index = build_index(encoding, np.full(20, NO_CLASS))
    assert (best_classes(index, encoding.codes)[0] == NO_CLASS).all()


def test_inserted_rows_see_the_rows_before_them_and_stop_at_a_full_class():
    encoding = small_encoding(400, 2)
    labels = np.arange(100) // 5
    start, rows = encoding.codes[:100], encoding.codes[100:]
    index = build_index(replace(encoding, codes=start), labels)
    joined = np.full(len(rows), NO_CLASS)
    low, high, sizes = index.low[:20].copy(), index.high[:20].copy(), index.sizes[:20].copy()
    begin, stops = 0, 0
    while begin < len(rows):
        end = kernels.insert_rows(index, rows, joined, begin, 10)
        for position in range(begin, end):
            row = rows[position]
            best = rises(row, low, high, sizes, encoding.caps, encoding.weights)
            assert best[joined[position]] == pytest.approx(best.min(), abs=1e-12)
            label = joined[position]
            low[label], high[label] = np.minimum(low[label], row), np.maximum(high[label], row)
            sizes[label] += 1
            assert (sizes[label] >= 10) == (position == end - 1) or end == len(rows)
        if sizes[joined[end - 1]] >= 10:
            stops += 1
            sizes[joined[end - 1]] = 5
            replace_class(index, joined[end - 1], low[joined[end - 1]], high[joined[end - 1]], 5)
        begin = end
    assert stops > 10
    assert (index.sizes[:20] == sizes).all()
    assert (index.low[:20] == low).all()
    assert (index.high[:20] == high).all()
    assert_tight(index)


def answers(threads):
    encoding = small_encoding(3000, 3)
    index = build_index(encoding, np.arange(3000) // 5)
    rows = small_encoding(2000, 4).codes
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda part: best_classes(index, part)[0], np.array_split(rows, threads)))
    return np.concatenate(parts)


def test_threads_hash_seeds_and_row_order_do_not_matter():
    expected = answers(1)
    assert (answers(4) == expected).all()
    paths = [*sys.path, str(Path(__file__).parent)]
    script = f"import sys; sys.path = {paths}; import test_class_index as t; print(t.answers(2).tolist())"
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
        )
        assert json.loads(done.stdout) == expected.tolist()

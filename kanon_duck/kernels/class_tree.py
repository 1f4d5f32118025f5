"""The tree over class boxes: finds the best class for a row by branch and bound, and follows changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_duck.kernels import INNER, LANES, ZERO
from kanon_duck.kernels.row_lists import box_cost, copy_box, widen_box
from kanon_duck.kernels.simd import (
    doubles,
    excess,
    filled,
    first_lane,
    floats,
    fused,
    greatest_number,
    least_number,
    load,
    maximum,
    minimum,
    plus,
    singles,
    spread,
    store,
    unset,
    with_bit,
)

NO_CLASS = -1
NO_ENTRY = -1
LARGEST_SIZE, LARGEST_NUMBER = np.finfo(np.float64).max, np.iinfo(np.int64).max
"""Size and class number that an empty entry has."""
ROOT = ZERO
"""The root block."""
LOW, HIGH = 0, 1
ALL_ENTRIES = (1 << LANES) - 1
BUCKETS = 64
"""Codes of a level column are told apart modulo this number, one 16-bit word for each."""
ROUNDING = 2.0**-22
"""More than the relative error of a float32 sum for each of its terms."""
REACH = 64
"""How many leaf blocks to either side a new class may stand from the one it was split from."""


class ClassIndex(NamedTuple):
    """Boxes of classes and a 16-ary tree over them, in contiguous arrays that kernels share.

    The tree is made of *blocks* of ``LANES`` entries. Inner blocks come first, the root is block 0, leaf
    blocks follow. An entry of a leaf block is a class or empty, an entry of an inner block sums up one
    block below it. Entry e of block b has the number ``b * LANES + e``.

    Attributes
    ----------
    low, high : uint16 or uint32, shape (capacity, width)
        Box of each class.
    sizes : int64, shape (capacity,)
        Rows of each class; 0 for a removed class and for a number not used yet.
    entries : int64, shape (capacity,)
        The leaf entry of each class, NO_ENTRY for one without rows.
    used : int64, shape (1,)
        Class numbers in use: a new class takes ``used[0]``.
    caps, weights : dtype of the codes and float64, shape (width,)
        As in the encoding.
    boxes : dtype of the codes, shape (blocks, columns, 2, LANES)
        Smallest and largest code of each entry; an empty entry has the largest and 0.
    rooms : dtype of the codes, shape (inner blocks, columns, LANES)
        The least that ``caps - min(high - low, caps)`` is among the classes of an entry.
    codes : uint16, shape (inner blocks, columns, BUCKETS)
        Bit e of a level column's word is set if a class of entry e has a single code, and that modulo
        ``BUCKETS`` is the word's number. Words of other columns are full.
    costs, least_sizes : float64, shape (blocks, LANES)
        Least cost per row and least size among the classes of an entry; infinite and the largest
        finite number for an empty one.
    first_classes : int64, shape (blocks, LANES)
        Lowest class number of an entry.
    children : int64, shape (blocks,)
        First of the blocks below an inner block; NO_ENTRY for a leaf block.
    parents : int64, shape (blocks,)
        Entry that sums up a block; NO_ENTRY for the root.
    """

    low: NDArray[np.unsignedinteger]
    high: NDArray[np.unsignedinteger]
    sizes: NDArray[np.int64]
    entries: NDArray[np.int64]
    used: NDArray[np.int64]
    caps: NDArray[np.unsignedinteger]
    weights: NDArray[np.float64]
    boxes: NDArray[np.unsignedinteger]
    rooms: NDArray[np.unsignedinteger]
    codes: NDArray[np.uint16]
    costs: NDArray[np.float64]
    least_sizes: NDArray[np.float64]
    first_classes: NDArray[np.int64]
    children: NDArray[np.int64]
    parents: NDArray[np.int64]


@njit(**INNER)
def _class_increases(block, row, caps, weights, boxes, costs, sizes, increases):
    """Rise of total information loss for each class of a leaf block that the row might join.

    With g the growth of the cost per row, IL(cl + r) - IL(cl) = |cl| g + (cost + g).
    """
    growth = spread(0.0)
    place = block * boxes.shape[1] * 2
    for j in range(boxes.shape[1]):
        code = spread(row[j])
        low, high = load(boxes, place, 0), load(boxes, place + 1, 0)
        distance = maximum(excess(low, code), excess(code, high))
        room = excess(spread(caps[j]), excess(high, low))
        growth = fused(spread(weights[j]), floats(minimum(distance, room)), growth)
        place += 2
    store(increases, block, 0, fused(load(sizes, block, 0), growth, plus(load(costs, block, 0), growth)))


@njit(**INNER)
def _entry_bounds(block, row, caps, weights, boxes, rooms, codes, costs, sizes, bounds):
    """A lower bound on the rise for every class below each entry of an inner block.

    The distance of the row to a class is at least that to the entry's hull, and at least 1 in a level
    column where no class has the row's code alone. Hence g is at least the sum of
    weights * min(distance, room). The cost after joining is at least least cost + g, and also at least
    the sum of the weights of level columns at a distance, since their room does not matter then. The sums
    are float32, which is faster, and brought down by more than their rounding.
    """
    growth, united = spread(np.float32(0.0)), spread(np.float32(0.0))
    place = block * boxes.shape[1]
    for j in range(boxes.shape[1]):
        code, weight = spread(row[j]), spread(np.float32(weights[j]))
        distance = maximum(excess(load(boxes, 2 * place, 0), code), excess(code, load(boxes, 2 * place + 1, 0)))
        if caps[j] == 1:
            distance = maximum(distance, unset(codes[block, j, row[j] % BUCKETS], code))
            united = fused(weight, singles(minimum(distance, spread(caps[j]))), united)
        growth = fused(weight, singles(minimum(distance, load(rooms, place, 0))), growth)
        place += 1
    zero, below_rounding = spread(0.0), spread(1.0 - boxes.shape[1] * ROUNDING)
    safe_growth = fused(doubles(growth), below_rounding, zero)
    cost = maximum(plus(load(costs, block, 0), safe_growth), fused(doubles(united), below_rounding, zero))
    store(bounds, block, 0, fused(load(sizes, block, 0), safe_growth, cost))


@njit(**INNER)
def _push(heap_bounds, heap_blocks, length, bound, block):
    """Add to a heap with the least bound first."""
    place = length
    while place and heap_bounds[(place - 1) // 2] > bound:
        above = (place - 1) // 2
        heap_bounds[place], heap_blocks[place] = heap_bounds[above], heap_blocks[above]
        place = above
    heap_bounds[place], heap_blocks[place] = bound, block


@njit(**INNER)
def _raise_first(heap_bounds, heap_blocks, length, bound):
    """Raise the bound of the first of a heap."""
    block = heap_blocks[0]
    place, child = 0, 1
    while child < length:
        if child + 1 < length and heap_bounds[child + 1] < heap_bounds[child]:
            child += 1
        if heap_bounds[child] >= bound:
            break
        heap_bounds[place], heap_blocks[place] = heap_bounds[child], heap_blocks[child]
        place, child = child, 2 * child + 1
    heap_bounds[place], heap_blocks[place] = bound, block


@njit(**INNER)
def new_scratch(index):
    """What `best_class` needs to work in: bounds of entries, and a heap of the blocks whose entries they are."""
    blocks = index.children.size
    return np.empty((blocks, LANES)), np.empty(blocks), np.empty(blocks, np.int64)


@njit(**INNER)
def best_class(index, row, scratch):
    """The class whose loss rises least when the row joins it, the lowest number among equals.

    Opened blocks stand in a heap by the least bound of those of their entries that are not opened yet.

    Parameters
    ----------
    index : ClassIndex
    row : dtype of the codes, shape (width,)
    scratch
        Of `new_scratch`.

    Returns
    -------
    tuple of int and float
        The class and the rise; NO_CLASS and infinity if there is no class.
    """
    caps, weights, boxes, rooms, codes = index.caps, index.weights, index.boxes, index.rooms, index.codes
    costs, sizes, firsts, children = index.costs, index.least_sizes, index.first_classes, index.children
    bounds, heap_bounds, heap_blocks = scratch
    best, least = NO_CLASS, np.inf
    block, length = ROOT, ZERO
    while block != NO_ENTRY:
        if children[block] == NO_ENTRY:
            _class_increases(block, row, caps, weights, boxes, costs, sizes, bounds)
            for entry in range(LANES):
                bound = bounds[block, entry]
                if bound < least or (bound == least and firsts[block, entry] < best):
                    best, least = firsts[block, entry], bound
        else:
            _entry_bounds(block, row, caps, weights, boxes, rooms, codes, costs, sizes, bounds)
            _push(heap_bounds, heap_blocks, length, least_number(load(bounds, block, 0)), block)
            length += 1
        block = NO_ENTRY
        while block == NO_ENTRY and length and heap_bounds[0] <= least and heap_bounds[0] < np.inf:
            parent, bound = heap_blocks[0], heap_bounds[0]
            entry = first_lane(load(bounds, parent, 0), bound)
            bounds[parent, entry] = np.inf
            _raise_first(heap_bounds, heap_blocks, length, least_number(load(bounds, parent, 0)))
            if bound < least or firsts[parent, entry] < best:  # else no lower number below, and nothing better
                block = children[parent] + entry
    return best, least


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def best_classes(index, rows, classes, increases):
    """Look up every row."""
    scratch = new_scratch(index)
    for i in range(rows.shape[0]):
        classes[i], increases[i] = best_class(index, rows[i], scratch)


@njit(**INNER)
def _write_column(index, block, entry, j, label):
    """Write a class's codes in one column to a leaf entry; returns whether that changed."""
    boxes, low, high = index.boxes, index.low[label, j], index.high[label, j]
    changed = boxes[block, j, LOW, entry] != low or boxes[block, j, HIGH, entry] != high
    boxes[block, j, LOW, entry], boxes[block, j, HIGH, entry] = low, high
    return changed


@njit(**INNER)
def _write_totals(index, block, entry, label):
    """Write a class's cost, size and number to a leaf entry; one without rows leaves it, so no row is sent there."""
    if index.sizes[label] == 0:
        index.costs[block, entry] = np.inf
        index.least_sizes[block, entry] = LARGEST_SIZE
        index.first_classes[block, entry] = LARGEST_NUMBER
        index.entries[label] = NO_ENTRY
        return
    index.costs[block, entry] = box_cost(index, index.low[label], index.high[label])
    index.least_sizes[block, entry] = index.sizes[label]
    index.first_classes[block, entry] = label


@njit(**INNER)
def _summarize_codes(index, block, j, parent, place):
    """Sum up the single codes of a block in one level column; returns whether that changed."""
    columns = index.boxes.shape[1]
    found = 0  # bit b: some class has a single code of bucket b
    if index.children[block] == NO_ENTRY:
        for other in range(LANES):
            code = index.boxes[block, j, LOW, other]
            if code == index.boxes[block, j, HIGH, other]:
                found |= 1 << (code % BUCKETS)
    else:
        for first in range(0, BUCKETS, LANES):
            found |= filled(load(index.codes, block * columns + j, first)) << first
    changed = ZERO
    for first in range(0, BUCKETS, LANES):
        words = load(index.codes, parent * columns + j, first)
        written = with_bit(words, found >> first, place)
        store(index.codes, parent * columns + j, first, written)
        changed |= filled(excess(words, written)) | filled(excess(written, words))
    return changed != 0


@njit(**INNER)
def _summarize_column(index, block, j):
    """Sum up a block in one column in its parent's entry; returns whether that changed."""
    boxes, rooms, cap = index.boxes, index.rooms, index.caps[j]
    parent, place = divmod(index.parents[block], LANES)
    row = (block * index.boxes.shape[1] + j) * 2
    lows, highs = load(boxes, row, 0), load(boxes, row + 1, 0)
    low, high = least_number(lows), greatest_number(highs)
    if index.children[block] == NO_ENTRY:
        room = least_number(excess(spread(cap), excess(highs, lows)))  # an empty entry has all
    else:
        room = least_number(load(rooms, block * index.boxes.shape[1] + j, 0))
    changed = boxes[parent, j, LOW, place] != low or boxes[parent, j, HIGH, place] != high
    changed |= rooms[parent, j, place] != room
    boxes[parent, j, LOW, place], boxes[parent, j, HIGH, place], rooms[parent, j, place] = low, high, room
    if cap == 1:
        changed |= _summarize_codes(index, block, j, parent, place)
    return changed


@njit(**INNER)
def _summarize_totals(index, block):
    """Sum up costs, sizes and class numbers of a block in its parent's entry; returns whether that changed."""
    costs, sizes, firsts = index.costs, index.least_sizes, index.first_classes
    parent, place = divmod(index.parents[block], LANES)
    cost, size = least_number(load(costs, block, 0)), least_number(load(sizes, block, 0))
    first = least_number(load(firsts, block, 0))
    changed = costs[parent, place] != cost or sizes[parent, place] != size or firsts[parent, place] != first
    costs[parent, place], sizes[parent, place], firsts[parent, place] = cost, size, first
    return changed


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def write_entries(index, classes, changed):
    """Copy classes to their leaf entries, then sum up the blocks above that concerns, each once.

    For many classes this is less work than to replace one after the other. ``changed``, bool, shape (blocks,), is
    all False, and marks them.
    """
    for label in classes:
        block, entry = divmod(index.entries[label], LANES)
        for j in range(index.boxes.shape[1]):
            _write_column(index, block, entry, j, label)
        _write_totals(index, block, entry, label)
        changed[block] = True
    for block in range(index.children.size - 1, 0, -1):
        if changed[block]:
            for j in range(index.boxes.shape[1]):
                _summarize_column(index, block, j)
            _summarize_totals(index, block)
            changed[index.parents[block] // LANES] = True


@njit(**INNER)
def set_class(index, label, low, high, size):
    """Note a class's box and size outside the tree; the box of one without rows is around none."""
    index.sizes[label] = size
    for lane in range(0, low.size, LANES):
        store(index.low, label, lane, load(low, 0, lane))
        store(index.high, label, lane, load(high, 0, lane))


@njit(**INNER)
def replace_class(index, label, low, high, size):
    """Give a class a new box and size, and bring entries up to date up to the first that does not change."""
    set_class(index, label, low, high, size)
    leaf, entry = divmod(index.entries[label], LANES)
    for j in range(index.boxes.shape[1]):
        block = leaf
        changed = _write_column(index, block, entry, j, label)
        while changed and index.parents[block] != NO_ENTRY:
            changed = _summarize_column(index, block, j)
            block = index.parents[block] // LANES
    _write_totals(index, leaf, entry, label)
    block, changed = leaf, True
    while changed and index.parents[block] != NO_ENTRY:
        changed = _summarize_totals(index, block)
        block = index.parents[block] // LANES


@njit(**INNER)
def take_entry(index, near):
    """Give a new class an empty leaf entry in the block of class ``near`` or in the nearest of its neighbours.

    Returns its number; NO_CLASS where no entry or no number is left. Its box is to be written next.
    """
    own, label = index.entries[near] // LANES, index.used[0]
    if label == index.sizes.size:
        return NO_CLASS
    for step in range(REACH + 1):
        for block in (own - step, own + step):
            if block < index.rooms.shape[0] or block >= index.children.size:
                continue
            numbers = load(index.first_classes, block, 0)
            if greatest_number(numbers) == LARGEST_NUMBER:
                entry = first_lane(numbers, LARGEST_NUMBER)
                index.first_classes[block, entry] = label
                index.entries[label] = block * LANES + entry
                index.used[0] += 1
                return label
    return NO_CLASS


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def insert_rows(index, rows, labels, begin, full):
    """I3M+ without the split: each row from ``begin`` on joins its best class, and later rows see that.

    Stops after a row that brings its class to ``full`` rows; returns the position after the last row that
    joined. Once the caller has split the class ``labels[position - 1]``, it resumes from there.
    """
    scratch = new_scratch(index)
    low, high = np.empty(rows.shape[1], rows.dtype), np.empty(rows.shape[1], rows.dtype)
    for position in range(begin, rows.shape[0]):
        row = rows[position]
        label, _ = best_class(index, row, scratch)
        labels[position] = label
        if label == NO_CLASS:
            continue
        copy_box(low, high, index, label)
        widen_box(low, high, row)
        replace_class(index, label, low, high, index.sizes[label] + 1)
        if index.sizes[label] >= full:
            return position + 1
    return rows.shape[0]

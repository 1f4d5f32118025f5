"""Finds rows that other classes cover, and dissolves classes all of whose rows are covered."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.class_tree import BUCKETS, HIGH, LOW, NO_ENTRY, replace_class
from kanon_duck.kernels.maintain import LOOK_UP, STRETCH
from kanon_duck.kernels.row_lists import NO_ROW, clear_box, copy_box, gather, widen_box


@njit(**INNER)
def _class_covers(index, block, entry, row):
    """Whether joining the class of a leaf entry would leave its generalization as it is (Definition 6).

    A column stays as it is if the code lies inside the box, or if the box counts as the whole domain
    already: its cell, and a level column with more than one code, says nothing more specific than that.
    """
    for j in range(index.boxes.shape[1]):
        low, high = index.boxes[block, j, LOW, entry], index.boxes[block, j, HIGH, entry]
        if not low <= row[j] <= high and high - low < index.caps[j]:
            return False
    return True


@njit(**INNER)
def _may_cover(index, block, entry, row):
    """Whether a class below an entry of an inner block might cover the row."""
    for j in range(index.boxes.shape[1]):
        if index.rooms[block, j, entry] == 0:
            continue
        if not index.boxes[block, j, LOW, entry] <= row[j] <= index.boxes[block, j, HIGH, entry]:
            return False
        if index.caps[j] == 1 and not index.codes[block, j, row[j] % BUCKETS] >> entry & 1:
            return False
    return True


@njit(**INNER)
def best_cover(index, row, own, limit, stack):
    """Of the classes but ``own`` that cover a row, that of the least loss per row, the lowest of equals.

    Parameters
    ----------
    index : ClassIndex
    row : dtype of the codes, shape (width,)
    own : int
    limit : float
        A loss per row above this is not wanted.
    stack : int64, shape (blocks + LANES,)
        Scratch.

    Returns
    -------
    tuple of int and float
        The class and its loss per row; NO_CLASS and the limit if there is none.
    """
    best, least = NO_CLASS, limit
    stack[0], length = 0, 1
    while length:
        length -= 1
        block = stack[length]
        below = index.children[block]
        for entry in range(LANES):
            cost, label = index.costs[block, entry], index.first_classes[block, entry]
            if cost > least or cost == np.inf or (cost == least and best != NO_CLASS and label >= best):
                continue
            if below != NO_ENTRY:
                if _may_cover(index, block, entry, row):
                    stack[length] = below + entry
                    length += 1
            elif label != own and _class_covers(index, block, entry, row):
                best, least = label, cost
    return best, least


@njit(**INNER)
def _optimal_break(index, codes, label, members, hosts, stack):
    """ComputeOptimalBreak: write the best cover of each row; returns whether the break is interesting.

    Rows that covering classes take in do not change what these cost per row, so the best cover of each
    row by itself makes the best break. The search ends as soon as the loss of the class is used up.
    """
    block, entry = divmod(index.entries[label], LANES)
    loss = members.shape[1] * index.costs[block, entry]
    total = 0.0
    for position in range(members.shape[1]):
        row = codes[members[0, position]]
        hosts[position], cost = best_cover(index, row, label, loss - total, stack)
        total += cost
        if hosts[position] == NO_CLASS or total >= loss:
            return False
    return True


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def break_classes(codes, labels, first, following, index, classes, position):
    """A stretch of IL_Optimization, Figure 3: break each class from ``position`` on if that lowers the loss.

    Guarantee: the total loss falls with every class that is broken.

    Returns
    -------
    int
        The next ``position``.
    """
    stack = np.empty(index.children.size + LANES, np.int64)
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    work = 0
    while work < STRETCH and position < classes.size:
        label = classes[position]
        position += 1
        size = index.sizes[label]
        members, _ = gather(labels, first, following, label, size)
        hosts = np.empty(size, np.int64)
        work += LOOK_UP
        if not _optimal_break(index, codes, label, members, hosts, stack):
            continue
        work += LOOK_UP * size
        first[label] = NO_ROW
        for place in range(size + 1):  # the rows first, then the class without them
            changed, rows = label, 0
            clear_box(low, high)
            if place < size:
                row, changed = members[0, place], hosts[place]
                labels[row] = changed
                following[row] = first[changed]
                first[changed] = row
                copy_box(low, high, index, changed)
                widen_box(low, high, codes[row])
                rows = index.sizes[changed] + 1
            replace_class(index, changed, low, high, rows)
    return position

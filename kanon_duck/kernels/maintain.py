"""Maintains a partition: repairs classes that lost rows, and places rows without a class."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, ZERO
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.class_tree import best_class, new_scratch, replace_class, set_class, take_entry
from kanon_duck.kernels.row_lists import (
    NO_ROW,
    box_cost,
    clear_box,
    copy_box,
    enlist,
    fit_box,
    gather,
    sort_rows,
    widen_box,
)
from kanon_duck.kernels.satisfies import satisfies
from kanon_duck.kernels.split import divide

STRETCH = 1 << 21
"""Work between two looks at whether it is still wanted, in rows compared: less than a tenth of a second."""

LOOK_UP = 400
"""Work of finding a row's best class, in rows compared."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def tighten(codes, labels, first, following, index, classes):
    """Make classes tight that lost rows; their entries in the index are to be written afterwards.

    Parameters
    ----------
    codes, labels, first, following, index
        As in ``Partition``; changed in place.
    classes : int64, shape (c,)
        Classes some of whose rows have label NO_CLASS now.
    """
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    for label in classes:
        members, size = gather(labels, first, following, label, index.sizes[label])
        enlist(labels, first, following, label, members, ZERO, size)
        fit_box(low, high, codes, members, ZERO, size)
        set_class(index, label, low, high, size)


@njit(**INNER)
def _rise_together(codes, labels, first, following, index, label, rows, k, demanded, low, high):
    """How much total loss rises when rows in no class join a class, which is divided then if it can be."""
    size = index.sizes[label]
    count = size + rows.shape[1]
    before = size * box_cost(index, index.low[label], index.high[label])
    if count >= 2 * k:
        united = np.empty((1, count), np.int64)
        members, _ = gather(labels, first, following, label, size)
        for place in range(count):
            united[0, place] = members[0, place] if place < size else rows[0, place - size]
        if divide(codes, united, k, demanded, index.caps, index.weights, low, high):
            after = k * box_cost(index, low, high)
            fit_box(low, high, codes, united, k, count)
            return after + (count - k) * box_cost(index, low, high) - before
    copy_box(low, high, index, label)
    for place in range(rows.shape[1]):
        widen_box(low, high, codes[rows[0, place]])
    return count * box_cost(index, low, high) - before


@njit(**INNER)
def _best_together(codes, labels, first, following, index, rows, k, demanded, scratch, low, high):
    """Of the classes that are best for one of some rows, the one that all had best join.

    NO_CLASS where total loss rises less if each row joins its own best class.
    """
    candidates = np.empty(rows.shape[1], np.int64)
    count = 0
    apart = 0.0
    for place in range(rows.shape[1]):
        label, rise = best_class(index, codes[rows[0, place]], scratch)
        apart += rise
        is_new = label != NO_CLASS
        for earlier in range(count):
            is_new &= candidates[earlier] != label
        if is_new:
            candidates[count] = label
            count += 1
    best, least = NO_CLASS, apart
    for label in candidates[:count]:
        rise = _rise_together(codes, labels, first, following, index, label, rows, k, demanded, low, high)
        if rise < least or (rise == least and best == NO_CLASS):
            best, least = label, rise
    return best


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def maintain(codes, labels, first, following, index, classes, rows, position, unsplit, k, demanded, together):
    """A stretch of work on ``classes``, then on ``rows``; called again it goes on from there.

    Each class in turn is given up if it may not stand; one that may is split if it has 2k rows or more, as one
    has that has grown by its turn. Of a class that is given up each row, by rising number, joins the class whose
    total loss rises least (FindBestCluster); or all of them join one class, if it costs no more. Then each of
    ``rows`` joins the class whose total loss rises least. A class that reaches 2k rows is split at once, and again
    until every part is below.

    Guarantee: a class is split only if both parts satisfy the predicate, and the box of every class is
    tight around its rows.

    Parameters
    ----------
    codes, labels, first, following, index
        As in ``Partition``; changed in place.
    classes : int64, shape (c,)
        Tight classes.
    rows : int64, shape (r,)
        Rows to be placed. They, and those of classes given up, end in no class where there is no other.
    position : int
        Steps done, from 0: one for each class, one for each row.
    unsplit : int
        The class to be split before the next step, or NO_CLASS.
    k : int
    demanded : int or Requirement
        What `satisfies` takes.
    together : bool
        Whether all rows of a class that is given up may join one class.

    Returns
    -------
    tuple of int, int and bool
        The next ``position`` and ``unsplit``; and whether the index needs free entries to go on.
    """
    scratch = new_scratch(index)
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    steps = classes.size + rows.size
    work = 0
    while work < STRETCH and (position < steps or unsplit != NO_CLASS):
        # each round changes the list of at most one old class, and leaves its new box in low and high
        row, changed, size = NO_ROW, NO_CLASS, 0
        if unsplit != NO_CLASS:
            size = index.sizes[unsplit]
            if size < 2 * k:
                unsplit = NO_CLASS
                continue
            work += k * size
            members, _ = gather(labels, first, following, unsplit, size)
            if not divide(codes, members, k, demanded, index.caps, index.weights, low, high):
                unsplit = NO_CLASS
                continue
            new = take_entry(index, unsplit)
            if new == NO_CLASS:
                return position, unsplit, True
            replace_class(index, new, low, high, k)
            enlist(labels, first, following, new, members, ZERO, k)
            enlist(labels, first, following, unsplit, members, k, size)
            fit_box(low, high, codes, members, k, size)
            changed, size = unsplit, size - k
        elif position < classes.size:
            label = classes[position]
            if index.sizes[label] > 0:
                members, count = gather(labels, first, following, label, index.sizes[label])
                work += count
                if satisfies(members, 0, 0, count, demanded):
                    unsplit = label
                    position += 1
                    continue
                # it leaves the index, so that no row is sent to it; its rows wait on its list
                sort_rows(members)
                enlist(labels, first, following, label, members, ZERO, count)
                for place in range(count):
                    labels[members[0, place]] = NO_CLASS
                clear_box(low, high)
                replace_class(index, label, low, high, ZERO)
                if together:
                    work += LOOK_UP * count
                    changed = _best_together(
                        codes, labels, first, following, index, members, k, demanded, scratch, low, high
                    )
                if changed != NO_CLASS:
                    copy_box(low, high, index, changed)
                    for place in range(count):
                        labels[members[0, place]] = changed
                        widen_box(low, high, codes[members[0, place]])
                    following[members[0, count - 1]] = first[changed]
                    first[changed], first[label] = first[label], NO_ROW
                    size = index.sizes[changed] + count
                    unsplit = changed
            elif first[label] != NO_ROW:
                row = first[label]
                first[label] = following[row]
            else:
                position += 1
        else:
            row = rows[position - classes.size]
            position += 1
        if row != NO_ROW:
            work += LOOK_UP
            changed, _ = best_class(index, codes[row], scratch)
            if changed != NO_CLASS:
                labels[row] = changed
                following[row] = first[changed]
                first[changed] = row
                copy_box(low, high, index, changed)
                widen_box(low, high, codes[row])
                size = index.sizes[changed] + 1
                unsplit = changed
        if changed != NO_CLASS:
            replace_class(index, changed, low, high, size)
    return position, unsplit, False

"""Linked lists of the rows of each class, which change in constant time, and the boxes around them."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.simd import load, maximum, minimum, store, weigh

NO_ROW = -1
"""End of a list of rows."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def fill_lists(labels, first, following):
    """List the rows of every class.

    Parameters
    ----------
    labels : int64, shape (n,)
        Class of each row, or NO_CLASS.
    first : int64, shape (classes,)
        First row of each class; NO_ROW everywhere at the start.
    following : int64, shape (n,)
        The next row of the same class, NO_ROW for the last.
    """
    for row in range(labels.size - 1, -1, -1):
        label = labels[row]
        if label != NO_CLASS:
            following[row] = first[label]
            first[label] = row


@njit(**INNER)
def gather(labels, first, following, label, most):
    """The rows on a class's list whose label it still is, at most ``most``: an array of one line, and their number."""
    members = np.empty((1, most), np.int64)
    count = 0
    row = first[label]
    while row != NO_ROW:
        if labels[row] == label:
            members[0, count] = row
            count += 1
        row = following[row]
    return members, count


@njit(**INNER)
def sort_rows(members):
    """Put the rows of a class in rising order; a list that is nearly so, as new lists are, takes one pass."""
    for end in range(1, members.shape[1]):
        row = members[0, end]
        position = end
        while position > 0 and members[0, position - 1] > row:
            members[0, position] = members[0, position - 1]
            position -= 1
        members[0, position] = row


@njit(**INNER)
def enlist(labels, first, following, label, members, begin, end):
    """Make ``members[0, begin:end]`` the rows of a class, in this order."""
    next_row = NO_ROW
    for position in range(end - 1, begin - 1, -1):
        row = members[0, position]
        labels[row] = label
        following[row] = next_row
        next_row = row
    first[label] = next_row


@njit(**INNER)
def clear_box(low, high):
    """Make a box that is around no row."""
    low[:] = low.dtype.type(-1)  # the largest code
    high[:] = 0


@njit(**INNER)
def widen_box(low, high, row):
    """Make a box take in a row."""
    for lane in range(0, low.size, LANES):
        own = load(row, 0, lane)
        store(low, 0, lane, minimum(load(low, 0, lane), own))
        store(high, 0, lane, maximum(load(high, 0, lane), own))


@njit(**INNER)
def copy_box(low, high, index, label):
    """Make a box that of a class."""
    for lane in range(0, low.size, LANES):
        store(low, 0, lane, load(index.low, label, lane))
        store(high, 0, lane, load(index.high, label, lane))


@njit(**INNER)
def fit_box(low, high, codes, members, begin, end):
    """Make a box tight around ``members[0, begin:end]``."""
    clear_box(low, high)
    for position in range(begin, end):
        widen_box(low, high, codes[members[0, position]])


@njit(**INNER)
def box_cost(index, low, high):
    """What a box costs for each row in it."""
    cost = 0.0
    for lane in range(0, low.size, LANES):
        cost += weigh(load(low, 0, lane), load(high, 0, lane), index.caps, index.weights, lane)
    return cost

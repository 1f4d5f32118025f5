"""What leaving rows out would save, class by class."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels.anneal import INNER, loss_of_class
from kanon_duck.kernels.satisfies import satisfies


@njit(**INNER)
def find_ends(codes, members, number, size, ends):
    """Write the two least and the two greatest codes of each column in a class, least first, greatest last."""
    for column in range(codes.shape[1]):
        least = second_least = 1 << 40
        greatest = second_greatest = -1
        for position in range(size):
            code = np.int64(codes[members[number, position], column])
            if code < second_least:
                second_least = code if code > least else least
                least = code if code < least else least
            if code > second_greatest:
                second_greatest = code if code < greatest else greatest
                greatest = code if code > greatest else greatest
        ends[column, 0], ends[column, 1] = least, second_least
        ends[column, 2], ends[column, 3] = second_greatest, greatest


@njit(**INNER)
def cost_without(codes, row, ends, caps, weights):
    """Cost per row of the class without one of its rows."""
    cost = 0.0
    for column in range(codes.shape[1]):
        code = codes[row, column]
        low = ends[column, 1] if code == ends[column, 0] else ends[column, 0]
        high = ends[column, 2] if code == ends[column, 3] else ends[column, 3]
        extent = high - low
        cost += weights[column] * np.float64(extent if extent < caps[column] else caps[column])
    return cost


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def suppression_steps(codes, members, sizes, k, caps, weights, rows, savings, state, loss, ends, visits):
    """Steps in which each class gives up its rows, in order of falling saving per row.

    First the row whose absence saves most, then the next, while what remains may stand as a class; then
    all that remains at once. A step that saves more per row than the one before it is joined with that,
    so that savings per row fall from step to step. O(excess rows * class size) for a class of k rows
    and some in excess.

    Parameters
    ----------
    members : int32, shape (classes, room)
        Rows of each class; reordered: the first row to go stands last.
    sizes : int32, shape (classes,)
    rows : int64, shape (classes, room)
        Zeros; written: how many rows each step gives up.
    savings : float64, shape (classes, room)
        Written: the loss that each step saves.
    state : int64, shape (3,)
        Class, rows it has left, and its next step; zeros at first, and the next call goes on from there.
    loss : float64, shape (1,)
        Loss of the class now.
    ends : int64, shape (width, 4)
        Scratch.
    visits : int
        About so many rows are visited in one call.

    Returns
    -------
    bool
        Whether all classes are done.
    """
    number, size, step = state
    while number < sizes.size and visits > 0:
        if size == 0:
            size, step = sizes[number], 0
            loss[0] = loss_of_class(codes, members, number, 0, size, caps, weights)
        visits -= 2 * size
        lost = size
        remaining = 0.0
        if satisfies(members, number, 0, size - 1, k):
            lost = 1
            best = size - 1
            least = np.inf
            find_ends(codes, members, number, size, ends)
            for position in range(size):
                cost = cost_without(codes, members[number, position], ends, caps, weights)
                if cost < least:
                    best, least = position, cost
            row = members[number, best]
            members[number, best] = members[number, size - 1]
            members[number, size - 1] = row
            remaining = loss_of_class(codes, members, number, 0, size - 1, caps, weights)
        rows[number, step] = lost
        savings[number, step] = loss[0] - remaining
        size -= lost
        loss[0] = remaining
        while step > 0 and savings[number, step] * rows[number, step - 1] > (
            savings[number, step - 1] * rows[number, step]
        ):
            rows[number, step - 1] += rows[number, step]
            savings[number, step - 1] += savings[number, step]
            rows[number, step] = 0
            step -= 1
        step += 1
        if size == 0:
            number += 1
    state[0], state[1], state[2] = number, size, step
    return number == sizes.size

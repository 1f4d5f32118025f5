"""Says what leaving rows out would save, class by class."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels.anneal import loss_of_class
from kanon_duck.kernels.extremes import cost_without, two_extremes
from kanon_duck.kernels.satisfies import satisfies


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def suppression_steps(codes, members, sizes, demanded, caps, weights, rows, savings, state, loss, lows, highs, visits):
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
    demanded : int or Requirement
        What `satisfies` takes.
    rows : int64, shape (classes, room)
        Zeros; written: how many rows each step gives up.
    savings : float64, shape (classes, room)
        Written: the loss that each step saves.
    state : int64, shape (3,)
        Class, rows it has left, and its next step; zeros at first, and the next call goes on from there.
    loss : float64, shape (1,)
        Loss of the class now.
    lows, highs : dtype of the codes, shape (2, width)
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
        if satisfies(members, number, 0, size - 1, demanded):
            lost = 1
            best = size - 1
            least = np.inf
            two_extremes(codes, members, number, 0, size, lows, highs)
            for position in range(size):
                cost = cost_without(codes, members[number, position], caps, weights, lows, highs)
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

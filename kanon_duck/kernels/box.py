"""Boxes of classes (the smallest and largest code per column), and what a box costs."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import LANES
from kanon_duck.kernels.simd import load, maximum, minimum, store

NO_CLASS = -1
"""Label of a row that belongs to no class."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def fill_boxes(codes, labels, first, low, high, sizes):
    """Widen ``low`` and ``high`` (classes, width) and count ``sizes`` (classes,) by every row of the classes.

    These are as many as ``low`` has room for, from number ``first`` on; other rows are passed over. ``low`` starts
    at the dtype's largest value, ``high`` and ``sizes`` at 0.
    """
    for row in range(codes.shape[0]):
        label = labels[row] - first
        if label < 0 or label >= low.shape[0]:
            continue
        sizes[label] += 1
        for lane in range(0, codes.shape[1], LANES):
            code = load(codes, row, lane)
            store(low, label, lane, minimum(code, load(low, label, lane)))
            store(high, label, lane, maximum(code, load(high, label, lane)))


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def least_increase(code, low, high, sizes, caps, weights):
    """The class whose total loss rises least when it takes in a row; the lowest number among equals.

    The rise is IL(cl + r) - IL(cl) = (|cl| + 1) cost(cl + r) - |cl| cost(cl), summed in float64 in the
    order of the columns.
    """
    best = 0
    best_increase = np.inf
    for label in range(low.shape[0]):
        before = 0.0
        after = 0.0
        for column in range(code.shape[0]):
            weight = np.float64(weights[column])
            smallest, largest = low[label, column], high[label, column]
            before += weight * min(largest - smallest, caps[column])
            after += weight * min(max(largest, code[column]) - min(smallest, code[column]), caps[column])
        increase = (sizes[label] + 1) * after - sizes[label] * before
        if increase < best_increase:
            best, best_increase = label, increase
    return best

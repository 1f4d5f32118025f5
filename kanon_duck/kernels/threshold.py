"""Grows classes around seeds until they would be too diverse."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.row_lists import widen_box


@njit(**INNER)
def _cost_with(row, low, high, caps, weights):
    """What a box costs per row when it takes in a row."""
    cost = np.float32(0.0)
    for j in range(row.size):
        cost += weights[j] * np.float32(min(max(high[j], row[j]) - min(low[j], row[j]), caps[j]))
    return cost


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def grow(codes, free, count, low, high, diversity, rows, delta, most, caps, weights, labels, label, visits):
    """Let rows join a class that raise its diversity least, one after the other.

    Diversity is what the class's box costs per row. Rows that do not raise it join at once; of others that raise it
    equally the first. A row that would raise it above ``delta`` ends the class.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    free : int64, shape (n,)
        The rows in no class, in the first ``count`` places; changed in place, their order kept.
    count : int
    low, high : dtype of the codes, shape (width,)
        The class's box; changed in place.
    diversity : float32
    rows : int
        Rows of the class.
    delta : float
        Greatest diversity.
    most : int
        Rows with which the class ends too.
    caps, weights : dtype of the codes and float32, shape (width,)
    labels : int64, shape (n,)
        Written for the rows that join.
    label : int
    visits : int
        Rows to look at before it returns.

    Returns
    -------
    count, diversity, rows
        As they are then.
    goes_on : bool
        Whether the class may still grow.
    """
    while visits > 0:
        best, least, kept = NO_CLASS, np.float32(np.inf), 0
        visits -= count
        for position in range(count):
            row = free[position]
            cost = _cost_with(codes[row], low, high, caps, weights)
            if cost <= diversity and rows < most:
                labels[row] = label
                rows += 1
                widen_box(low, high, codes[row])
                continue
            if cost < least:
                best, least = kept, cost
            free[kept] = row
            kept += 1
        count = kept
        if best == NO_CLASS or rows >= most or least > delta:
            return count, diversity, rows, False
        row = free[best]
        labels[row] = label
        rows += 1
        diversity = least
        widen_box(low, high, codes[row])
        count -= 1
        free[best:count] = free[best + 1 : count + 1]
    return count, diversity, rows, True

"""Split2kCluster: which k rows of a class leave for a new one."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels.anneal import INNER
from kanon_duck.kernels.partition import clear_box, widen_box
from kanon_duck.kernels.satisfies import satisfies


@njit(**INNER)
def _two_extremes(codes, members, begin, lows, highs):
    """The two smallest and the two largest codes of ``members[0, begin:]``, at least two rows, per column.

    Without a row that has the first of the two, the smallest or largest code of the others is the second.
    """
    lows[:] = codes.dtype.type(-1)
    highs[:] = 0
    for position in range(begin, members.shape[1]):
        row = members[0, position]
        for j in range(lows.shape[1]):
            code = codes[row, j]
            lows[1, j] = min(lows[1, j], max(lows[0, j], code))
            lows[0, j] = min(lows[0, j], code)
            highs[1, j] = max(highs[1, j], min(highs[0, j], code))
            highs[0, j] = max(highs[0, j], code)


@njit(**INNER)
def _loss_apart(row, caps, weights, lows, highs, low, high, staying, leaving):
    """Loss of both parts when the row is the last of ``leaving`` rows, around whose others the box is."""
    rest = 0.0
    new = 0.0
    for j in range(weights.size):
        code = row[j]
        smallest = lows[1, j] if code == lows[0, j] else lows[0, j]
        largest = highs[1, j] if code == highs[0, j] else highs[0, j]
        rest += weights[j] * min(largest - smallest, caps[j])
        new += weights[j] * min(max(high[j], code) - min(low[j], code), caps[j])
    return staying * rest + leaving * new


@njit(**INNER)
def divide(codes, members, k, caps, weights, low, high):
    """Bring to the front the k rows that leave: one by one the one without which the loss of both parts is least.

    Of equal ones the lowest row, so the order of ``members`` (1, 2k or more) does not matter.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    members : int64, shape (1, size)
    caps, weights : dtype of the codes and float64, shape (columns,)
    low, high : dtype of the codes, shape (width,)
        Set to the box around the rows that leave.

    Returns
    -------
    bool
        Whether both parts satisfy the predicate.
    """
    count = members.shape[1]
    lows, highs = np.empty((2, weights.size), codes.dtype), np.empty((2, weights.size), codes.dtype)
    clear_box(low, high)
    for leaving in range(k):
        _two_extremes(codes, members, leaving, lows, highs)
        best = leaving
        least = np.inf
        for position in range(leaving, count):
            row = members[0, position]
            loss = _loss_apart(codes[row], caps, weights, lows, highs, low, high, count - leaving - 1, leaving + 1)
            if loss < least or (loss == least and row < members[0, best]):
                best, least = position, loss
        row = members[0, best]
        members[0, best] = members[0, leaving]
        members[0, leaving] = row
        widen_box(low, high, codes[row])
    return satisfies(members, 0, 0, k, k) and satisfies(members, 0, k, count, k)

"""Split2kCluster: which k rows of a class leave for a new one."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER
from kanon_duck.kernels.extremes import cost_without, two_extremes
from kanon_duck.kernels.partition import clear_box, widen_box
from kanon_duck.kernels.satisfies import satisfies


@njit(**INNER)
def _loss_apart(row, caps, weights, lows, highs, low, high, staying, leaving):
    """Loss of both parts when the row is the last of ``leaving`` rows, around whose others the box is."""
    new = 0.0
    for j in range(weights.size):
        new += weights[j] * min(max(high[j], row[j]) - min(low[j], row[j]), caps[j])
    return staying * cost_without(row, caps, weights, lows, highs) + leaving * new


@njit(**INNER)
def divide(codes, members, k, demanded, caps, weights, low, high):
    """Bring to the front the k rows that leave: one by one the one without which the loss of both parts is least.

    Of equal ones the lowest row, so the order of ``members`` (1, 2k or more) does not matter.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    members : int64, shape (1, size)
    demanded : int or Requirement
        What `satisfies` takes.
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
        two_extremes(codes, members, 0, leaving, count, lows, highs)
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
    return satisfies(members, 0, 0, k, demanded) and satisfies(members, 0, k, count, demanded)

"""Split2kCluster: chooses the k rows of a class that leave for a new one."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.extremes import cost_without, two_extremes
from kanon_duck.kernels.row_lists import clear_box, widen_box
from kanon_duck.kernels.satisfies import satisfies
from kanon_duck.kernels.simd import load, maximum, minimum, weigh


@njit(**INNER)
def _loss_apart(codes, row, caps, weights, lows, highs, low, high, staying, leaving):
    """Loss of both parts when the row is the last of ``leaving`` rows, around whose others the box is."""
    new = 0.0
    for lane in range(0, codes.shape[1], LANES):
        own = load(codes, row, lane)
        smallest, largest = minimum(load(low, 0, lane), own), maximum(load(high, 0, lane), own)
        new += weigh(smallest, largest, caps, weights, lane)
    return staying * cost_without(codes, row, caps, weights, lows, highs) + leaving * new


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
    caps, weights : dtype of the codes and float64, shape (width,)
    low, high : dtype of the codes, shape (width,)
        Set to the box around the rows that leave.

    Returns
    -------
    bool
        Whether both parts satisfy the predicate.
    """
    count = members.shape[1]
    lows, highs = np.empty((2, codes.shape[1]), codes.dtype), np.empty((2, codes.shape[1]), codes.dtype)
    clear_box(low, high)
    for leaving in range(k):
        two_extremes(codes, members, 0, leaving, count, lows, highs)
        best = leaving
        least = np.inf
        for position in range(leaving, count):
            row = members[0, position]
            loss = _loss_apart(codes, row, caps, weights, lows, highs, low, high, count - leaving - 1, leaving + 1)
            if loss < least or (loss == least and row < members[0, best]):
                best, least = position, loss
        row = members[0, best]
        members[0, best] = members[0, leaving]
        members[0, leaving] = row
        widen_box(low, high, codes[row])
    return satisfies(members, 0, 0, k, demanded) and satisfies(members, 0, k, count, demanded)

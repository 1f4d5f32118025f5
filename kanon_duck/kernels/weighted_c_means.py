"""Finds the closest centre of each row."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def assign_closest(codes, begin, end, centres, caps, weights, distances, labels):
    """Write the closest centre of the rows from ``begin`` to ``end``, of equal ones the first.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    begin, end : int
    centres : int64, shape (columns, clusters)
        Codes.
    caps, weights : int64 and float32, shape (columns,)
        The distance is the sum over the columns of weight times the difference of the codes, at most the cap.
    distances : float32, shape (clusters,)
        Memory.
    labels : int64, shape (n,)
        Changed in place.
    """
    for row in range(begin, end):
        distances[:] = 0.0
        for j in range(centres.shape[0]):
            code, cap, weight = np.int64(codes[row, j]), caps[j], weights[j]
            for centre in range(distances.size):
                distances[centre] += weight * np.float32(min(abs(centres[j, centre] - code), cap))
        labels[row] = np.argmin(distances)

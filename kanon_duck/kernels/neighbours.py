"""Near neighbours of the rows of one window, found without a branch that a processor could mistake."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.encoding import LANES
from kanon_duck.kernels.simd import load, maximum, minimum, minus, plus, spread, store, where_less

SIDES = 2
"""The rows before a row, and those after it."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_neighbours(points, caps, reach, neighbours, distances):
    """Find the nearest row of every ``LANES``-th to either side of a row.

    The rows beside a row are looked at ``LANES`` at a time, and each lane keeps the nearest of those that it has
    met: so the nearest of all is among the neighbours, and most of those that come next. O(reach) for a row.

    Parameters
    ----------
    points : float32, shape (columns, LANES + n + LANES)
        Codes times weights, with infinities before the first row and after the last.
    caps : float32, shape (columns,)
        Most that the rows' distance in a column may count.
    reach : int
        Places looked at to either side, rounded up to full vectors.
    neighbours : uint32, shape (n, SIDES * LANES)
        Written; the row itself where there is none that is nearer than the sum of ``caps``.
    distances : float32, shape (n, SIDES * LANES)
        Written.
    """
    most = np.float32(0.0)
    for j in range(caps.size):
        most += caps[j]
    rows = neighbours.shape[0]
    for row in range(rows):
        for side in range(SIDES):
            nearest, found = spread(most), spread(np.uint32(0))
            for away in range(0, min(reach, row if side == 0 else rows - 1 - row), LANES):
                start = row - away if side == 0 else row + 1 + away + LANES
                distance = spread(np.float32(0.0))
                for j in range(caps.size):
                    own, other = spread(points[j, row + LANES]), load(points, j, start)
                    apart = maximum(minus(own, other), minus(other, own))
                    distance = plus(distance, minimum(apart, spread(caps[j])))
                found = where_less(distance, nearest, spread(np.uint32(start)), found)
                nearest = minimum(distance, nearest)
            store(neighbours, row, side * LANES, found)
            store(distances, row, side * LANES, nearest)
        for place in range(SIDES * LANES):
            start = neighbours[row, place]
            neighbours[row, place] = start + place % LANES - LANES if start > 0 else row


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def keep_nearest(neighbours, distances, count):
    """Bring the nearer of places j and j + half to place j, until ``count``, a power of two, are left in front."""
    for row in range(neighbours.shape[0]):
        half = neighbours.shape[1]
        while half > count:
            half //= 2
            for place in range(half):
                if distances[row, place + half] < distances[row, place]:
                    distances[row, place] = distances[row, place + half]
                    neighbours[row, place] = neighbours[row, place + half]

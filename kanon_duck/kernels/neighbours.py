"""Finds near neighbours of the rows of one window, without branches that a processor could mispredict."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import LANES
from kanon_duck.kernels.simd import load, maximum, minimum, minus, plus, spread, store, where_less

SIDES = 2
"""The rows before a row, and those after it."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_neighbours(points, caps, reach, neighbours, distances, found):
    """Find near rows among those that stand beside each row.

    They are looked at ``LANES`` at a time, and each lane keeps, for either side, the nearest that it has met. Then the
    lanes halve, again and again, and the nearer of two stays: so the nearest row of all is among the
    neighbours, and most of those that come next are. O(reach) for a row.

    Parameters
    ----------
    points : float32, shape (columns, LANES + n + LANES)
        Codes times weights, with infinities before the first row and after the last.
    caps : float32, shape (columns,)
        Most that the rows' distance in a column may count.
    reach : int
        Places looked at to either side, rounded up to full vectors.
    neighbours : int32, shape (n, count)
        Written; ``count`` is a power of two, at most ``SIDES * LANES``. The row itself where none is found that is
        nearer than the sum of ``caps``.
    distances, found : float32 and uint32, shape (1, SIDES * LANES)
        Scratch.
    """
    most = np.float32(0.0)
    for j in range(caps.size):
        most += caps[j]
    rows, count = neighbours.shape
    for row in range(rows):
        for side in range(SIDES):
            least, from_start = spread(most), spread(np.uint32(0))
            for away in range(0, min(reach, row if side == 0 else rows - 1 - row), LANES):
                start = row - away if side == 0 else row + 1 + away + LANES
                distance = spread(np.float32(0.0))
                for j in range(caps.size):
                    own, other = spread(points[j, row + LANES]), load(points, j, start)
                    apart = maximum(minus(own, other), minus(other, own))
                    distance = plus(distance, minimum(apart, spread(caps[j])))
                from_start = where_less(distance, least, spread(np.uint32(start)), from_start)
                least = minimum(distance, least)
            store(distances, 0, side * LANES, least)
            store(found, 0, side * LANES, from_start)
        for place in range(SIDES * LANES):
            start = found[0, place]
            found[0, place] = start + place % LANES - LANES if start > 0 else row
        half = SIDES * LANES
        while half > count:
            half //= 2
            for place in range(half):
                nearer = distances[0, place + half] < distances[0, place]
                found[0, place] = found[0, place + half] if nearer else found[0, place]
                distances[0, place] = distances[0, place + half] if nearer else distances[0, place]
        for place in range(count):
            neighbours[row, place] = found[0, place]

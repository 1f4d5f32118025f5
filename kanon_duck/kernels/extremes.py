"""Says what a class costs without one of its rows, from the two smallest and largest codes per column."""

from __future__ import annotations

from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.simd import load, maximum, minimum, store, weigh, where_equal


@njit(**INNER)
def two_extremes(codes, members, number, begin, end, lows, highs):
    """The two smallest and the two largest codes of ``members[number, begin:end]``, at least two rows, per column.

    Without a row that has the first of the two, the smallest or largest code of the others is the second.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    members : int, shape (classes, room)
    lows, highs : dtype of the codes, shape (2, width)
        Written.
    """
    for lane in range(0, codes.shape[1], LANES):
        one, other = load(codes, members[number, begin], lane), load(codes, members[number, begin + 1], lane)
        least, less = minimum(one, other), maximum(one, other)
        most, more = less, least
        for position in range(begin + 2, end):
            row = load(codes, members[number, position], lane)
            less, least = minimum(less, maximum(least, row)), minimum(least, row)
            more, most = maximum(more, minimum(most, row)), maximum(most, row)
        store(lows, 0, lane, least)
        store(lows, 1, lane, less)
        store(highs, 0, lane, most)
        store(highs, 1, lane, more)


@njit(**INNER)
def cost_without(codes, row, caps, weights, lows, highs):
    """Cost per row of the class whose extremes these are, without one of its rows."""
    cost = 0.0
    for lane in range(0, codes.shape[1], LANES):
        own, low, high = load(codes, row, lane), load(lows, 0, lane), load(highs, 0, lane)
        smallest = where_equal(own, low, load(lows, 1, lane), low)
        largest = where_equal(own, high, load(highs, 1, lane), high)
        cost += weigh(smallest, largest, caps, weights, lane)
    return cost

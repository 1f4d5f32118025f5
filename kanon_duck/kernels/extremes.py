"""What a class costs without one of its rows, from the two smallest and the two largest codes per column."""

from __future__ import annotations

from numba import njit

from kanon_duck.kernels import INNER


@njit(**INNER)
def two_extremes(codes, members, number, begin, end, lows, highs):
    """The two smallest and the two largest codes of ``members[number, begin:end]``, at least two rows, per column.

    Without a row that has the first of the two, the smallest or largest code of the others is the second.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    members : int, shape (classes, room)
    lows, highs : dtype of the codes, shape (2, columns)
        Written.
    """
    lows[:] = codes.dtype.type(-1)
    highs[:] = 0
    for position in range(begin, end):
        row = members[number, position]
        for j in range(lows.shape[1]):
            code = codes[row, j]
            lows[1, j] = min(lows[1, j], max(lows[0, j], code))
            lows[0, j] = min(lows[0, j], code)
            highs[1, j] = max(highs[1, j], min(highs[0, j], code))
            highs[0, j] = max(highs[0, j], code)


@njit(**INNER)
def cost_without(row, caps, weights, lows, highs):
    """Cost per row of the class whose extremes these are, without one of its rows."""
    cost = 0.0
    for j in range(lows.shape[1]):
        smallest = lows[1, j] if row[j] == lows[0, j] else lows[0, j]
        largest = highs[1, j] if row[j] == highs[0, j] else highs[0, j]
        cost += weights[j] * min(largest - smallest, caps[j])
    return cost

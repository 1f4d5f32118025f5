"""Tightens bounds on how many people of a set can have each value, from all sets that people are in.

A *cell* is a set of people that an intruder can name; it lies wholly inside some larger *sets* of which something is
known. Sets and cells list their values in rising order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER


@njit(**INNER)
def _place(values, first, stop, value):
    """Place of a value in ``values[first:stop]``, or -1."""
    end = stop
    while first < end:
        middle = (first + end) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            end = middle
    return first if first < stop and values[first] == value else -1


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def common_values(cell_stops, cell_sets, set_stops, set_values, set_counts):
    """Values that all sets of a cell have, the least number of rows that one of them has, and where they stand.

    Parameters
    ----------
    cell_stops, cell_sets : int64
        The sets that each cell lies in: those of cell c end at ``cell_stops[c]``. At least one for each cell.
    set_stops, set_values, set_counts : int64
        Values of each set, and rows with each.

    Returns
    -------
    stops, values, counts : int64
        Of the cells.
    links : int64
        For each value of a cell, in order, its place in each of the cell's sets, in their order.
    """
    cells = len(cell_stops)
    stops = np.empty(cells, np.int64)
    room, linked = 0, 0
    for cell in range(cells):
        first = cell_stops[cell - 1] if cell else 0
        fewest = np.int64(1) << 62
        for at in range(first, cell_stops[cell]):
            number = cell_sets[at]
            fewest = min(fewest, set_stops[number] - (set_stops[number - 1] if number else 0))
        room += fewest
        linked += fewest * (cell_stops[cell] - first)
    values, counts = np.empty(room, np.int64), np.empty(room, np.int64)
    links = np.empty(linked, np.int64)
    entry, link = 0, 0
    for cell in range(cells):
        first, stop = cell_stops[cell - 1] if cell else 0, cell_stops[cell]
        smallest = cell_sets[first]
        for at in range(first + 1, stop):
            number = cell_sets[at]
            rows = set_stops[number] - (set_stops[number - 1] if number else 0)
            if rows < set_stops[smallest] - (set_stops[smallest - 1] if smallest else 0):
                smallest = number
        for base in range(set_stops[smallest - 1] if smallest else 0, set_stops[smallest]):
            value, least = set_values[base], set_counts[base]
            held = True
            for at in range(first, stop):
                number = cell_sets[at]
                place = _place(set_values, set_stops[number - 1] if number else 0, set_stops[number], value)
                if place < 0:
                    held = False
                    break
                least = min(least, set_counts[place])
                links[link + at - first] = place
            if held:
                values[entry], counts[entry] = value, least
                entry += 1
                link += stop - first
        stops[cell] = entry
    return stops, values[:entry], counts[:entry], links[:link]


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def tighten(sizes, cell_stops, stops, links, set_low, set_high, low, high):
    """Tighten the bounds of all cells until none of them says anything new of another.

    The people of a set with some value are those of its cells; the people of a cell have one value each. So what
    the other cells of a set cannot take must be in this one, and what they must take cannot be.

    Parameters
    ----------
    sizes : int64, shape (cells,)
        People in each cell.
    cell_stops : int64, shape (cells,)
        Where the sets of each cell end, as in `common_values`.
    stops, links : int64
        Of the cells, as `common_values` gives them.
    set_low, set_high : int64
        Bounds of each value of each set. A set whose lower bounds are not all 0 consists of its cells.
    low, high : int64
        Bounds of each value of each cell; changed in place.

    Returns
    -------
    bool
        Whether there are values that agree with all bounds, as far as this can tell.
    """
    least, most = np.zeros(len(set_low), np.int64), np.zeros(len(set_low), np.int64)
    entry, link = 0, 0
    for cell in range(len(sizes)):
        width = cell_stops[cell] - (cell_stops[cell - 1] if cell else 0)
        while entry < stops[cell]:
            for at in range(link, link + width):
                least[links[at]] += low[entry]
                most[links[at]] += high[entry]
            entry += 1
            link += width
    changed = True
    while changed:
        changed = False
        link = 0
        for cell in range(len(sizes)):
            width = cell_stops[cell] - (cell_stops[cell - 1] if cell else 0)
            first, stop = stops[cell - 1] if cell else 0, stops[cell]
            certain, possible = 0, 0
            for entry in range(first, stop):
                certain += low[entry]
                possible += high[entry]
            if certain > sizes[cell] or possible < sizes[cell]:
                return False
            for entry in range(first, stop):
                lowest, highest = low[entry], high[entry]
                if lowest < highest:
                    up = min(highest, sizes[cell] - (certain - lowest))
                    down = max(lowest, sizes[cell] - (possible - highest))
                    for at in range(link, link + width):
                        place = links[at]
                        up = min(up, set_high[place] - (least[place] - lowest))
                        down = max(down, set_low[place] - (most[place] - highest))
                    if down > up:
                        return False
                    if down > lowest or up < highest:
                        changed = True
                        low[entry], high[entry] = down, up
                        certain += down - lowest
                        possible += up - highest
                        for at in range(link, link + width):
                            least[links[at]] += down - lowest
                            most[links[at]] += up - highest
                link += width
    return True

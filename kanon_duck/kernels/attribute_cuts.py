"""Cuts a class along one attribute, and lists its rows part by part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_duck.kernels import INNER
from kanon_duck.kernels.satisfies import satisfies

NO_PART = -1
"""Number of a code that no row has shown yet."""


class Attributes(NamedTuple):
    """Where the quasi-identifiers stand in a row of codes.

    Attributes
    ----------
    first : int64, shape (attributes + 1,)
        First column of each, and behind the last.
    numeric : bool, shape (attributes,)
        Which are numeric: one column of positions; others have level columns.
    caps, weights : dtype of the codes and float32, shape (width,)
        See ``Encoding``.
    """

    first: NDArray[np.int64]
    numeric: NDArray[np.bool_]
    caps: NDArray[np.unsignedinteger]
    weights: NDArray[np.float32]


class Room(NamedTuple):
    """Memory for the cut of one class.

    Attributes
    ----------
    part, keys : int64, shape (n,)
        Part of each row of the class, from 0; codes to select from.
    numbers : int64, shape (level codes and NULL,)
        Part of each code; NO_PART between two cuts.
    starts : int64, shape (n + 1,)
        Where each part begins in ``order``, and where the last ends.
    satisfied : bool, shape (n,)
        Which parts satisfy what is demanded.
    order : int64, shape (1, n)
        The rows, part by part, at the positions of the class.
    """

    part: NDArray[np.int64]
    keys: NDArray[np.int64]
    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    satisfied: NDArray[np.bool_]
    order: NDArray[np.int64]


@njit(**INNER)
def width(low, high, attributes, attribute):
    """What a box costs per row in one attribute: the share of the domain or hierarchy, times its weight."""
    cost = 0.0
    for j in range(attributes.first[attribute], attributes.first[attribute + 1]):
        cost += attributes.weights[j] * min(high[j] - low[j], attributes.caps[j])
    return cost


@njit(**INNER)
def _select(keys, size, rank):
    """The key of a rank among the first ``size`` (Hoare's selection, which likes equal keys)."""
    low, high = 0, size - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while keys[left] < pivot:
                left += 1
            while keys[right] > pivot:
                right -= 1
            if left <= right:
                keys[left], keys[right] = keys[right], keys[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    return keys[rank]


@njit(**INNER)
def lower_median(codes, column, members, begin, end, room):
    """The lower median of a column over some rows; NULL is the largest code."""
    for position in range(begin, end):
        room.keys[position - begin] = codes[members[0, position], column]
    return _select(room.keys, end - begin, (end - begin - 1) // 2)


@njit(**INNER)
def at_border(codes, column, members, begin, end, border, room):
    """Two parts: codes below a border, and the others; returns 2."""
    for position in range(begin, end):
        room.part[position - begin] = 1 if codes[members[0, position], column] >= border else 0
    return 2


@njit(**INNER)
def at_middle(codes, column, members, begin, end, room):
    """Two halves in the order of the codes; of the rows at the median, the first go below; returns 2."""
    median = lower_median(codes, column, members, begin, end, room)
    lower = (end - begin + 1) // 2
    for position in range(begin, end):
        if codes[members[0, position], column] < median:
            lower -= 1
    for position in range(begin, end):
        code = codes[members[0, position], column]
        is_below = code < median
        if code == median and lower > 0:
            is_below = True
            lower -= 1
        room.part[position - begin] = 0 if is_below else 1
    return 2


@njit(**INNER)
def at_children(codes, low, high, attributes, attribute, members, begin, end, room):
    """One part for each child of the lowest common ancestor that has rows, NULL for one; returns how many.

    Of the level columns that are not constant the highest holds these children: they are the highest nodes below the
    ancestor. Parts are numbered as the rows show them.
    """
    column = attributes.first[attribute + 1] - 1
    while low[column] == high[column]:
        column -= 1
    null = room.numbers.size - 1
    parts = 0
    for position in range(begin, end):
        code = min(codes[members[0, position], column], null)
        if room.numbers[code] == NO_PART:
            room.numbers[code] = parts
            parts += 1
        room.part[position - begin] = room.numbers[code]
    for position in range(begin, end):
        room.numbers[min(codes[members[0, position], column], null)] = NO_PART
    return parts


@njit(**INNER)
def put_in_order(members, begin, end, parts, room):
    """Write the rows part by part, in each part in the order they had."""
    starts, part, order = room.starts, room.part, room.order
    starts[: parts + 1] = 0
    for place in range(end - begin):
        starts[part[place] + 1] += 1
    starts[0] = begin
    for number in range(parts):
        starts[number + 1] += starts[number]
    for position in range(begin, end):
        number = part[position - begin]
        order[0, starts[number]] = members[0, position]
        starts[number] += 1
    for number in range(parts, 0, -1):  # each has moved to its end, where the next begins
        starts[number] = starts[number - 1]
    starts[0] = begin


@njit(**INNER)
def mark_satisfied(parts, least, demanded, all_or_none, room):
    """Mark the parts that satisfy what is demanded; whether all do.

    ``all_or_none``: where a part has too few rows, nothing else is of interest.
    """
    is_all = True
    for number in range(parts):
        room.satisfied[number] = room.starts[number + 1] - room.starts[number] >= least
        is_all = is_all and room.satisfied[number]
    if all_or_none and not is_all:
        return False
    for number in range(parts):
        if room.satisfied[number]:
            room.satisfied[number] = satisfies(room.order, 0, room.starts[number], room.starts[number + 1], demanded)
            is_all = is_all and room.satisfied[number]
    return is_all


@njit(**INNER)
def unite_unsatisfied(parts, size, room):
    """Make one part, the last, of all that are not marked as satisfied; returns how many parts there are then."""
    satisfied = 0
    for number in range(parts):
        room.keys[number] = NO_PART
        if room.satisfied[number]:
            room.keys[number] = satisfied
            satisfied += 1
    for place in range(size):
        number = room.keys[room.part[place]]
        room.part[place] = satisfied if number == NO_PART else number
    return satisfied + 1

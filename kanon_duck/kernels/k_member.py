"""Scans the rows without a class for greedy k-member clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

BLOCK = 512
"""Rows whose costs are summed column by column at a time: the sums stay in the first-level cache."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def _add_costs(
    columns: NDArray[Any],
    begin: int,
    low: NDArray[Any],
    high: NDArray[Any],
    caps: NDArray[Any],
    weights: NDArray[np.float32],
    costs: NDArray[np.float32],
) -> None:
    """Add to ``costs`` what each row from ``begin`` on would add to the cost per row of a box.

    The columns are added in their order, in float32: the sums are the same on every machine.
    """
    integer = columns.dtype.type
    for j in range(columns.shape[0]):
        smallest, largest, weight = low[j], high[j], weights[j]
        room = integer(caps[j] - min(largest - smallest, caps[j]))
        if room == 0:  # the box has lost all that this column can lose
            continue
        column = columns[j][begin : begin + costs.size]
        if caps[j] == 1:  # a level column, and the box is constant there
            for i in range(costs.size):
                costs[i] += weight if column[i] != smallest else np.float32(0)
            continue
        for i in range(costs.size):
            code = column[i]
            above = integer(code - largest) if code > largest else integer(0)
            below = integer(smallest - code) if code < smallest else integer(0)
            beyond = integer(above | below)  # one of them is 0
            beyond = beyond if beyond < room else room
            costs[i] += weight * np.float32(np.int32(beyond))


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def _extreme(keys: NDArray[np.int32], largest: bool) -> np.int32:
    """The largest or the least of the keys."""
    extreme = keys[0]
    if largest:
        for i in range(keys.size):
            extreme = keys[i] if keys[i] > extreme else extreme
    else:
        for i in range(keys.size):
            extreme = keys[i] if keys[i] < extreme else extreme
    return extreme


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def _choose(
    columns: NDArray[Any],
    placed: NDArray[np.float32],
    low: NDArray[Any],
    high: NDArray[Any],
    caps: NDArray[Any],
    weights: NDArray[np.float32],
    furthest: bool,
    costs: NDArray[np.float32],
    keys: NDArray[np.int32],
) -> int:
    """Position of the first row that adds most (``furthest``) or least to the cost of the box.

    ``keys`` are the bit patterns of ``costs``. Those of numbers from 0 to infinity are ordered like the
    numbers, that of minus infinity is negative; and the extreme of integers is found with vector
    instructions, that of floats is not.
    """
    chosen, chosen_key = -1, np.int32(0)
    for begin in range(0, placed.size, costs.size):
        size = min(costs.size, placed.size - begin)
        block = placed[begin : begin + size]
        for i in range(size):
            costs[i] = np.float32(0) - block[i] if furthest else block[i]
        _add_costs(columns, begin, low, high, caps, weights, costs[:size])
        key = _extreme(keys[:size], furthest)
        if chosen < 0 or (key > chosen_key if furthest else key < chosen_key):
            chosen, chosen_key = begin, key
            while keys[chosen - begin] != key:
                chosen += 1
            if key == 0 and not furthest:  # no row is nearer
                break
    return chosen


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def place_rows(
    columns: NDArray[Any],
    rows: NDArray[np.int64],
    placed: NDArray[np.float32],
    labels: NDArray[np.int64],
    low: NDArray[Any],
    high: NDArray[Any],
    reference: NDArray[Any],
    caps: NDArray[Any],
    weights: NDArray[np.float32],
    costs: NDArray[np.float32],
    keys: NDArray[np.int32],
    k: int,
    seed_is_reference: bool,
    begin: int,
    end: int,
) -> None:
    """Make the choices number ``begin`` to ``end`` of the clustering; 0 to k - 1 are the rows of class 0.

    Parameters
    ----------
    columns : uint16 or uint32, shape (columns, m)
        Codes of the rows that were without a class when the columns were last compacted ...
    rows : int64, shape (m,)
        ... and their row numbers, rising.
    placed : float32, shape (m,)
        0 for a row without a class, infinity once it has one.
    labels : int64, shape (n,)
        Class of each row of the table.
    low, high : shape (columns,)
        Box of the class being built.
    reference : shape (columns,)
        The row from which the next seed is the furthest.
    caps, weights : shape (columns,)
        As in the encoding.
    costs, keys : float32 and int32, shape (BLOCK,)
        Working space, the same memory for both.
    k : int
        Rows per class.
    seed_is_reference : bool
        Whether the reference is the seed of the class; else the row added last.
    begin, end : int
        Which choices to make.
    """
    for choice in range(begin, end):
        is_seed = choice % k == 0
        for j in range(columns.shape[0]):
            low[j] = reference[j] if is_seed else low[j]
            high[j] = reference[j] if is_seed else high[j]
        chosen = _choose(columns, placed, low, high, caps, weights, is_seed, costs, keys)
        for j in range(columns.shape[0]):
            code = columns[j, chosen]
            low[j] = code if is_seed or code < low[j] else low[j]
            high[j] = code if is_seed or code > high[j] else high[j]
            if is_seed or not seed_is_reference:
                reference[j] = code
        placed[chosen] = np.float32(np.inf)
        labels[rows[chosen]] = choice // k

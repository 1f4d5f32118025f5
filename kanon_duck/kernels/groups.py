"""Groups rows with equal keys."""

from __future__ import annotations

import numpy as np
from numba import njit

SPREAD = np.uint64(11400714819323198485)
"""Multiplier of Fibonacci hashing: 2**64 over the golden ratio."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def number_keys(keys, numbers, first):
    """Number the different keys from 0 in the order in which they come; returns how many there are.

    Writes the number of each row's key, and the first row of each number.
    """
    bits = 1
    while 1 << bits < 2 * keys.size:
        bits += 1
    mask = (1 << bits) - 1
    table = np.full(1 << bits, -1, np.int64)
    count = 0
    for row in range(keys.size):
        place = np.int64((np.uint64(keys[row]) * SPREAD) >> np.uint64(64 - bits))
        while table[place] >= 0 and keys[first[table[place]]] != keys[row]:
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = count
            first[count] = row
            count += 1
        numbers[row] = table[place]
    return count

"""Finds classes that do not satisfy the privacy models, and unites them with others near them."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER
from kanon_duck.kernels.row_lists import NO_ROW
from kanon_duck.kernels.satisfies import satisfies

REACH = 24
"""Classes looked at to either side of one that is to be united with another."""

TRIES = 8
"""Of these, the unions of least loss that are tried."""

NOBODY = -1
"""End of the sequence of classes."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_unsatisfied(members, starts, demanded, unsatisfied):
    """Note for each class, the rows ``members[0, starts[c]:starts[c + 1]]``, whether it does not satisfy the demand."""
    for number in range(unsatisfied.size):
        unsatisfied[number] = not satisfies(members, 0, starts[number], starts[number + 1], demanded)


@njit(**INNER)
def _rise(low, high, sizes, number, other, caps, weights):
    """How much the loss rises if two classes become one."""
    rise = 0.0
    for j in range(weights.size):
        one = min(high[number, j] - low[number, j], caps[j])
        two = min(high[other, j] - low[other, j], caps[j])
        both = min(max(high[number, j], high[other, j]) - min(low[number, j], low[other, j]), caps[j])
        rise += weights[j] * (
            (sizes[number] + sizes[other]) * np.float64(both)
            - sizes[number] * np.float64(one)
            - sizes[other] * np.float64(two)
        )
    return rise


@njit(**INNER)
def _candidates(number, low, high, sizes, before, after, caps, weights, found, rises):
    """Write the classes near a class whose union with it costs least, cheapest first; returns how many there are."""
    count = 0
    for side in range(2):
        other = number
        for _ in range(REACH):
            other = before[other] if side == 0 else after[other]
            if other == NOBODY:
                break
            rise = _rise(low, high, sizes, number, other, caps, weights)
            if count == TRIES and rise >= rises[TRIES - 1]:
                continue
            count = min(count + 1, TRIES)
            place = count - 1
            while place > 0 and rises[place - 1] > rise:
                found[place], rises[place] = found[place - 1], rises[place - 1]
                place -= 1
            found[place], rises[place] = other, rise
    return count


@njit(**INNER)
def _copy(first, following, number, members, begin):
    """Copy the rows of a class behind those that stand in ``members``; returns where they end."""
    row = first[number]
    while row != NO_ROW:
        members[0, begin] = row
        begin += 1
        row = following[row]
    return begin


@njit(**INNER)
def _unite(number, host, low, high, sizes, first, last, following, before, after):
    """Make a class a part of another."""
    for j in range(low.shape[1]):
        low[host, j] = min(low[host, j], low[number, j])
        high[host, j] = max(high[host, j], high[number, j])
    sizes[host] += sizes[number]
    sizes[number] = 0
    following[last[host]] = first[number]
    last[host] = last[number]
    if before[number] != NOBODY:
        after[before[number]] = after[number]
    if after[number] != NOBODY:
        before[after[number]] = before[number]


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def unite_unsatisfied(
    low, high, sizes, first, last, following, before, after, caps, weights, demanded, unsatisfied, hosts, members,
    position, visits,
):  # fmt: skip
    """Unite each unsatisfied class from ``position`` on with one near it, until their union satisfies the demand.

    Of the unions of least loss the cheapest that satisfies it is taken; if none does, the cheapest, which then
    looks for the next. Guarantee: what remains satisfies the demand, or is a single class.

    Parameters
    ----------
    low, high : shape (classes, width)
    sizes : int64; first, last : as ``members``, shape (classes,)
        Rows of each class, and both ends of their list.
    following : int64, shape (n,)
    before, after : int64, shape (classes,)
        The sequence of classes, in which like stand near like.
    unsatisfied : bool, shape (classes,)
        Changed in place, as all others are.
    hosts : int64, shape (classes,)
        Written for a class that became part of another: that one.
    members : int32 or int64, shape (1, n)
        Scratch.
    position : int
        Where to go on.
    visits : int
        Rows to look at before it returns.

    Returns
    -------
    int
        The next position.
    """
    found, rises = np.empty(TRIES, np.int64), np.empty(TRIES)
    while position < sizes.size and visits > 0:
        if not unsatisfied[position]:
            position += 1
            continue
        number = position
        while unsatisfied[number] and visits > 0:
            count = _candidates(number, low, high, sizes, before, after, caps, weights, found, rises)
            if count == 0:
                return sizes.size
            own = _copy(first, following, number, members, 0)
            chosen = NOBODY
            for place in range(count):
                end = _copy(first, following, found[place], members, own)
                visits -= end
                if satisfies(members, 0, 0, end, demanded):
                    chosen = found[place]
                    break
            is_satisfied = chosen != NOBODY
            if not is_satisfied:
                chosen = found[0]
            _unite(number, chosen, low, high, sizes, first, last, following, before, after)
            hosts[number] = chosen
            unsatisfied[number] = False
            unsatisfied[chosen] = not is_satisfied
            number = chosen
        if unsatisfied[number] and number < position:
            position = number
    return position

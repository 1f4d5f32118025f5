"""The best way to part a cohort in two, of which each is sound by itself."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.anneal import pair_cost
from kanon_duck.kernels.simd import load, maximum, minimum, weigh

NO_ROW = -1
"""Row of a slot that nobody holds."""

SEEDS = 8
"""Slots tried as the middle of the part that goes."""

PASSES = 3
"""Times that each unit is tried on the other side."""


@njit(**INNER)
def is_sound(value, counts, most, born, side, begin, stop, which, k, attribute_values, required):
    """Whether the slots that count on one side are k, with diverse enough values.

    Of equal values so many count as ``most`` says, besides those of slots that were born first.
    """
    first = np.int64(np.iinfo(np.int64).max)
    for slot in range(begin, stop):
        if side[slot] == which and counts[slot]:
            first = min(first, born[slot])
    rows = 0
    for slot in range(begin, stop):
        if side[slot] == which and counts[slot]:
            equal, oldest = 0, 0
            for other in range(begin, stop):
                if side[other] == which and counts[other] and value[other] == value[slot]:
                    equal += other < slot
                    oldest += born[other] == first
            rows += equal < most[slot] + oldest
    if rows < k:
        return False
    for attribute in range(required.size):
        different = 0
        for slot in range(begin, stop):
            if side[slot] != which or not counts[slot]:
                continue
            own = attribute_values[value[slot], attribute]
            new = True
            for earlier in range(begin, slot):
                if side[earlier] == which and counts[earlier] and attribute_values[value[earlier], attribute] == own:
                    new = False
                    break
            different += new
            if different >= required[attribute]:
                break
        if different < required[attribute]:
            return False
    return True


@njit(**INNER)
def side_loss(codes, caps, weights, row, hides, side, begin, stop, which, hidden_price):
    """Loss of the people on one side."""
    people = 0
    hidden = False
    for slot in range(begin, stop):
        if side[slot] == which:
            people += row[slot] != NO_ROW
            hidden |= hides[slot]
    if people == 0:
        return 0.0
    if hidden:
        return people * hidden_price
    cost = 0.0
    for lane in range(0, codes.shape[1], LANES):
        first = begin
        while side[first] != which or row[first] == NO_ROW:
            first += 1
        low = load(codes, row[first], lane)
        high = low
        for slot in range(first + 1, stop):
            if side[slot] == which and row[slot] != NO_ROW:
                own = load(codes, row[slot], lane)
                low, high = minimum(low, own), maximum(high, own)
        cost += weigh(low, high, caps, weights, lane)
    return people * cost


@njit(**INNER)
def put(unit, side, begin, stop, leader, which):
    """Put the slots of a unit on a side."""
    for slot in range(begin, stop):
        if unit[slot] == leader:
            side[slot] = which


@njit(**INNER)
def may_part(value, counts, most, born, side, begin, stop, both, k, attribute_values, required):
    """Whether what goes is sound, and what stays, where that is in question."""
    return is_sound(value, counts, most, born, side, begin, stop, 1, k, attribute_values, required) and (
        not both or is_sound(value, counts, most, born, side, begin, stop, 0, k, attribute_values, required)
    )


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_parts(
    codes, caps, weights, begins, stops, row, value, counts, most, born, unit, hides, movable, both, k,
    attribute_values, required, hidden_price, least_gain, side, best_side, lean, ordered, gains,
):  # fmt: skip
    """Find for each cohort the parts with the least loss.

    Guarantee: the slots of a cohort that count and go (side 1) are sound; those that stay are too, where ``both`` says
    so. Slots of a unit stay together.

    Parameters
    ----------
    begins, stops : int64, shape (cohorts,)
        Where the slots of each begin and end.
    row : int64, shape (slots,)
        Row of the person who holds each, or NO_ROW.
    value : int64; counts, hides, movable : bool, shape (slots,)
        Whether it counts for soundness, keeps its cohort from being shown, and may go.
    most, born : int64, shape (slots,)
        See `is_sound`.
    unit : int64, shape (slots,)
        The slot, by its place here, with which it goes.
    both : bool
    k, attribute_values, required
        See ``Bounds``.
    hidden_price, least_gain : float
    side, best_side : int8; lean : float64; ordered : int64, shape (slots,)
        ``best_side`` is written where ``gains`` is positive; the others are scratch.
    gains : float64, shape (cohorts,)
        Written: what the loss falls by, 0 where there are no parts that gain ``least_gain``.
    """
    for cohort in range(begins.size):
        begin, stop = begins[cohort], stops[cohort]
        side[begin:stop] = 0
        best_side[begin:stop] = 0
        before = side_loss(codes, caps, weights, row, hides, side, begin, stop, 0, hidden_price)
        best = before - least_gain
        leaders = 0
        for slot in range(begin, stop):
            if unit[slot] == slot and movable[slot]:
                ordered[begin + leaders] = slot
                leaders += 1
        found = False
        for nth in range(min(SEEDS, leaders)):
            seed = ordered[begin + (nth * leaders) // min(SEEDS, leaders)]
            # order the units by how near the seed they are, or how much nearer than to the one furthest from it
            far, furthest = seed, -1.0
            if row[seed] == NO_ROW:
                continue
            for slot in range(begin, stop):
                if row[slot] != NO_ROW:
                    distance = pair_cost(codes, row[seed], row[slot], caps, weights)
                    if distance > furthest:
                        far, furthest = slot, distance
            for place in range(begin, begin + leaders):
                slot = ordered[place]
                lean[slot] = 0.0
                if row[slot] != NO_ROW:
                    lean[slot] = pair_cost(codes, row[seed], row[slot], caps, weights)
                    if both:
                        lean[slot] -= pair_cost(codes, row[far], row[slot], caps, weights)
            # try every beginning of this order
            side[begin:stop] = 0
            tried = 0
            while tried < leaders:
                nearest, least = -1, np.inf
                for place in range(begin, begin + leaders):
                    slot = ordered[place]
                    if side[slot] == 0 and lean[slot] < least:
                        nearest, least = slot, lean[slot]
                put(unit, side, begin, stop, nearest, 1)
                tried += 1
                if not may_part(value, counts, most, born, side, begin, stop, both, k, attribute_values, required):
                    continue
                loss = side_loss(codes, caps, weights, row, hides, side, begin, stop, 0, hidden_price)
                loss += side_loss(codes, caps, weights, row, hides, side, begin, stop, 1, hidden_price)
                if loss < best:
                    best, found = loss, True
                    best_side[begin:stop] = side[begin:stop]
        gains[cohort] = 0.0
        if not found:
            continue
        # then change sides one by one
        side[begin:stop] = best_side[begin:stop]
        for _ in range(PASSES):
            improved = False
            for place in range(begin, begin + leaders):
                slot = ordered[place]
                old = side[slot]
                put(unit, side, begin, stop, slot, 1 - old)
                loss = side_loss(codes, caps, weights, row, hides, side, begin, stop, 0, hidden_price)
                loss += side_loss(codes, caps, weights, row, hides, side, begin, stop, 1, hidden_price)
                if loss < best and may_part(
                    value, counts, most, born, side, begin, stop, both, k, attribute_values, required
                ):
                    best, improved = loss, True
                else:
                    put(unit, side, begin, stop, slot, old)
            if not improved:
                break
        best_side[begin:stop] = side[begin:stop]
        gains[cohort] = before - best

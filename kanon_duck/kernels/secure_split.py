"""The best way to part a cohort in two, of which each is sound by itself."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.anneal import pair_cost
from kanon_duck.kernels.simd import load, maximum, minimum, weigh

NO_ROW = -1
"""Row of a slot that nobody holds."""

WITH_ITS_UNIT = -1
"""Witness of a slot that is no company, or has to go where its witness goes."""

SEEDS = 8
"""Slots tried as the middle of the part that goes."""

PASSES = 3
"""Times that each unit is tried on the other side."""

STAY, GO = 0, 1
"""Sides."""


@njit(**INNER)
def number_alike(keys, begin, stop, numbers):
    """Number the different keys of some slots from 0."""
    found = 0
    for slot in range(begin, stop):
        numbers[slot] = found
        for earlier in range(begin, slot):
            if keys[earlier] == keys[slot]:
                numbers[slot] = numbers[earlier]
                break
        found += numbers[slot] == found
    return found


@njit(**INNER)
def settle(number, original, witness, side, begin, stop, offered):
    """Let company go with its witness where the witness's side does not offer its value."""
    for slot in range(begin, stop):
        offered[STAY, number[slot]] = False
        offered[GO, number[slot]] = False
    for slot in range(begin, stop):
        if original[slot]:
            offered[side[slot], number[slot]] = True
    for slot in range(begin, stop):
        if parts(witness, side, slot) and not offered[side[witness[slot]], number[slot]]:
            side[slot] = side[witness[slot]]


@njit(**INNER)
def parts(witness, side, slot):
    """Whether a slot is company on another side than its witness."""
    return witness[slot] != WITH_ITS_UNIT and side[witness[slot]] != side[slot]


@njit(**INNER)
def is_sound(
    number, counts, static, original, elsewhere, born, witness, side, begin, stop, which, k, required, traits, tally,
    seen, stamp,
):  # fmt: skip
    """Whether the static base slots of one side are k, with diverse enough values; company that parts is among them.

    Of equal values so many count as there were in all classes that somebody of them was in: those of the slots born
    first, and those of the cohort, or side, where the witness is of the one that came last.
    """
    first, last = np.int64(np.iinfo(np.int64).max), np.int64(-1)
    is_new = False
    for slot in range(begin, stop):
        tally[0, number[slot]] = tally[1, number[slot]] = tally[2, number[slot]] = 0
        if side[slot] == which:
            new = static[slot] and parts(witness, side, slot)
            if counts[slot] or new:
                first = min(first, born[slot])
                if born[slot] > last or (born[slot] == last and new):
                    last, is_new = born[slot], new
    different = np.zeros(required.size, np.int64)
    for slot in range(begin, stop):
        if side[slot] == which and (counts[slot] or (static[slot] and parts(witness, side, slot))):
            tally[0, number[slot]] += 1
            tally[1, number[slot]] += born[slot] == first
            for attribute in range(required.size):
                if seen[attribute, traits[attribute, slot]] != stamp:
                    seen[attribute, traits[attribute, slot]] = stamp
                    different[attribute] += 1
        elif side[slot] != which and original[slot]:
            tally[2, number[slot]] += 1
    for attribute in range(required.size):
        if different[attribute] < required[attribute]:
            return False
    rows = 0
    for slot in range(begin, stop):
        own = tally[0, number[slot]]
        if own > 0:
            rows += min(own, tally[1, number[slot]] + (tally[2, number[slot]] if is_new else elsewhere[slot]))
            tally[0, number[slot]] = 0
    return rows >= k


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


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_parts(
    codes, caps, weights, begins, stops, row, value, counts, static, original, elsewhere, born, unit, witness, hides,
    demand_stops, demanding, demanded, k, attribute_values, required, hidden_price, least_gain, side, settled,
    best_side, lean, ordered, gains,
):  # fmt: skip
    """Find for each cohort the parts with the least loss.

    Guarantee: the static base slots of each part are sound. Company is in another part than its witness only where the
    witness's part offers its value, and what others demand beside a slot is offered in the slot's part. Slots of a unit
    stay together.

    Parameters
    ----------
    begins, stops : int64, shape (cohorts,)
        Where the slots of each begin and end.
    row : int64, shape (slots,)
        Row of the person who holds each, or NO_ROW.
    value : int64; counts, static, original, hides : bool, shape (slots,)
        Whether it is a static base slot, a static one, a static one that the cohort formed with, and whether it keeps
        its cohort from being shown.
    elsewhere, born : int64, shape (slots,)
        See `is_sound`; ``elsewhere`` is of the cohort as it is.
    unit, witness : int64, shape (slots,)
        The slot, by its place here, with which it goes; and the witness of one that need not go with it, else
        WITH_ITS_UNIT.
    demand_stops : int64, shape (cohorts,)
        Where the demands on the slots of each end.
    demanding, demanded : int64, shape (demands,)
        A slot, and a value that must be offered beside it.
    k, attribute_values, required
        See ``Bounds``.
    hidden_price, least_gain : float
    side, settled, best_side : int8; lean : float64; ordered : int64, shape (slots,)
        ``best_side`` is written where ``gains`` is positive; the others are scratch.
    gains : float64, shape (cohorts,)
        Written: what the loss falls by, 0 where there are no parts that gain ``least_gain``.
    """
    most = 1
    for cohort in range(begins.size):
        most = max(most, stops[cohort] - begins[cohort])
    number = np.zeros(side.size, np.int64)
    traits = np.zeros((required.size, side.size), np.int64)
    keys = np.zeros(side.size, np.int64)
    offered = np.zeros((2, most), np.bool_)
    tally = np.zeros((3, most), np.int64)
    seen = np.zeros((required.size, most), np.int64)
    stamp = np.int64(0)
    for cohort in range(begins.size):
        begin, stop = begins[cohort], stops[cohort]
        first_demand, last_demand = (demand_stops[cohort - 1] if cohort > 0 else 0), demand_stops[cohort]
        gains[cohort] = 0.0
        side[begin:stop] = STAY
        best_side[begin:stop] = STAY
        number_alike(value, begin, stop, number)
        for attribute in range(required.size):
            for slot in range(begin, stop):
                keys[slot] = attribute_values[value[slot], attribute]
            number_alike(keys, begin, stop, traits[attribute])
        before = side_loss(codes, caps, weights, row, hides, side, begin, stop, STAY, hidden_price)
        best = before - least_gain
        leaders = 0
        for slot in range(begin, stop):
            if unit[slot] == slot:
                ordered[begin + leaders] = slot
                leaders += 1
        found = False
        tries = min(SEEDS, leaders)
        # from each seed every beginning of an order; then each unit on the other side
        for nth in range(tries + PASSES):
            is_pass = nth >= tries
            if is_pass:
                if not found:
                    break
                side[begin:stop] = best_side[begin:stop]
            else:
                seed = ordered[begin + (nth * leaders) // tries]
                if row[seed] == NO_ROW:
                    continue
                order_units(codes, caps, weights, row, begin, stop, leaders, seed, lean, ordered)
                side[begin:stop] = STAY
            improved = False
            for place in range(begin, begin + leaders):
                slot = ordered[place]
                old = side[slot]
                put(unit, side, begin, stop, slot, STAY + GO - old)
                settled[begin:stop] = side[begin:stop]
                settle(number, original, witness, settled, begin, stop, offered)
                stamp += 2
                allowed = True
                for which in range(2):
                    allowed = allowed and is_sound(
                        number, counts, static, original, elsewhere, born, witness, settled, begin, stop, which, k,
                        required, traits, tally, seen, stamp + which,
                    )  # fmt: skip
                for demand in range(first_demand, last_demand):
                    if allowed:
                        allowed = has_offered(
                            value, number, offered, settled, begin, stop, demanding[demand], demanded[demand]
                        )
                loss = np.inf
                if allowed:
                    loss = side_loss(codes, caps, weights, row, hides, settled, begin, stop, STAY, hidden_price)
                    loss += side_loss(codes, caps, weights, row, hides, settled, begin, stop, GO, hidden_price)
                if loss < best:
                    best, found, improved = loss, True, True
                    best_side[begin:stop] = settled[begin:stop]
                    if is_pass:
                        side[begin:stop] = settled[begin:stop]
                elif is_pass:
                    put(unit, side, begin, stop, slot, old)
            if is_pass and not improved:
                break
        if found:
            gains[cohort] = before - best


@njit(**INNER)
def has_offered(value, number, offered, side, begin, stop, demanding, demanded):
    """Whether the side of a slot offers a value."""
    for slot in range(begin, stop):
        if value[slot] == demanded:
            return offered[side[demanding], number[slot]]
    return False


@njit(**INNER)
def order_units(codes, caps, weights, row, begin, stop, leaders, seed, lean, ordered):
    """Order units by how much nearer the seed they are than to the slot furthest from it; empty ones come first."""
    far, furthest = seed, -1.0
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
            lean[slot] -= pair_cost(codes, row[far], row[slot], caps, weights)
    for place in range(begin + 1, begin + leaders):
        slot = ordered[place]
        at = place
        while at > begin and (lean[ordered[at - 1]], ordered[at - 1]) > (lean[slot], slot):
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = slot

"""Who and what is near the people who wait for a slot: others of them, and open cohorts."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES
from kanon_duck.kernels.simd import load, maximum, minimum, weigh


@njit(**INNER)
def insert(distances, found, row, begin, end, distance, number):
    """Keep a candidate among ``found[row, begin:end]`` if it is nearer than the last; nearest first."""
    if distance >= distances[row, end - 1]:
        return
    position = end - 1
    while position > begin and distances[row, position - 1] > distance:
        distances[row, position] = distances[row, position - 1]
        found[row, position] = found[row, position - 1]
        position -= 1
    distances[row, position] = distance
    found[row, position] = number


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_near(codes, caps, weights, value, reach, alike, distances, found):
    """Find the people nearest to each among those that stand within ``reach`` places.

    Parameters
    ----------
    codes : shape (n, width)
    value : int64, shape (n,)
    alike : int
        So many of those found, the last ones, have the same value.
    distances : float64, shape (n, count)
        Infinite at first.
    found : int32, same shape
        Written; the person's own number where there are fewer.
    """
    n, count = found.shape
    for person in range(n):
        found[person, :] = person
        for other in range(max(0, person - reach), min(n, person + reach + 1)):
            if other == person:
                continue
            distance = 0.0
            for lane in range(0, codes.shape[1], LANES):
                one, two = load(codes, person, lane), load(codes, other, lane)
                distance += weigh(minimum(one, two), maximum(one, two), caps, weights, lane)
            insert(distances, found, person, 0, count - alike, distance, other)
            if alike > 0 and value[other] == value[person]:
                insert(distances, found, person, count - alike, count, distance, other)


@njit(**INNER)
def shares_enough(
    value, own_begin, own_end, allowed, allowed_counts, begin, end, offered, counts, attribute_values, required, k
):  # fmt: skip
    """Whether a person's own value and those that are both allowed and offered are diverse enough, in k rows."""
    rows = 1
    for attribute in range(-1, required.size):
        different = 1
        at = own_begin
        for place in range(begin, end):
            while at < own_end and allowed[at] < offered[place]:
                at += 1
            if at == own_end or allowed[at] != offered[place]:
                continue
            if attribute < 0:
                rows += min(counts[place], allowed_counts[at])
                continue
            own = attribute_values[offered[place], attribute]
            new = own != attribute_values[value, attribute]
            earlier = own_begin
            for before in range(begin, place):
                while earlier < at and allowed[earlier] < offered[before]:
                    earlier += 1
                common = allowed[earlier] == offered[before]
                new &= not (common and attribute_values[offered[before], attribute] == own)
            different += new
        if attribute >= 0 and different < required[attribute]:
            return False
    return rows >= k


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_homes(
    codes, caps, weights, value, known, allowed_stops, allowed, allowed_counts, former_root, position, low,
    high, people, root, cohort_position, empty_stops, empty, takes, offer_stops, offered, counts, attribute_values,
    required, k, reach, fills, distances, found,
):  # fmt: skip
    """Find the open cohorts whose loss rises least when they take each person in.

    Parameters
    ----------
    codes, value, known, allowed_stops, allowed, allowed_counts, low, high, people, empty_stops, empty, takes
        See ``Pool`` and ``Cohorts``.
    former_root : int64, shape (known people,)
        The cohort that each one's last cohort descends from.
    position : int64, shape (n,); cohort_position : int64, shape (cohorts,)
        Where they stand in an order; only cohorts within ``reach`` of a person are looked at. The latter rises.
    root : int64, shape (cohorts,)
    offer_stops, offered, counts
        Values that each cohort offers, rising, and on how many slots.
    fills : int
        So many of those found, the first ones, have an empty slot with the person's value; the others take company.
    distances : float64, shape (n, candidates)
        Infinite at first.
    found : int32, same shape
        Written, where there are as many: at first all NO_CANDIDATE.
    """
    n, count = found.shape
    for person in range(n):
        first = np.searchsorted(cohort_position, position[person] - reach)
        stop = np.searchsorted(cohort_position, position[person] + reach + 1)
        for cohort in range(first, stop):
            fits = False
            for place in range(empty_stops[cohort - 1] if cohort else 0, empty_stops[cohort]):
                fits |= empty[place] == value[person]
            if not fits and takes[cohort] == 0:
                continue
            before, after = 0.0, 0.0
            for lane in range(0, codes.shape[1], LANES):
                row = load(codes, person, lane)
                least, most = load(low, cohort, lane), load(high, cohort, lane)
                before += weigh(least, most, caps, weights, lane)
                after += weigh(minimum(least, row), maximum(most, row), caps, weights, lane)
            distance = (people[cohort] + 1) * after - people[cohort] * before
            if distance >= distances[person, fills - 1] and distance >= distances[person, count - 1]:
                continue
            if known[person] > 0:
                number = known[person] - 1
                if former_root[number] == root[cohort] or not shares_enough(
                    value[person], allowed_stops[number - 1] if number > 0 else 0, allowed_stops[number], allowed,
                    allowed_counts, offer_stops[cohort - 1] if cohort > 0 else 0, offer_stops[cohort], offered, counts,
                    attribute_values, required, k,
                ):  # fmt: skip
                    continue
            if fits:
                insert(distances, found, person, 0, fills, distance, cohort)
            if takes[cohort] > 0:
                insert(distances, found, person, fills, count, distance, cohort)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_callers(
    codes, caps, weights, value, position, low, high, people, cohort_position, empty_stops, empty, reach, distances,
    found,
):  # fmt: skip
    """Find the people whom each empty slot can be filled by and whose cohort then loses least.

    The arguments are those of `find_homes`, but for ``found``, int32 of shape (empty slots, candidates): people, at
    first all NO_CANDIDATE; ``position`` rises too.
    """
    for cohort in range(people.size):
        first = np.searchsorted(position, cohort_position[cohort] - reach)
        stop = np.searchsorted(position, cohort_position[cohort] + reach + 1)
        begin, end = empty_stops[cohort - 1] if cohort else 0, empty_stops[cohort]
        for person in range(first, stop):
            fits = False
            for place in range(begin, end):
                fits |= empty[place] == value[person]
            if not fits:
                continue
            distance = 0.0
            for lane in range(0, codes.shape[1], LANES):
                row = load(codes, person, lane)
                least, most = load(low, cohort, lane), load(high, cohort, lane)
                distance += weigh(minimum(least, row), maximum(most, row), caps, weights, lane)
            for place in range(begin, end):
                if empty[place] == value[person]:
                    insert(distances, found, place, 0, found.shape[1], distance, person)

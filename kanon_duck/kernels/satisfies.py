"""The one predicate that says whether rows may form a class; every search asks it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kanon_duck.kernels import INNER


class Closeness(NamedTuple):
    """How near a set of rows must be to the table in its sensitive values.

    Attributes
    ----------
    t : float
        Greatest distance.
    levels : int64, shape (columns, n)
        Values as distances see them, numbered from 0: for an attribute with a hierarchy one column for each level
        below the root, for others one column.
    attribute : int64, shape (columns,)
        Which attribute each column belongs to, rising.
    holdings : int64, shape (attributes, n) or (attributes, 0)
        Number, from 0, of the pair of person and value in each row, which counts once: two values of a person count
        twice for a node above both. Empty where each row is a person of its own.
    number_of_holdings : int
        1 where ``holdings`` is empty.
    ordered : bool, shape (columns,)
        Whether the numbers of a column stand for an order.
    starts : int64, shape (columns + 1,)
        Where each column begins in ``shares``, and where the last ends.
    shares, cumulative : float64, shape (numbers of all columns,)
        For each number of each column its share of the table, and the share up to it.
    summed : float64, shape (numbers of all columns + columns,)
        For each number of each column, and behind the last: the sum of the cumulative shares before it.
    """

    t: float
    levels: NDArray[np.int64]
    attribute: NDArray[np.int64]
    holdings: NDArray[np.int64]
    number_of_holdings: int
    ordered: NDArray[np.bool_]
    starts: NDArray[np.int64]
    shares: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    summed: NDArray[np.float64]


class Requirement(NamedTuple):
    """What the models demand of any set of rows, where they speak of more than their number.

    Attributes
    ----------
    k : int
        Fewest rows.
    least_persons : int
        Fewest persons.
    persons : int64, shape (n,) or (0,)
        Number of the person that each row is about, from 0; empty where each row is one of its own.
    number_of_persons : int
        1 where ``persons`` is empty.
    values, strong : int64, shape (sensitive attributes, n)
        Value, and strong value, of each row, numbered from 0.
    l, p : int
        Different values, and different strong values; 0 where not set.
    entropy : float
        Least entropy; 0 where not set.
    c, recursive_l : float and int
        See ``PrivacyModel``; ``recursive_l`` is 0 where not set.
    alpha : float
        Greatest frequency; 1 where not set.
    closeness : Closeness or None
        None where not set.
    """

    k: int
    least_persons: int
    persons: NDArray[np.int64]
    number_of_persons: int
    values: NDArray[np.int64]
    strong: NDArray[np.int64]
    l: int  # noqa: E741 - the field's name for it
    p: int
    entropy: float
    c: float
    recursive_l: int
    alpha: float
    closeness: Closeness | None


@intrinsic
def satisfies(typing, members, number, first, stop, requirement):
    """Whether the rows ``members[number, first:stop]`` may be a class.

    ``requirement`` is the least number of rows, or a ``Requirement`` with closeness or without: each has machine code
    of its own.
    """
    if isinstance(requirement, types.Integer):
        chosen = _enough
    elif isinstance(requirement[requirement.fields.index("closeness")], types.NoneType):
        chosen = _diverse_enough
    else:
        chosen = _close_enough
    function = types.Dispatcher(chosen)
    signature = function.get_call_type(typing, (members, types.intp, types.intp, types.intp, requirement), {})

    def build(context, builder, signature, arguments):
        return context.get_function(function, signature)(builder, arguments)

    return signature, build


@njit(**INNER)
def _enough(members, number, first, stop, least):
    """Whether there are enough rows."""
    return stop - first >= least


@njit(**INNER)
def _sort(keys):
    """Sort in place (Shell's method): small classes take few comparisons, large ones not their square."""
    gap = 1
    while gap < keys.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for end in range(gap, keys.size):
            key = keys[end]
            place = end
            while place >= gap and keys[place - gap] > key:
                keys[place] = keys[place - gap]
                place -= gap
            keys[place] = key
        gap //= 3


@njit(**INNER)
def _frequencies(members, number, first, stop, codes, persons, number_of_persons, keys, found, frequencies):
    """Write the different codes of some rows, rising, and how often each occurs; returns how many there are.

    A code counts once for each person. ``keys`` is scratch.
    """
    count = stop - first
    for place in range(count):
        row = members[number, first + place]
        person = persons[row] if persons.size else 0
        keys[place] = codes[row] * number_of_persons + person
    _sort(keys)
    different = 0
    for place in range(count):
        if persons.size and place > 0 and keys[place] == keys[place - 1]:
            continue
        code = keys[place] // number_of_persons
        if different == 0 or found[different - 1] != code:
            found[different] = code
            frequencies[different] = 0
            different += 1
        frequencies[different - 1] += 1
    return different


@njit(**INNER)
def _has_different(members, number, first, stop, codes, least, found):
    """Whether some rows have so many different codes; no row after the last one needed is looked at.

    ``found`` is scratch for that many codes.
    """
    different = 0
    for place in range(first, stop):
        if different >= least:
            break
        code = codes[members[number, place]]
        known = 0
        while known < different and found[known] != code:
            known += 1
        if known == different:
            found[different] = code
            different += 1
    return different >= least


@njit(**INNER)
def _diverse(frequencies, count, requirement):
    """Whether the frequencies of an attribute's values suffice for the models of frequencies.

    ``count`` is the number of the class's persons.

    The frequencies may be in another order afterwards.
    """
    total = 0
    most = 0
    for frequency in frequencies:
        total += frequency
        most = max(most, frequency)
    if most > requirement.alpha * count:
        return False
    if requirement.entropy > 0.0:
        entropy = 0.0
        for frequency in frequencies:
            entropy -= frequency / total * math.log(frequency / total)
        if entropy < requirement.entropy:
            return False
    if requirement.recursive_l > 0:
        if frequencies.size < requirement.recursive_l:
            return False
        _sort(frequencies)
        rarer = 0
        for place in range(frequencies.size - requirement.recursive_l + 1):
            rarer += frequencies[place]
        if most >= requirement.c * rarer:
            return False
    return True


@njit(**INNER)
def _apart(found, frequencies, shares):
    """Variational distance between a class's values and the table's: what values have more than their share."""
    total = frequencies.sum()
    distance = 0.0
    for place in range(found.size):
        distance += max(frequencies[place] / total - shares[found[place]], 0.0)
    return distance


@njit(**INNER)
def _apart_in_order(found, frequencies, cumulative, summed):
    """Ordered distance (Li et al. 2007, section 5.1): mean of the differences of the two cumulative shares.

    Between two values of the class its cumulative share is constant and the table's rises, so the differences there
    have one change of sign, which is searched for.
    """
    total = frequencies.sum()
    size = cumulative.size
    if size == 1:
        return 0.0
    distance = summed[found[0]]
    reached = 0.0
    for place in range(found.size):
        reached += frequencies[place] / total
        begin = found[place]
        end = found[place + 1] if place + 1 < found.size else size
        low, high = begin, end
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] < reached:
                low = middle + 1
            else:
                high = middle
        distance += (low - begin) * reached - (summed[low] - summed[begin])
        distance += (summed[end] - summed[low]) - (end - low) * reached
    return distance / (size - 1)


@njit(**INNER)
def _diverse_enough(members, number, first, stop, requirement):
    """Whether some rows satisfy all models but closeness."""
    if stop - first < requirement.k:
        return False
    keys, found, frequencies = np.empty((3, stop - first), np.int64)
    count = stop - first
    if requirement.persons.size:
        count = _frequencies(
            members, number, first, stop, requirement.persons, requirement.persons, requirement.number_of_persons,
            keys, found, frequencies,
        )  # fmt: skip
    if count < requirement.least_persons:
        return False
    counted = requirement.alpha < 1.0 or requirement.entropy > 0.0 or requirement.recursive_l > 0
    for attribute in range(requirement.values.shape[0]):
        if not _has_different(members, number, first, stop, requirement.values[attribute], requirement.l, found):
            return False
        if not _has_different(members, number, first, stop, requirement.strong[attribute], requirement.p, found):
            return False
    for attribute in range(requirement.values.shape[0] if counted else 0):
        different = _frequencies(
            members, number, first, stop, requirement.values[attribute], requirement.persons,
            requirement.number_of_persons, keys, found, frequencies,
        )  # fmt: skip
        if not _diverse(frequencies[:different], count, requirement):
            return False
    return True


@njit(**INNER)
def _close_enough(members, number, first, stop, requirement):
    """Whether some rows satisfy all models, and each attribute's values are as near to the table's as t demands."""
    if not _diverse_enough(members, number, first, stop, requirement):
        return False
    closeness = requirement.closeness
    keys, found, frequencies = np.empty((3, stop - first), np.int64)
    column = 0
    while column < closeness.attribute.size:
        attribute = closeness.attribute[column]
        distance, columns = 0.0, 0
        while column < closeness.attribute.size and closeness.attribute[column] == attribute:
            start, end = closeness.starts[column], closeness.starts[column + 1]
            different = _frequencies(
                members, number, first, stop, closeness.levels[column], closeness.holdings[attribute],
                closeness.number_of_holdings, keys, found, frequencies,
            )  # fmt: skip
            if closeness.ordered[column]:
                distance += _apart_in_order(
                    found[:different], frequencies[:different], closeness.cumulative[start:end],
                    closeness.summed[start + column : end + column + 1],
                )  # fmt: skip
            else:
                distance += _apart(found[:different], frequencies[:different], closeness.shares[start:end])
            columns += 1
            column += 1
        if distance / columns > closeness.t:
            return False
    return True

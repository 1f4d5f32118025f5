"""Specializes classes by Top Down, and pushes back rows that break the privacy models."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER
from kanon_duck.kernels.attribute_cuts import (
    at_border,
    at_children,
    lower_median,
    mark_satisfied,
    put_in_order,
    unite_unsatisfied,
    width,
)
from kanon_duck.kernels.row_lists import fit_box
from kanon_duck.kernels.satisfies import satisfies

NONE = -1
"""No attribute."""


@njit(**INNER)
def _largest_beside_rest(parts, size, room):
    """Renumber the parts so that the largest of them stands beside the rest, which is the last."""
    largest = np.argmax(room.starts[1:parts] - room.starts[: parts - 1])
    beside = parts - 2
    for place in range(size):
        number = room.part[place]
        if number == largest:
            room.part[place] = beside
        elif number == beside:
            room.part[place] = largest


@njit(**INNER)
def _push_back(parts, least, demanded, room):
    """Let the rest, the last part, have rows of the part beside it; whether both then satisfy the demand.

    As few rows as the rest is short of, or that number doubled, and doubled again.
    """
    first, border, end = room.starts[parts - 2], room.starts[parts - 1], room.starts[parts]
    rows = max(1, least - (end - border))
    while border - rows - first >= least:
        if satisfies(room.order, 0, border - rows, end, demanded):
            room.starts[parts - 1] = border - rows
            return satisfies(room.order, 0, first, border - rows, demanded)
        rows *= 2
    return False


@njit(**INNER)
def _specialize(codes, low, high, attributes, attribute, members, begin, end, least, demanded, room):
    """Specialize a class in one attribute; returns the number of parts, 0 where no part satisfies the demand."""
    if attributes.numeric[attribute]:
        column = attributes.first[attribute]
        median = np.int64(lower_median(codes, column, members, begin, end, room))
        parts = at_border(codes, column, members, begin, end, min(median + 1, np.int64(high[column])), room)
    else:
        parts = at_children(codes, low, high, attributes, attribute, members, begin, end, room)
    put_in_order(members, begin, end, parts, room)
    if mark_satisfied(parts, least, demanded, False, room):
        return parts
    parts = unite_unsatisfied(parts, end - begin, room)
    put_in_order(members, begin, end, parts, room)
    while parts > 1:
        if satisfies(room.order, 0, room.starts[parts - 1], end, demanded):
            return parts
        _largest_beside_rest(parts, end - begin, room)
        put_in_order(members, begin, end, parts, room)
        if _push_back(parts, least, demanded, room):
            return parts
        parts -= 1  # nothing of that part can stay: all of it goes back
        for place in range(end - begin):
            room.part[place] = min(room.part[place], parts - 1)
        put_in_order(members, begin, end, parts, room)
    return 0


@njit(**INNER)
def _loss(codes, attributes, parts, low, high, room):
    """Loss of the parts; the box is left around the last."""
    loss = 0.0
    for part in range(parts):
        first, stop = room.starts[part], room.starts[part + 1]
        fit_box(low, high, codes, room.order, first, stop)
        for attribute in range(attributes.numeric.size):
            loss += (stop - first) * width(low, high, attributes, attribute)
    return loss


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def specialize_classes(
    least, demanded, codes, attributes, members, begins, ends, waiting, labels, classes, room, visits
):  # fmt: skip
    """Specialize the classes that wait, the last first; label the rows of those that cannot be specialized.

    Guarantee: the parts of a class all satisfy what is demanded.

    Parameters
    ----------
    least, demanded, codes, attributes, members, begins, ends, waiting, labels, classes, room, visits
        See `kanon_duck.kernels.mondrian.cut_classes`.

    Returns
    -------
    waiting, classes : int
    """
    low, high, part_low, part_high = np.empty((4, codes.shape[1]), codes.dtype)
    while waiting > 0 and visits > 0:
        waiting -= 1
        begin, end = begins[waiting], ends[waiting]
        visits -= 1
        best, least_loss = NONE, np.inf
        if end - begin >= 2 * least:
            fit_box(low, high, codes, members, begin, end)
            for attribute in range(attributes.numeric.size):
                if width(low, high, attributes, attribute) == 0.0:
                    continue
                visits -= end - begin
                found = _specialize(codes, low, high, attributes, attribute, members, begin, end, least, demanded, room)
                if found > 0:
                    loss = _loss(codes, attributes, found, part_low, part_high, room)
                    if loss < least_loss:
                        best, least_loss = attribute, loss
        if best == NONE:
            for position in range(begin, end):
                labels[members[0, position]] = classes
            classes += 1
            continue
        parts = _specialize(codes, low, high, attributes, best, members, begin, end, least, demanded, room)
        members[0, begin:end] = room.order[0, begin:end]
        for part in range(parts):
            begins[waiting], ends[waiting] = room.starts[part], room.starts[part + 1]
            waiting += 1
    return waiting, classes

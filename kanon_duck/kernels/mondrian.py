"""Mondrian: cuts classes as long as every part satisfies what is demanded."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER
from kanon_duck.kernels.partition import fit_box
from kanon_duck.kernels.parts import (
    all_satisfied,
    at_border,
    at_children,
    at_middle,
    lower_median,
    put_in_order,
    unite_unsatisfied,
    width,
)


@njit(**INNER)
def _is_allowed(members, begin, end, parts, least, demanded, room):
    """Put the parts in order; whether all satisfy the demand."""
    put_in_order(members, begin, end, parts, room)
    return all_satisfied(parts, least, demanded, room)


@njit(**INNER)
def _cut_number(codes, column, relaxed, members, begin, end, least, demanded, room):
    """Cut a class at the median of a column; returns the number of parts, 0 where that is not allowed."""
    if relaxed:
        parts = at_middle(codes, column, members, begin, end, room)
        return parts if _is_allowed(members, begin, end, parts, least, demanded, room) else 0
    median = np.int64(lower_median(codes, column, members, begin, end, room))
    for border in (median + 1, median):
        parts = at_border(codes, column, members, begin, end, border, room)
        if _is_allowed(members, begin, end, parts, least, demanded, room):
            return parts
    return 0


@njit(**INNER)
def _cut_category(codes, low, high, attributes, attribute, relaxed, members, begin, end, least, demanded, room):
    """Cut a class at the children of the common ancestor; returns the number of parts, 0 where that is not allowed."""
    parts = at_children(codes, low, high, attributes, attribute, members, begin, end, room)
    if _is_allowed(members, begin, end, parts, least, demanded, room):
        return parts
    if relaxed:
        parts = unite_unsatisfied(parts, least, demanded, begin, end, room)
        if parts > 1 and _is_allowed(members, begin, end, parts, least, demanded, room):
            return parts
    return 0


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def cut_classes(
    relaxed, least, demanded, codes, attributes, members, begins, ends, waiting, labels, classes, room, visits
):  # fmt: skip
    """Cut the classes that wait, the last first; label the rows of those that cannot be cut.

    Guarantee: a class is cut only where every part satisfies what is demanded.

    Parameters
    ----------
    relaxed : bool
        Whether the boxes of the parts may overlap.
    least : int
        Fewest rows of a class.
    demanded : int or Requirement
        See `kanon_duck.kernels.satisfies`.
    codes : uint16 or uint32, shape (n, width)
    attributes : Attributes
    members : int64, shape (1, n)
        The rows, class by class; changed in place.
    begins, ends : int64, shape (classes that may wait,)
        Where each waiting class stands among the members; changed in place.
    waiting : int
        How many wait.
    labels : int64, shape (n,)
        Written for the rows of classes that are done.
    classes : int
        How many are done.
    room : Room
    visits : int
        Rows to look at before it returns.

    Returns
    -------
    waiting, classes : int
    """
    low, high = np.empty((2, codes.shape[1]), codes.dtype)
    widths = np.empty(attributes.numeric.size)
    while waiting > 0 and visits > 0:
        waiting -= 1
        begin, end = begins[waiting], ends[waiting]
        parts = 0
        if end - begin >= 2 * least:
            fit_box(low, high, codes, members, begin, end)
            for attribute in range(widths.size):
                widths[attribute] = width(low, high, attributes, attribute)
        else:
            widths[:] = 0.0
        widest = np.argmax(widths)
        while parts == 0 and widths[widest] > 0.0:
            visits -= end - begin
            if attributes.numeric[widest]:
                parts = _cut_number(
                    codes, attributes.first[widest], relaxed, members, begin, end, least, demanded, room
                )
            else:
                parts = _cut_category(
                    codes, low, high, attributes, widest, relaxed, members, begin, end, least, demanded, room
                )
            widths[widest] = 0.0
            widest = np.argmax(widths)
        visits -= 1
        if parts == 0:
            for position in range(begin, end):
                labels[members[0, position]] = classes
            classes += 1
        else:
            members[0, begin:end] = room.order[0, begin:end]
        for part in range(parts):
            begins[waiting], ends[waiting] = room.starts[part], room.starts[part + 1]
            waiting += 1
    return waiting, classes

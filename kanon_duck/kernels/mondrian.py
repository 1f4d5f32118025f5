"""Cuts classes by Mondrian as long as every part satisfies the privacy models."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER
from kanon_duck.kernels.attribute_cuts import (
    at_border,
    at_children,
    at_middle,
    lower_median,
    mark_satisfied,
    put_in_order,
    unite_unsatisfied,
    width,
)
from kanon_duck.kernels.row_lists import fit_box

TRIES = 2
"""Ways to cut a class along an attribute."""


@njit(**INNER)
def _numbered_parts(
    attempt, parts, codes, low, high, attributes, attribute, relaxed, members, begin, end, room
):  # fmt: skip
    """Number the parts of a class along an attribute; returns how many, or 0 where there is no such way.

    ``parts`` is their number at the attempt before.
    """
    if not attributes.numeric[attribute]:
        if attempt == 0:
            return at_children(codes, low, high, attributes, attribute, members, begin, end, room)
        return unite_unsatisfied(parts, end - begin, room) if relaxed else 0
    column = attributes.first[attribute]
    if relaxed:
        return at_middle(codes, column, members, begin, end, room) if attempt == 0 else 0
    border = np.int64(lower_median(codes, column, members, begin, end, room)) + 1 - attempt
    return at_border(codes, column, members, begin, end, border, room)


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
        widest, is_cut = np.argmax(widths), False
        while not is_cut and widths[widest] > 0.0:
            visits -= end - begin
            for attempt in range(TRIES):
                parts = _numbered_parts(
                    attempt, parts, codes, low, high, attributes, widest, relaxed, members, begin, end, room
                )
                if parts > 1:
                    put_in_order(members, begin, end, parts, room)
                    is_cut = mark_satisfied(parts, least, demanded, not relaxed, room)
                if is_cut:
                    break
            widths[widest] = 0.0
            widest = np.argmax(widths)
        visits -= 1
        if not is_cut:
            for position in range(begin, end):
                labels[members[0, position]] = classes
            classes += 1
            continue
        members[0, begin:end] = room.order[0, begin:end]
        for part in range(parts):
            begins[waiting], ends[waiting] = room.starts[part], room.starts[part + 1]
            waiting += 1
    return waiting, classes

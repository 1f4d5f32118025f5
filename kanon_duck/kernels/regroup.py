"""Gives classes of a partition other rows, and updates their lists and boxes."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.class_tree import set_class, take_entry
from kanon_duck.kernels.row_lists import enlist, fit_box


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def regroup(codes, labels, first, following, index, classes, starts, members, near, begin):
    """Write classes from ``begin`` on; returns the first that found no free entry in the index, or their number.

    The entries are to be written afterwards.

    Parameters
    ----------
    codes, labels, first, following, index
        As in ``Partition``; changed in place.
    classes : int64, shape (c,)
        Class numbers: such as have an entry in the index, then those to be added, rising from ``index.used``,
        then those that lose all their rows.
    starts : int64, shape (c + 1,)
        Where the rows of each class begin in ``members``.
    members : int64, shape (1, rows)
    near : int64, shape (c,)
        For a class to be added, one with an entry beside which it is to stand.
    begin : int
    """
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    for place in range(begin, classes.size):
        label, start, stop = classes[place], starts[place], starts[place + 1]
        fit_box(low, high, codes, members, start, stop)
        if label == index.used[0] and take_entry(index, near[place]) == NO_CLASS:
            return place
        set_class(index, label, low, high, stop - start)
        enlist(labels, first, following, label, members, start, stop)
    return classes.size

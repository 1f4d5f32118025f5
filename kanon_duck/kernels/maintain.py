"""I3M+ and I3M-: classes that lost rows are put in order, rows without a class are placed."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import ZERO
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.class_index import best_class, new_scratch, replace_class, take_entry
from kanon_duck.kernels.partition import NO_ROW, clear_box, enlist, fit_box, gather, join_box, sort_rows
from kanon_duck.kernels.satisfies import satisfies
from kanon_duck.kernels.split import divide

STRETCH = 1 << 21
"""Work between two looks at whether it is still wanted, in rows compared: less than a tenth of a second."""

LOOK_UP = 400
"""Work of finding a row's best class, in rows compared."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def maintain(codes, labels, first, following, index, classes, rows, position, unsplit, k, demanded):
    """A stretch of I3M- for ``classes``, then of I3M+ for ``rows``; called again it goes on from there.

    All classes are made tight, and those without rows drop out. Then each in turn is dispersed if it may
    not stand, its rows by rising number; and one that may, because it has grown by its turn, is split if
    it has 2k rows or more. Then each row joins the class whose total loss rises least (FindBestCluster).
    A class that reaches 2k rows is split at once, and again until every part is below.

    Guarantee: a class is split only if both parts satisfy the predicate, and the box of every class is
    tight around its rows.

    Parameters
    ----------
    codes, labels, first, following, index
        As in ``Partition``; changed in place.
    classes : int64, shape (c,)
        Classes some of whose rows have label NO_CLASS now.
    rows : int64, shape (r,)
        Rows to be placed. They, and those to be dispersed, end in no class where there is no other.
    position : int
        Steps done, from 0: two for each class, one for each row.
    unsplit : int
        The class to be split before the next step, or NO_CLASS.
    k : int
    demanded : int or Requirement
        What `satisfies` takes.

    Returns
    -------
    tuple of int, int and bool
        The next ``position`` and ``unsplit``; and whether the index needs free entries to go on.
    """
    scratch = new_scratch(index)
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    steps = 2 * classes.size + rows.size
    work = 0
    while work < STRETCH and (position < steps or unsplit != NO_CLASS):
        # each round changes the list of at most one old class, and leaves its new box in low and high
        row, changed, size = NO_ROW, NO_CLASS, 0
        if unsplit != NO_CLASS:
            size = index.sizes[unsplit]
            if size < 2 * k:
                unsplit = NO_CLASS
                continue
            work += k * size
            members, _ = gather(labels, first, following, unsplit, size)
            if not divide(codes, members, k, demanded, index.caps, index.weights, low, high):
                unsplit = NO_CLASS
                continue
            new = take_entry(index, unsplit)
            if new == NO_CLASS:
                return position, unsplit, True
            replace_class(index, new, low, high, k)
            enlist(labels, first, following, new, members, ZERO, k)
            enlist(labels, first, following, unsplit, members, k, size)
            fit_box(low, high, codes, members, k, size)
            changed, size = unsplit, size - k
        elif position < classes.size:
            changed = classes[position]
            members, size = gather(labels, first, following, changed, index.sizes[changed])
            enlist(labels, first, following, changed, members, ZERO, size)
            fit_box(low, high, codes, members, ZERO, size)
            work += size
            position += 1
        elif position < 2 * classes.size:
            label = classes[position - classes.size]
            if index.sizes[label] > 0:
                members, count = gather(labels, first, following, label, index.sizes[label])
                work += count
                if satisfies(members, 0, 0, count, demanded):
                    unsplit = label
                    position += 1
                    continue
                # it leaves the index, so that no row is sent to it; its rows wait on its list
                sort_rows(members)
                enlist(labels, first, following, label, members, ZERO, count)
                for place in range(count):
                    labels[members[0, place]] = NO_CLASS
                clear_box(low, high)
                changed = label
            elif first[label] != NO_ROW:
                row = first[label]
                first[label] = following[row]
            else:
                position += 1
        else:
            row = rows[position - 2 * classes.size]
            position += 1
        if row != NO_ROW:
            work += LOOK_UP
            changed, _ = best_class(index, codes[row], scratch)
            if changed != NO_CLASS:
                labels[row] = changed
                following[row] = first[changed]
                first[changed] = row
                join_box(low, high, index, changed, codes[row])
                size = index.sizes[changed] + 1
                unsplit = changed
        if changed != NO_CLASS:
            replace_class(index, changed, low, high, size)
    return position, unsplit, False

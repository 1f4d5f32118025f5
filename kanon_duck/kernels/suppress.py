"""What leaving rows out would save, class by class."""

from __future__ import annotations

from numba import njit

from kanon_duck.kernels.anneal import loss_of_class
from kanon_duck.kernels.satisfies import satisfies


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def suppression_steps(codes, members, sizes, k, caps, weights, rows, savings):
    """Steps in which each class gives up its rows, in order of falling saving per row.

    First the row whose absence saves most, then the next, while what remains may stand as a class; then
    all that remains at once. A step that saves more per row than the one before it is joined with that,
    so that savings per row fall from step to step. O(excess rows * class size) for a class of k rows
    and some in excess.

    Parameters
    ----------
    members : int32, shape (classes, room)
        Rows of each class; reordered: the first row to go stands last.
    sizes : int32, shape (classes,)
    rows : int64, shape (classes, room)
        Zeros; written: how many rows each step gives up.
    savings : float64, shape (classes, room)
        Written: the loss that each step saves.
    """
    for number in range(sizes.size):
        size = sizes[number]
        loss = loss_of_class(codes, members, number, 0, size, caps, weights)
        step = 0
        while size > 0:
            lost = size
            remaining = 0.0
            if satisfies(members, number, 0, size - 1, k):
                lost = 1
                remaining = loss
                best = size - 1
                for position in range(size):
                    row, last = members[number, position], members[number, size - 1]
                    members[number, position], members[number, size - 1] = last, row
                    without = loss_of_class(codes, members, number, 0, size - 1, caps, weights)
                    members[number, position], members[number, size - 1] = row, last
                    if without < remaining:
                        best, remaining = position, without
                row = members[number, best]
                members[number, best] = members[number, size - 1]
                members[number, size - 1] = row
            rows[number, step] = lost
            savings[number, step] = loss - remaining
            size -= lost
            loss = remaining
            while step > 0 and savings[number, step] * rows[number, step - 1] > (
                savings[number, step - 1] * rows[number, step]
            ):
                rows[number, step - 1] += rows[number, step]
                savings[number, step - 1] += savings[number, step]
                rows[number, step] = 0
                step -= 1
            step += 1

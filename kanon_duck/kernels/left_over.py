"""Puts rows that are in no class into the best ones."""

from __future__ import annotations

from numba import njit

from kanon_duck.kernels.box import least_increase
from kanon_duck.kernels.row_lists import widen_box


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def place_left_over(codes, rows, labels, low, high, sizes, caps, weights):
    """Let each row join the class whose total loss rises least with it, of equal ones the first.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    rows : int64
        The rows, in the order in which they join.
    labels : int64, shape (n,)
        Written for these rows.
    low, high, sizes : shape (classes, width), (classes, width) and (classes,)
        Boxes and sizes of the classes; changed in place.
    caps, weights : dtype of the codes and float32, shape (width,)
    """
    for row in rows:
        label = least_increase(codes[row], low, high, sizes, caps, weights)
        widen_box(low[label], high[label], codes[row])
        sizes[label] += 1
        labels[row] = label

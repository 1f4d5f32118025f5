"""Cuts a sequence of classes at the least cost into runs that are united."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels.satisfies import satisfies

LONGEST = 3
"""Rows from which on a run is not looked at in a greater length, in units of the fewest rows of one."""


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def cut_classes(low, high, members, starts, fewest, demanded, penalty, caps, weights, box, least, begins):
    """Find the last run of the cheapest cut of the first i classes of a sequence, for all i.

    O(classes of the longest run) boxes for each i.

    Parameters
    ----------
    low, high : uint16 or uint32, shape (classes, width)
    members : int32 or int64, shape (1, n)
        Rows of the classes, one class after the other.
    starts : int64, shape (classes + 1,)
        Where the rows of each begin, and those of the last end.
    fewest : int
        Rows of a run.
    demanded : int or Requirement
        What `satisfies` takes.
    penalty : float
        What each row of a run adds to the loss that does not satisfy it.
    caps, weights : as in ``Encoding``
    box : dtype of low, shape (2, width)
        Scratch.
    least : float64, shape (classes + 1,)
        Written: the least loss of the first i classes, infinite where they have too few rows.
    begins : int64, shape (classes + 1,)
        Written: where the last run begins, -1 where there is none.
    """
    least[0], begins[0] = 0.0, -1
    for end in range(1, starts.size):
        least[end], begins[end] = np.inf, -1
        for j in range(caps.size):
            box[0, j], box[1, j] = low[end - 1, j], high[end - 1, j]
        begin = end
        while begin > 0 and starts[end] - starts[begin] < LONGEST * fewest:
            begin -= 1
            cost = 0.0
            for j in range(caps.size):
                box[0, j], box[1, j] = min(box[0, j], low[begin, j]), max(box[1, j], high[begin, j])
                cost += weights[j] * np.float64(min(box[1, j] - box[0, j], caps[j]))
            rows = starts[end] - starts[begin]
            loss = least[begin] + rows * cost
            if rows < fewest or loss >= least[end]:
                continue
            if not satisfies(members, 0, starts[begin], starts[end], demanded):
                loss += penalty * rows
            if loss < least[end]:
                least[end], begins[end] = loss, begin

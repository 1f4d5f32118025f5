"""Cuts a sequence of rows at the least cost into runs that may be classes."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import LANES
from kanon_duck.kernels.satisfies import satisfies
from kanon_duck.kernels.simd import load, maximum, minimum, weigh


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_last_runs(
    codes, sequence, start, first, last, k, longest, demanded, penalty, caps, weights, least, last_run, costs
):  # fmt: skip
    """Find the last run of the cheapest cut of the first i rows of a sequence, for i from ``first`` to ``last``.

    ``least[i]`` is the least loss of the first i rows. The boxes of all candidate runs that end at i come from
    one walk backwards. O(longest) row visits for each i.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    sequence : int32 or int64, shape (1, n)
        Permutation of the rows; the sequence begins at ``sequence[0, start]``.
    first, last : int
        At least k; the calls before this one have found all before ``first``.
    k, longest : int
        Fewest and most rows of a run.
    demanded : int or Requirement
        What `satisfies` takes.
    penalty : float
        What each row of a run adds to the loss that does not satisfy it.
    caps, weights : as in ``Encoding``
    least : float64, shape (rows of the sequence + 1,)
        At first zero, then infinities; written from ``first`` to ``last``.
    last_run : int64, shape (rows of the sequence + 1,)
        Written: rows of the last run.
    costs : float64, shape (longest + 1,)
        Scratch.
    """
    for end in range(first, last + 1):
        length_limit = longest if longest < end else end
        for lane in range(0, codes.shape[1], LANES):
            low = load(codes, sequence[0, start + end - 1], lane)
            high = low
            for length in range(2, length_limit + 1):
                row = load(codes, sequence[0, start + end - length], lane)
                low = minimum(low, row)
                high = maximum(high, row)
                if length >= k:
                    cost = np.float64(weigh(low, high, caps, weights, lane))
                    costs[length] = cost if lane == 0 else costs[length] + cost
        for length in range(k, length_limit + 1):
            loss = least[end - length] + length * costs[length]
            if loss < least[end] and not satisfies(sequence, 0, start + end - length, start + end, demanded):
                loss += penalty * length
            if loss < least[end]:
                least[end] = loss
                last_run[end] = length


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def label_runs(order, start, last_run, labels):
    """Number the rows from ``order[start]`` on by their runs: 0 for the last run, 1 for the one before, ...

    ``last_run`` is that of `find_last_runs`; ``labels``, int64 of shape (n,), is written. Returns the number of runs.
    """
    runs = 0
    end = last_run.size - 1
    while end > 0:
        for place in range(start + end - last_run[end], start + end):
            labels[order[place]] = runs
        end -= last_run[end]
        runs += 1
    return runs

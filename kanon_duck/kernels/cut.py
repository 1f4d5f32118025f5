"""The cheapest cut of a sequence of rows into runs of k to 2k - 1."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.encoding import LANES
from kanon_duck.kernels.simd import load, maximum, minimum, weigh


@njit(nogil=True, cache=True)
def cut_sequence(codes, order, start, stop, k, caps, weights, labels, least, last_run, costs):
    """Label the rows ``order[start:stop]``, at least k, with the runs of their cheapest cut.

    ``least[i]`` is the least loss of the first i rows; the last run of an optimal cut of i rows has k
    to 2k - 1 of them, because a longer run can be cut in two without loss. The boxes of all candidate
    runs that end at i come from one walk backwards. O((stop - start) * k) row visits.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    order : int64, shape (n,)
    caps, weights : as in ``Encoding``
    labels : int64, shape (n,)
        Written at the rows ``order[start:stop]``: 0 for the last run, 1 for the one before, ...
    least : float64, shape (stop - start + 1,)
        Zero, then infinities; written.
    last_run : int64, shape (stop - start + 1,)
    costs : float64, shape (2k,)
        Scratch.

    Returns
    -------
    int
        Number of runs.
    """
    n = stop - start
    longest = min(2 * k - 1, n)
    for end in range(k, n + 1):
        length_limit = min(longest, end)
        for lane in range(0, codes.shape[1], LANES):
            low = load(codes, order[start + end - 1], lane)
            high = low
            for length in range(2, length_limit + 1):
                row = load(codes, order[start + end - length], lane)
                low = minimum(low, row)
                high = maximum(high, row)
                if length >= k:
                    cost = np.float64(weigh(low, high, caps, weights, lane))
                    costs[length] = cost if lane == 0 else costs[length] + cost
        for length in range(k, length_limit + 1):
            loss = least[end - length] + length * costs[length]
            if loss < least[end]:
                least[end] = loss
                last_run[end] = length
    runs = 0
    end = n
    while end > 0:
        for place in range(start + end - last_run[end], start + end):
            labels[order[place]] = runs
        end -= last_run[end]
        runs += 1
    return runs

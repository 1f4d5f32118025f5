"""The cheapest cut of an order of the rows into classes that are runs of k to 2k - 1 rows.

Idea: dynamic programming over the end of the last run. Long orders are first cut into segments, fixed
by the number of rows and k alone, that are worked on independently; the loss at their few borders does
not show. Cost: O(n k) row visits. Source: the optimal one-dimensional microaggregation of Hansen &
Mukherjee (2003), with the loss of a box in place of the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.parallel import Checkpoint, run
from kanon_duck.encoding import Encoding
from kanon_duck.kernels.cut import cut_sequence

SEGMENT = 1 << 16
"""Rows of a segment, or 64 classes where k is large."""


def cut(encoding: Encoding, order: NDArray[np.int64], k: int, checkpoint: Checkpoint) -> NDArray[np.int64]:
    """Cut an order of the rows into classes.

    Parameters
    ----------
    order : int64, shape (n,)
        A permutation of the rows.
    k : int
        Least size of a class.
    checkpoint : function
        See ``parallel.run``.

    Returns
    -------
    int64, shape (n,)
        Class of each row, numbered along the order. Fewer than 2k rows are one class; otherwise every
        class has k to 2k - 1 rows.
    """
    n = len(order)
    labels = np.empty(n, np.int64)
    segments = max(1, n // max(SEGMENT, 64 * k))
    borders = np.linspace(0, n, segments + 1).astype(np.int64)
    runs = np.zeros(segments, np.int64)

    def cut_segment(number: int, pause: Callable[[], None]) -> None:
        pause()
        start, stop = borders[number : number + 2]
        least = np.full(stop - start + 1, np.inf)
        least[0] = 0.0
        last_run, costs = np.zeros(len(least), np.int64), np.empty(2 * k)
        runs[number] = cut_sequence(
            encoding.codes,
            order,
            start,
            stop,
            k,
            encoding.caps,
            encoding.weights,
            labels,
            least,
            last_run,
            costs,
        )

    run([partial(cut_segment, number) for number in range(segments)], checkpoint)
    # within a segment the runs are numbered from its end
    labels[order] = np.repeat(np.cumsum(runs) - 1, np.diff(borders)) - labels[order]
    return labels

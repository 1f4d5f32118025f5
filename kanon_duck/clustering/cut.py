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
from kanon_duck.kernels.cut import find_last_runs, label_runs

SEGMENT = 1 << 16
"""Rows of a segment, or 64 classes where k is large."""

SLICE = 1 << 21
"""Rows times k between two looks at whether the work is still wanted: less than a tenth of a second."""


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
        start, rows = borders[number], borders[number + 1] - borders[number]
        least = np.full(rows + 1, np.inf)
        least[0] = 0.0
        last_run, costs = np.zeros(len(least), np.int64), np.empty(2 * k)
        stretch = max(1, SLICE // k)
        for first in range(k, rows + 1, stretch):
            pause()
            find_last_runs(
                encoding.codes, order, start, first, min(first + stretch - 1, rows), k,
                encoding.caps, encoding.weights, least, last_run, costs,
            )  # fmt: skip
        runs[number] = label_runs(order, start, last_run, labels)

    run([partial(cut_segment, number) for number in range(segments)], checkpoint)
    # within a segment the runs are numbered from its end
    labels[order] = np.repeat(np.cumsum(runs) - 1, np.diff(borders)) - labels[order]
    return labels

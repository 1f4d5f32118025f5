"""Cuts an order of the rows into classes at the least cost.

Idea: dynamic programming over the end of the last run. Long orders are first cut into segments, fixed
by the number of rows and what is demanded alone, that are worked on independently; the loss at their few
borders does not show. Where only the number of rows matters, runs have k to 2k - 1 rows: a longer one can
be cut in two without loss. Where more is demanded, a run may be longer; and where no cut satisfies it, as
few rows as possible are in runs that do not, which are for `repair`. Cost: O(n k) row visits. Source: the
optimal one-dimensional microaggregation of Hansen & Mukherjee (2003), with the loss of a box in place of
the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.class_rows import row_type
from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.cut import find_last_runs, label_runs
from kanon_duck.privacy.requirement import Demand, least_size
from kanon_duck.runtime.parallel import Checkpoint, run

SEGMENT = 1 << 16
"""Rows of a segment, or 64 classes where k is large."""

LONGEST = 3
"""Most rows of a run, in units of k, where more is demanded than k rows."""

SLICE = 1 << 21
"""Rows times k between two looks at whether the work is still wanted: less than a tenth of a second."""


def cut(encoding: Encoding, order: NDArray[np.int64], demanded: Demand, checkpoint: Checkpoint) -> NDArray[np.int64]:
    """Cut an order of the rows into classes.

    Parameters
    ----------
    order : int64, shape (n,)
        A permutation of the rows.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    checkpoint : function
        See ``parallel.run``.

    Returns
    -------
    int64, shape (n,)
        Class of each row, numbered along the order. Every class has at least k rows, if there are so many; and fewer
        than 2k where nothing else is demanded.
    """
    n, k = len(order), least_size(demanded)
    longest = 2 * k - 1 if isinstance(demanded, int) else LONGEST * k
    penalty = float(2 * (encoding.caps * encoding.weights).sum())
    if n < k:
        return np.zeros(n, np.int64)
    order = order.astype(row_type(n), copy=False)
    labels = np.empty(n, np.int64)
    segments = max(1, n // max(SEGMENT, 64 * k))
    borders = np.linspace(0, n, segments + 1).astype(np.int64)
    runs = np.zeros(segments, np.int64)

    def cut_segment(number: int, pause: Callable[[], None]) -> None:
        start, rows = borders[number], borders[number + 1] - borders[number]
        least = np.full(rows + 1, np.inf)
        least[0] = 0.0
        last_run, costs = np.zeros(len(least), np.int64), np.empty(longest + 1)
        stretch = max(1, SLICE // k)
        for first in range(k, rows + 1, stretch):
            pause()
            find_last_runs(
                encoding.codes, order[None], start, first, min(first + stretch - 1, rows), k, longest, demanded,
                penalty, encoding.caps, encoding.weights, least, last_run, costs,
            )  # fmt: skip
        runs[number] = label_runs(order, start, last_run, labels)

    run([partial(cut_segment, number) for number in range(segments)], checkpoint)
    # within a segment the runs are numbered from its end
    labels[order] = np.repeat(np.cumsum(runs) - 1, np.diff(borders)) - labels[order]
    return labels

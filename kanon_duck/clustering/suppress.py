"""Leaves out the rows that cost most.

Idea: every class offers steps in which it gives up rows, with falling saving per row (its worst rows
first, and the k that must stand together at once); take the steps of all classes in order of saving
per row while they fit the limit: the greedy method for a knapsack. Cost: O(n k) for classes of fewer
than 2k rows, and a sort of the steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.class_rows import class_members
from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.suppress import suppression_steps
from kanon_duck.privacy.requirement import Demand
from kanon_duck.runtime.parallel import Checkpoint

VISITS = 1 << 21
"""Rows visited between two looks at whether the work is still wanted: less than a tenth of a second."""


def suppress(
    encoding: Encoding, labels: NDArray[np.int64], demanded: Demand, limit: int, checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Leave out at most ``limit`` rows, those of the greatest saving first, where that lowers the loss.

    Guarantee: no more than ``limit`` rows are left out, every remaining class satisfies what is demanded, and
    the loss of the remaining rows is at most that of the same classes before.

    Parameters
    ----------
    labels : int64, shape (n,)
        Class of each row, 0 to m - 1; each satisfies what is demanded.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    limit : int
        In [0, n].
    checkpoint : function
        What it raises stops the work.

    Returns
    -------
    int64, shape (n,)
        The labels, numbered anew without gaps, and -1 for rows left out.
    """
    members, sizes, _ = class_members(labels, int(labels.max()) + 1, 1)
    rows = np.zeros(members.shape, np.int64)
    savings = np.zeros(members.shape)
    state, loss = np.zeros(3, np.int64), np.zeros(1)
    lows, highs = np.empty((2, 2, encoding.codes.shape[1]), encoding.codes.dtype)
    done = False
    while not done:
        checkpoint(None)
        done = suppression_steps(
            encoding.codes, members, sizes, demanded, encoding.caps, encoding.weights,
            rows, savings, state, loss, lows, highs, VISITS,
        )  # fmt: skip
    number, step = np.nonzero((rows > 0) & (savings > 0))
    best_first = np.argsort(-savings[number, step] / rows[number, step], kind="stable")
    number, step = number[best_first], step[best_first]

    given_up = np.zeros(len(sizes), np.int64)
    while len(number):
        fitting = int(np.searchsorted(np.cumsum(rows[number, step]), limit, side="right"))
        np.add.at(given_up, number[:fitting], rows[number, step][:fitting])
        limit -= int(rows[number, step][:fitting].sum())
        # the next step is too large now: a class with such a step gives up nothing beyond it
        number, step = number[fitting:], step[fitting:]
        bound = np.full(len(sizes), members.shape[1])
        too_large = rows[number, step] > limit
        np.minimum.at(bound, number[too_large], step[too_large])
        possible = step < bound[number]
        number, step = number[possible], step[possible]

    remaining = sizes - given_up
    position = np.arange(members.shape[1])
    left_out = (position >= remaining[:, None]) & (position < sizes[:, None])
    labels = (np.cumsum(remaining > 0) - 1)[labels]
    labels[members[left_out]] = -1
    return labels

"""Simulated annealing of a partition, window by window.

Idea: classes with neighbouring numbers lie close together, so a window of consecutive classes holds
most of what its rows could gain from. Inside it the rows have their turns, again and again. For a row one of its
near neighbours is drawn; the row moves to the neighbour's class or changes places with one of that class's
rows, whichever is best, or its own class dissolves into those around it. A class that reaches 2k rows is
split. Moves that raise the loss are accepted less and less often. The borders of the windows shift from
round to round.

Cost: O(k) for a step. Every window has random numbers of its own, drawn from the seed, the round and
the window's place, so the result does not depend on the number of threads. Source: Kirkpatrick, Gelatt
& Vecchi, Optimization by simulated annealing (Science 220, 1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.class_rows import class_members
from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels import LANES
from kanon_duck.kernels.anneal import anneal_steps, fill_losses, split_large
from kanon_duck.kernels.neighbours import SIDES, find_neighbours
from kanon_duck.privacy.requirement import Demand, for_rows, least_size
from kanon_duck.runtime.parallel import Checkpoint, part, run

WINDOW, WINDOW_CLASSES = 1 << 11, 320
"""Rows of a window, or classes where k is large: codes and state fit the second-level cache."""

REACH, MOST_REACH = 16, 1 << 10
"""Rows looked at for neighbours to either side of a row, for each step per row: a fraction of the time of the steps."""

FEWEST_NEIGHBOURS = 8
"""Neighbours kept of each row where steps are few or classes small; else twice or four times as many."""

COLD, HOTTEST = 0.03, 0.6
"""Last temperature, and the most that the first may be, in units of the window's mean loss per row."""

HOT_AT_TEN_STEPS = 0.15
"""First temperature where a round has ten steps per row: few steps must begin cool, as what they spoil
they cannot mend. It grows with the two-thirds power of the steps."""

TWO_ROUNDS = 50
"""From so many steps per row on there is a second round, whose windows meet in the middle of the first's."""

SLICE = 1 << 21
"""Steps times rows of a class between two looks at whether the work is still wanted: less than a tenth of a second."""


def anneal(
    encoding: Encoding,
    labels: NDArray[np.int64],
    demanded: Demand,
    seed: int,
    steps_per_row: float,
    checkpoint: Checkpoint,
) -> NDArray[np.int64]:
    """Lower the loss of a partition.

    Guarantee: every class of the result satisfies what is demanded, and no window loses more than it did.

    Parameters
    ----------
    encoding : Encoding
        All its rows take part; to improve a part of a table, pass the encoding of that part.
    labels : int64, shape (n,)
        Class of each row, 0 to m - 1; each class satisfies what is demanded, and classes with neighbouring
        numbers should lie close together.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    seed : int
        Fixes the result together with ``steps_per_row``.
    steps_per_row : float
        Over all rounds.
    checkpoint : function
        See ``parallel.run``.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to some m - 1; again, close classes have close numbers.
    """
    windows = max(1, round(len(labels) / max(WINDOW, WINDOW_CLASSES * least_size(demanded))))
    rounds = 2 if windows > 1 and steps_per_row >= TWO_ROUNDS else 1
    for number in range(rounds):
        # in odd rounds the borders lie in the middle of the windows of even ones
        shift = 0.5 if number % 2 else 0.0
        shares = np.r_[0.0, np.arange(1, windows + shift) - shift, windows] / windows
        of_round = part(checkpoint, number / rounds, (number + 1) / rounds)
        labels = _anneal_round(encoding, labels, demanded, [seed, number], steps_per_row / rounds, shares, of_round)
    return labels


def _anneal_round(
    encoding: Encoding,
    labels: NDArray[np.int64],
    demanded: Demand,
    seed: list[int],
    steps_per_row: float,
    shares: NDArray[np.float64],
    checkpoint: Checkpoint,
) -> NDArray[np.int64]:
    """Anneal all windows once; ``shares`` of the rows, from 0 to 1, say about where they begin and end."""
    n = len(labels)
    order = np.argsort(labels, kind="stable")
    class_borders = np.flatnonzero(np.diff(labels[order], prepend=-1, append=n))
    borders = np.unique(class_borders[np.searchsorted(class_borders, shares * n)])
    improved = np.empty_like(labels)
    classes = np.zeros(len(borders) - 1, np.int64)

    def improve(window: int, pause: Callable[[], None]) -> None:
        rows = order[borders[window] : borders[window + 1]]
        generator = np.random.default_rng([*seed, window])
        steps = max(1, int(steps_per_row * len(rows)))
        improved[rows] = _anneal_window(encoding, rows, labels[rows], for_rows(demanded, rows), generator, steps, pause)
        classes[window] = improved[rows].max() + 1

    run([partial(improve, window) for window in range(len(classes))], checkpoint)
    improved[order] += np.repeat(np.cumsum(classes) - classes, np.diff(borders))
    return improved


def _anneal_window(
    encoding: Encoding,
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    demanded: Demand,
    generator: np.random.Generator,
    steps: int,
    pause: Callable[[], None],
) -> NDArray[np.int64]:
    """Anneal one window; ``labels`` rise by at most one from row to row. Returns labels from 0 on."""
    n, k = len(rows), least_size(demanded)
    codes = encoding.codes.take(rows, axis=0)
    neighbours = _neighbours(encoding, codes, k, steps / n)
    pause()
    caps, weights = encoding.caps, encoding.weights
    label = labels - labels[0]

    classes = n // k
    # a class may have 2k rows or more, where its halves would not satisfy the predicate, and one on trial
    members, sizes, slot = class_members(label, classes, max(2 * k, int(np.bincount(label).max()) + 1))
    losses = np.zeros(classes)
    fill_losses(codes, members, sizes, losses, caps, weights)
    free = np.flatnonzero(sizes == 0)[::-1]
    vacant = np.zeros(classes + 1, np.int64)
    vacant[: len(free) + 1] = len(free), *free
    before, start = losses.sum(), label.copy()

    hosts, scratch = np.empty(members.shape[1], np.int64), np.empty(members.shape[1])
    prefixes = np.empty((2, members.shape[1], LANES), codes.dtype)
    if sizes.max() >= 2 * k:
        split_large(codes, caps, weights, k, demanded, label, slot, members, sizes, losses, vacant, scratch)
    hot = min(HOT_AT_TEN_STEPS * (steps / n / 10) ** (2 / 3), HOTTEST)
    temperature = np.array([hot * before / n])
    cooling = (COLD / hot) ** (1 / max(steps, 1))
    random = generator.integers(1, 2**63, 1, dtype=np.uint64)
    stretch = max(1, SLICE // max(k, n // (int(label.max()) + 1)))
    for begin in range(0, steps if before > 0 else 0, stretch):
        pause()
        anneal_steps(
            codes, caps, weights, neighbours, k, demanded, label, slot, members, sizes, losses, vacant,
            temperature, cooling, begin, min(stretch, steps - begin), random, hosts, scratch, prefixes,
        )  # fmt: skip
    if losses.sum() >= before:
        label = start
    # number the classes by their first rows, so that close ones have close numbers
    first = np.full(classes, n)
    first[label[::-1]] = np.arange(n)[::-1]  # what is written last stays
    return np.argsort(np.argsort(first))[label]


def _neighbours(
    encoding: Encoding, codes: NDArray[np.unsignedinteger], k: int, steps_per_row: float
) -> NDArray[np.int32]:
    """Near neighbours of the rows of a window: more than stand in a class, if there are two steps for each of them."""
    columns = np.ascontiguousarray(codes.T)
    varying = np.flatnonzero((columns != columns[:, :1]).any(axis=1))
    weights = encoding.weights[varying]
    points = np.full((len(varying), LANES + len(codes) + LANES), np.inf, np.float32)
    np.multiply(columns[varying], weights[:, None], out=points[:, LANES:-LANES], dtype=np.float32)
    caps = encoding.caps[varying].astype(np.float32) * weights
    count = FEWEST_NEIGHBOURS
    while count < min(k + 6, steps_per_row / 2, SIDES * LANES):
        count *= 2
    neighbours = np.empty((len(codes), count), np.int32)
    distances, found = np.empty((1, SIDES * LANES), np.float32), np.empty((1, SIDES * LANES), np.uint32)
    find_neighbours(points, caps, min(math.ceil(REACH * steps_per_row), MOST_REACH), neighbours, distances, found)
    return neighbours

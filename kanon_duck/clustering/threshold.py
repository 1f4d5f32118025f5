"""Greedy clustering under a threshold: classes grow until they would be too diverse."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.repair import repair, unsatisfied_classes
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.loss import class_boxes
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.errors import KanonError
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.left_over import place_left_over
from kanon_duck.kernels.threshold import grow
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import demand, least_size
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.parallel import Checkpoint

SAMPLE = 50
"""Seeds around which the usual diversity is measured."""

USUAL = 0.9
"""Share of these seeds whose class of the fewest rows the threshold allows."""

SLICE = 2**20
"""Rows looked at between two checkpoints."""


def threshold(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Checkpoint,
    *,
    delta: float | None = None,
) -> NDArray[np.int64]:
    """Build one class after the other from a random seed, as long as its diversity does not exceed a threshold.

    The row that raises the diversity of the class least joins it; where the least would exceed the threshold, the
    class is closed. The diversity of a class is its information loss per row and quasi-identifier. A class that
    does not satisfy the model then is deleted.

    The rows of deleted classes are not left out: in random order, each goes to the class whose total loss rises
    least; with no class left, all rows are one. Where the model breaks by that, classes are united (see `repair`).
    Guarantee: every class satisfies the model, if all rows together do.

    Cost: O(n**2) for the choices, and O(n m) for the rows of deleted classes when m are left.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Any.
    generator : numpy.random.Generator
        Source of the seeds and of the order of the rows of deleted classes.
    checkpoint : function
        Called between slices of the work with the share done.
    delta : float, optional
        The threshold, 0 to 1. By default what nine in ten classes of the fewest rows around random seeds do not exceed:
        at their median, every other class would be deleted.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to m - 1.

    Raises
    ------
    KanonError
        On fewer than k rows, or a ``delta`` that is not a number from 0 to 1.

    References
    ----------
    Loukides and Shao, "Capturing data usefulness and privacy protection in k-anonymisation", SAC 2007.
    Reconstructed from its description in Lin and Wei, "An efficient clustering method for k-anonymization",
    PAIS 2008, section 2.2: the measure of diversity, the default of its threshold and what becomes of deleted rows
    are ours.
    """
    encoding, demanded = microdata.encoding, demand(model, microdata.sensitive)
    model.refuse_too_few(encoding.rows)
    if delta is None:
        most = _usual_diversity(encoding, least_size(demanded), generator, checkpoint)
    elif isinstance(delta, bool) or not isinstance(delta, int | float | Decimal) or not 0 <= delta <= 1:
        raise KanonError(f"method_options.delta is {shown(delta)}: it must be a number from 0 to 1")
    else:
        most = float(delta) * float((encoding.caps * encoding.weights).sum())
    labels = _grown(encoding, most, generator, checkpoint)
    deleted = np.isin(labels, unsatisfied_classes(labels, demanded))
    if deleted.all():
        return np.zeros(encoding.rows, np.int64)
    labels[deleted] = NO_CLASS
    labels[~deleted] = np.unique(labels[~deleted], return_inverse=True)[1]
    _place(encoding, generator.permutation(np.flatnonzero(deleted)), labels, checkpoint)
    labels = repair(encoding, labels, demanded, checkpoint)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _grown(
    encoding: Encoding, delta: float, generator: np.random.Generator, checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Classes around random seeds, of any size."""
    free, labels = np.arange(encoding.rows), np.full(encoding.rows, NO_CLASS)
    label = 0
    while free.size:
        place = int(generator.integers(free.size))
        free, _ = _grow_class(encoding, free, place, delta, encoding.rows, labels, label, checkpoint)
        label += 1
        checkpoint(1 - (free.size / encoding.rows) ** 2)
    return labels


def _usual_diversity(encoding: Encoding, size: int, generator: np.random.Generator, checkpoint: Checkpoint) -> float:
    """The diversity that few classes of a size around random seeds exceed, when each may choose from all rows."""
    labels = np.full(encoding.rows, NO_CLASS)
    diversities = []
    for place in generator.integers(encoding.rows, size=SAMPLE).tolist():
        free = np.arange(encoding.rows)
        diversities.append(_grow_class(encoding, free, place, np.inf, size, labels, 0, checkpoint)[1])
    return float(np.quantile(diversities, USUAL))


def _grow_class(
    encoding: Encoding,
    free: NDArray[np.int64],
    place: int,
    delta: float,
    most: int,
    labels: NDArray[np.int64],
    label: int,
    checkpoint: Checkpoint,
) -> tuple[NDArray[np.int64], float]:
    """Grow a class around the row at a place among the free ones; the rows that are free then, and its diversity."""
    seed, count = free[place], free.size - 1
    free[place:count] = free[place + 1 :]
    labels[seed] = label
    low, high = encoding.codes[seed].copy(), encoding.codes[seed].copy()
    diversity, rows, goes_on = np.float32(0), 1, True
    while goes_on:
        count, diversity, rows, goes_on = grow(
            encoding.codes, free, count, low, high, diversity, rows, delta, most, encoding.caps, encoding.weights,
            labels, label, SLICE,
        )  # fmt: skip
        checkpoint(None)
    return free[:count], float(diversity)


def _place(encoding: Encoding, rows: NDArray[np.int64], labels: NDArray[np.int64], checkpoint: Checkpoint) -> None:
    """Let rows join the classes."""
    low, high, sizes = class_boxes(encoding.codes, labels)
    stretch = max(1, SLICE // len(sizes))
    for first in range(0, len(rows), stretch):
        part = rows[first : first + stretch]
        place_left_over(encoding.codes, part, labels, low, high, sizes, encoding.caps, encoding.weights)
        checkpoint(None)

"""Anneals the classes that a batch touched, together with similar ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.anneal import anneal
from kanon_duck.clustering.order import alike
from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.changes import keep_numbers
from kanon_duck.maintenance.partition import Partition
from kanon_duck.privacy.requirement import Demand, for_rows
from kanon_duck.runtime.parallel import Checkpoint

MOST_BESIDE, SHARE_BESIDE = 2, 0.05
"""Classes annealed along on either side of a touched one, in an order where neighbours are alike, and the share of
all classes that they may be: where many are touched, these stand beside each other anyway."""


def improve_touched(
    encoding: Encoding,
    partition: Partition,
    touched: NDArray[np.int64],
    demanded: Demand,
    seed: int,
    steps_per_row: float,
    checkpoint: Checkpoint,
) -> NDArray[np.int64]:
    """Lower the loss of touched classes by annealing them together with classes that are alike.

    Guarantee: all other classes keep their rows, and every class keeps its number unless its rows change.

    Parameters
    ----------
    encoding : Encoding
        The one that the partition was built from.
    partition : Partition
        Every class satisfies what is demanded. It is only read.
    touched : int64, shape (classes,)
        Rising numbers of classes; those without rows are left alone.
    demanded, seed, steps_per_row, checkpoint
        As in ``anneal``; steps are counted per row of the part that is annealed.

    Returns
    -------
    int64, shape (n,)
        Class of each row, -1 for one in none.
    """
    index = partition.class_index
    standing = np.flatnonzero(index.sizes)
    to_improve = touched[index.sizes[touched] > 0]
    beside = min(MOST_BESIDE, int(SHARE_BESIDE / 2 * len(standing)) // max(len(to_improve), 1))
    classes = standing if beside else to_improve
    # not as they stand in the index, which has been through other changes than that of another process
    classes_in_order = classes[alike(encoding, index.low[classes], index.high[classes])]
    chosen = np.isin(classes_in_order, to_improve)
    positions = np.flatnonzero(chosen)
    near = positions[:, None] + np.arange(-beside, beside + 1)
    chosen[np.clip(near, 0, len(classes_in_order) - 1)] = True
    # classes that are alike get close numbers, which make the windows
    places = np.full(len(index.sizes) + 1, NO_CLASS)
    places[classes_in_order[chosen]] = np.arange(np.count_nonzero(chosen))
    place = places[partition.labels]  # NO_CLASS takes the last element, which belongs to no class
    rows = np.flatnonzero(place != NO_CLASS)
    labels = partition.labels.copy()
    if steps_per_row * len(rows) >= 1:
        part = replace(encoding, codes=encoding.codes[rows])
        improved = anneal(part, place[rows], for_rows(demanded, rows), seed, steps_per_row, checkpoint)
        labels[rows] = keep_numbers(labels[rows], improved, int(index.used[0]))
    return labels

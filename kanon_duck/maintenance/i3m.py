"""Incremental maintenance of a k-anonymous partition: I3M+ for inserted rows, I3M- for deleted ones.

A batch is applied whole: first all deletions, and the old versions of updated rows; then all insertions,
and the new versions. Every row goes where total information loss rises least. Cost: one look-up in the
class index per row placed, and O(k) row comparisons per row that leaves a class. Source: Figures 1 and 2
of Truta & Campan 2007. `exchange_rows` goes beyond them.

All functions change the partition's arrays in place and return the partition to go on with, whose index
may be a new one. Where they are interrupted by what the checkpoint raises, the partition is of no use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.maintain import maintain, tighten
from kanon_duck.maintenance.changes import classes_in
from kanon_duck.maintenance.class_index import write_entries
from kanon_duck.maintenance.partition import Partition, with_free_entries
from kanon_duck.privacy.requirement import Demand, least_size
from kanon_duck.runtime.parallel import Checkpoint, part

NOTHING = np.empty(0, np.int64)


def _work_through(
    partition: Partition,
    classes: NDArray[np.int64],
    rows: NDArray[np.int64],
    demanded: Demand,
    checkpoint: Checkpoint,
    together: bool = False,
) -> Partition:
    """Put classes in order and place rows, stretch by stretch; see the kernel."""
    steps, k = len(classes) + len(rows), least_size(demanded)
    position, unsplit = 0, NO_CLASS
    while position < steps or unsplit != NO_CLASS:
        position, unsplit, crowded = maintain(*partition, classes, rows, position, unsplit, k, demanded, together)
        if crowded:
            partition = with_free_entries(partition)
        checkpoint(position / steps)
    return partition


def delete_rows(partition: Partition, rows: NDArray[np.int64], demanded: Demand, checkpoint: Checkpoint) -> Partition:
    """Take rows out of the partition, and disperse the classes that may not stand without them.

    Classes that lost all rows are dropped first, so that no row is sent to them. Those that lost some are
    looked at by rising number: one that may not stand when its turn comes is dispersed, its rows by rising
    number, and one that may is split if it still has 2k rows or more, as a class does that takes in a row.

    Guarantee: every class that lost rows satisfies the model afterwards, or is gone.

    Parameters
    ----------
    partition : Partition
    rows : int64, shape (rows to delete,)
        Rows in no class are left alone.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    checkpoint : function
        Told the share of the work that is done; what it raises stops the work.

    Returns
    -------
    Partition
        Deleted rows have label -1. Where fewer than k rows remain there is no class left, and all rows
        have label -1: there is nothing that could be published.
    """
    classes = _take_out(partition, rows)
    return _work_through(partition, classes, NOTHING, demanded, checkpoint)


def _take_out(partition: Partition, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take rows out of their classes, and drop those that have none left; returns the classes that lost rows."""
    classes = classes_in(partition.labels[rows])
    partition.labels[rows] = NO_CLASS
    tighten(*partition, classes)
    write_entries(partition.class_index, classes)
    return classes


def insert_rows(partition: Partition, rows: NDArray[np.int64], demanded: Demand, checkpoint: Checkpoint) -> Partition:
    """Place rows one after the other, each in the class whose total loss rises least, the lowest of equals.

    A class that reaches 2k rows is split until every part is below, if the parts satisfy the model.

    Parameters
    ----------
    partition : Partition
    rows : int64, shape (rows to place,)
        Rows in no class, in the order in which they are placed.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    checkpoint : function
        As in `delete_rows`.

    Returns
    -------
    Partition
        Without any class to join, the rows keep label -1: they must be clustered from scratch.
    """
    return _work_through(partition, NOTHING, rows, demanded, checkpoint)


def exchange_rows(
    partition: Partition,
    leaving: NDArray[np.int64],
    arriving: NDArray[np.int64],
    demanded: Demand,
    checkpoint: Checkpoint,
) -> Partition:
    """Take rows out and place others, so that few classes change.

    Rows that arrive may take the places of those that leave, as updated rows often do: only afterwards are the
    classes that lost rows looked at. One that may not stand then is dispersed only if that costs less than that all
    its rows join one other class, which is split if it has 2k rows or more. This touches fewer classes than
    `delete_rows` and `insert_rows`, half as many where people are replaced by similar ones, and loses less.

    Guarantee: every class that lost rows satisfies the model afterwards, or is gone.

    Parameters
    ----------
    partition, demanded, checkpoint
        As in `delete_rows`.
    leaving : int64, shape (rows to take out,)
        Rows in no class are left alone.
    arriving : int64, shape (rows to place,)
        Rows in no class, or that leave, in the order in which they are placed.

    Returns
    -------
    Partition
        As in `delete_rows` and `insert_rows`.
    """
    classes = _take_out(partition, leaving)
    partition = _work_through(partition, NOTHING, arriving, demanded, part(checkpoint, 0.0, 0.5))
    return _work_through(partition, classes, NOTHING, demanded, part(checkpoint, 0.5, 1.0), together=True)


def split_large(partition: Partition, demanded: Demand, checkpoint: Checkpoint) -> Partition:
    """Split every class of 2k rows or more until all parts are below, if the parts satisfy the model.

    Total loss never rises. Parameters and result are as in `delete_rows`.
    """
    large = np.flatnonzero(partition.class_index.sizes >= 2 * least_size(demanded))
    return _work_through(partition, large, NOTHING, demanded, checkpoint)

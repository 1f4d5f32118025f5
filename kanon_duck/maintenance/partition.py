"""The partition that maintenance changes: rows, their classes, and the index over these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.class_tree import ClassIndex
from kanon_duck.kernels.regroup import regroup
from kanon_duck.kernels.row_lists import NO_ROW, fill_lists
from kanon_duck.maintenance.changes import changes, rows_of
from kanon_duck.maintenance.class_index import build_index, rebuild_index, write_entries


class Partition(NamedTuple):
    """Rows, their classes, and the index over these, in contiguous arrays that kernels change in place.

    Attributes
    ----------
    codes : uint16 or uint32, shape (n, width)
        As in the encoding.
    labels : int64, shape (n,)
        Class of each row, -1 for a row in none.
    first : int64, shape (capacity of the index,)
        First row of each class, -1 for one without rows. The order of a class's rows has no meaning.
    following : int64, shape (n,)
        The next row of the same class, -1 for the last.
    class_index : ClassIndex
    """

    codes: NDArray[np.unsignedinteger]
    labels: NDArray[np.int64]
    first: NDArray[np.int64]
    following: NDArray[np.int64]
    class_index: ClassIndex


def build_partition(encoding: Encoding, labels: NDArray[np.int64]) -> Partition:
    """Set up the state for changes of a partition.

    Parameters
    ----------
    encoding : Encoding
        All rows that take part: those in a class, and those to be placed.
    labels : int64, shape (n,)
        Class of each row, from 0; -1 for a row in none. Copied.

    Returns
    -------
    Partition
    """
    index = build_index(encoding, labels)
    first, following = np.full(len(index.sizes), NO_ROW), np.full(len(labels), NO_ROW)
    fill_lists(labels, first, following)
    return Partition(encoding.codes, labels.copy(), first, following, index)


def with_free_entries(partition: Partition) -> Partition:
    """The same partition with free entries everywhere in its index, and a quarter more class numbers."""
    index = rebuild_index(partition.class_index)
    used = int(index.used[0])
    first = np.full(len(index.sizes), NO_ROW)
    first[:used] = partition.first[:used]
    return partition._replace(first=first, class_index=index)


def with_more_rows(partition: Partition, codes: NDArray[np.unsignedinteger]) -> Partition:
    """The same partition with rows in no class behind its own; ``codes`` are those of all rows."""
    more = len(codes) - len(partition.labels)
    labels = np.concatenate([partition.labels, np.full(more, NO_CLASS)])
    following = np.concatenate([partition.following, np.full(more, NO_ROW)])
    return partition._replace(codes=codes, labels=labels, following=following)


def regrouped(partition: Partition, labels: NDArray[np.int64]) -> Partition:
    """Bring a partition to other labels of its rows, at the cost of the classes that change.

    Parameters
    ----------
    partition : Partition
        Changed in place.
    labels : int64, shape (n,)
        Numbers of classes that are new follow on those that the index has had.

    Returns
    -------
    Partition
        The partition to go on with.
    """
    before = partition.labels
    touched = changes(before, labels).touched
    rows = rows_of(touched, labels)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    filled, starts, counts = np.unique(labels[rows], return_index=True, return_counts=True)
    emptied = touched[~np.isin(touched, filled)]
    classes = np.concatenate([filled, emptied])
    stops = np.concatenate([[0], np.cumsum(counts), np.full(len(emptied), len(rows))])
    near = np.concatenate([before[rows[starts]], emptied])
    done = 0
    while done < len(classes):
        done = regroup(*partition, classes, stops, rows[None, :], near, done)
        if done < len(classes):
            partition = with_free_entries(partition)
    write_entries(partition.class_index, classes)
    return partition


def up_to_date(partition: Partition | None, labels: NDArray[np.int64]) -> Partition | None:
    """The partition that a process may remember for members with these labels; it is changed in place."""
    return None if partition is None else regrouped(partition, labels)

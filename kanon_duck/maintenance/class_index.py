"""The index that finds the class that a row joins at the least cost, without a scan.

Idea: classes that are alike stand in the same block of a 16-ary tree. Each entry of the tree knows the
hull of the boxes below it, the codes that these have alone in level columns, and their least cost, size
and room to grow. From these follows a lower bound on the rise of total information loss for every class
below, so a best-first search opens only blocks whose bound is below the best rise found. The answer is
exact; ties go to the lowest class number.

Cost: a look-up opens about 20 blocks of 16 entries where classes are groups of neighbours, and degrades
towards a scan where boxes are random. A row that joins a class costs one look-up and the rewriting of one
entry per level of the tree, up to the first that does not change.

Source: FindBestCluster in Figures 1 and 2 of Truta & Campan 2007, which leave open how it is found.
"""

from __future__ import annotations

import itertools
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.order import alike
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.loss import class_boxes
from kanon_duck.kernels import LANES
from kanon_duck.kernels import class_tree as kernels
from kanon_duck.kernels.class_tree import ALL_ENTRIES, BUCKETS, HIGH, LOW, NO_ENTRY, ClassIndex

Number = TypeVar("Number", bound=np.integer)

FILL = 13
"""Classes per leaf block of a new tree; the other entries wait for classes that splits add."""


def build_index(encoding: Encoding, labels: NDArray[np.int64]) -> ClassIndex:
    """Index the classes of a partition.

    Parameters
    ----------
    encoding : Encoding
    labels : int64, shape (rows,)
        Class of each row, from 0; -1 for a row in none.

    Returns
    -------
    ClassIndex
    """
    low, high, sizes = class_boxes(encoding.codes, labels)
    return index_boxes(low, high, sizes, encoding.caps, encoding.weights, alike(encoding, low, high))


def index_boxes(
    low: NDArray[np.unsignedinteger],
    high: NDArray[np.unsignedinteger],
    sizes: NDArray[np.int64],
    caps: NDArray[np.unsignedinteger],
    weights: NDArray[np.floating],
    sequence: NDArray[np.int64] | None = None,
) -> ClassIndex:
    """Index classes given as boxes; the arrays are copied.

    Parameters
    ----------
    low, high : uint16 or uint32, shape (classes, width)
        Smallest and largest code of each class in each column.
    sizes : int64, shape (classes,)
        Rows of each class. One with 0 rows keeps its number, but no row is ever sent to it.
    caps : same dtype, shape (width,)
        As in the encoding.
    weights : float32, shape (width,)
        As in the encoding.
    sequence : int64, shape (classes,), optional
        Class numbers in an order where neighbours are alike, by default as they are numbered. A good one
        makes look-ups fast, none makes them wrong.

    Returns
    -------
    ClassIndex
    """
    columns = int(np.flatnonzero(caps).max(initial=-1)) + 1
    if sequence is None:
        sequence = np.arange(len(sizes))
    sequence = sequence[sizes[sequence] > 0]
    counts = [max(1, -(-len(sequence) // FILL))]
    while counts[0] > 1:
        counts.insert(0, -(-counts[0] // LANES))
    blocks, inner = sum(counts), sum(counts[:-1])
    # a share of the numbers in use, dead ones too: rebuilding for want of numbers costs O(1) for each class added
    capacity = max(counts[-1] * LANES, len(sizes) + len(sizes) // 4 + LANES)
    children, parents = np.full(blocks, NO_ENTRY), np.full(blocks, NO_ENTRY)
    start = 0
    for count, below in itertools.pairwise(counts):
        end = start + count
        children[start:end] = end + np.arange(count) * LANES
        parents[end : end + below] = start * LANES + np.arange(below)
        start = end
    entries = np.full(capacity, NO_ENTRY)
    leaf, entry = np.divmod(np.arange(len(sequence)), FILL)
    entries[sequence] = (inner + leaf) * LANES + entry
    largest = np.iinfo(low.dtype).max
    boxes = np.empty((blocks, columns, 2, LANES), low.dtype)
    boxes[:, :, LOW], boxes[:, :, HIGH] = largest, 0
    codes = np.zeros((inner, columns, BUCKETS), np.uint16)
    codes[:, caps[:columns] != 1] = ALL_ENTRIES
    index = ClassIndex(
        low=_with_capacity(low, capacity),
        high=_with_capacity(high, capacity),
        sizes=_with_capacity(sizes, capacity),
        entries=entries,
        used=np.array([len(sizes)]),
        caps=caps.copy(),
        weights=weights.astype(np.float64),
        boxes=boxes,
        rooms=np.repeat(caps[None, :columns, None], inner, axis=0).repeat(LANES, axis=2),
        codes=codes,
        costs=np.full((blocks, LANES), np.inf),
        least_sizes=np.full((blocks, LANES), np.finfo(np.float64).max),
        first_classes=np.full((blocks, LANES), np.iinfo(np.int64).max),
        children=children,
        parents=parents,
    )
    write_entries(index, sequence)
    return index


def write_entries(index: ClassIndex, classes: NDArray[np.int64]) -> None:
    """Bring the tree up to date with the boxes and sizes of some classes."""
    kernels.write_entries(index, classes, np.zeros(len(index.children), bool))


def _with_capacity(values: NDArray[Number], capacity: int) -> NDArray[Number]:
    """A copy with room for ``capacity`` classes."""
    grown = np.zeros((capacity, *values.shape[1:]), values.dtype)
    grown[: len(values)] = values
    return grown


def rebuild_index(index: ClassIndex) -> ClassIndex:
    """The same classes, under the same numbers, in a new tree with free entries and a quarter more numbers."""
    leaves = index.first_classes[len(index.rooms) :].ravel()
    count = index.used[0]
    return index_boxes(
        index.low[:count],
        index.high[:count],
        index.sizes[:count],
        index.caps,
        index.weights,
        leaves[leaves != np.iinfo(np.int64).max],
    )


def best_classes(index: ClassIndex, rows: NDArray[np.unsignedinteger]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find, for each row by itself, the class whose information loss rises least when the row joins it.

    The index is only read, so several threads may call this at once.

    Parameters
    ----------
    index : ClassIndex
    rows : dtype of the index, shape (n, width)

    Returns
    -------
    tuple of int64 and float64, each of shape (n,)
        The class, the lowest number among equals, and the rise of total (weighted) information loss; -1
        and infinity if there are no classes.
    """
    classes, increases = np.empty(len(rows), np.int64), np.empty(len(rows), np.float64)
    kernels.best_classes(index, rows, classes, increases)
    return classes, increases

"""From the class of each row to what readers see of it: one generalized tuple per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.loss import categorical_shares, class_boxes
from kanon_duck.microdata import CategoricalAttribute, Microdata, NumericAttribute

ROOT = "*"
"""What a cell shows that tells nothing: a numeric domain's whole range, or NULL mixed with values."""

INTERVAL, AT_ROOT, NULL = 0, 1, 2


@dataclass(frozen=True)
class Classes:
    """The equivalence classes of a partition, generalized.

    Attributes
    ----------
    sizes : int64, shape (m,)
        Rows of each class.
    shares : float64, shape (m, number of quasi-identifiers)
        Share in [0, 1] that each class loses of each quasi-identifier, as released.
    reader_class : int64, shape (m,)
        Number of the class that a reader sees: classes with the same generalization share one. The numbers
        follow the generalizations alone.
    cells : pyarrow.Table, m rows
        ``class``, ``rows``, ``reader_class`` and for each quasi-identifier i its cells: a categorical one
        ``label_i``; a numeric one ``kind_i`` (interval, root or null), ``low_i`` and ``high_i`` (codes).
    """

    sizes: NDArray[np.int64]
    shares: NDArray[np.float64]
    reader_class: NDArray[np.int64]
    cells: pa.Table


def generalize(microdata: Microdata, labels: NDArray[np.int64]) -> Classes:
    """Generalize every class to the least general tuple that covers its rows.

    A numeric cell is the interval from the least low to the greatest high step; a categorical one the lowest
    common ancestor (Definition 3 of Truta & Campan 2007). A class of NULLs shows NULL; NULL mixed with
    values, and an interval that covers the domain, show the root.

    Parameters
    ----------
    microdata : Microdata
    labels : int64, shape (rows,)
        Class of each row, 0 to m - 1, each in use; -1 for a row that is left out.

    Returns
    -------
    Classes
    """
    low, high, sizes = class_boxes(microdata.encoding.codes, labels)
    shares = categorical_shares(low, high, microdata.encoding)
    order = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    columns: dict[str, Any] = {"class": np.arange(len(sizes)), "rows": sizes}
    keys: list[NDArray[np.int64]] = []
    for number, attribute in enumerate(microdata.attributes):
        missing = np.add.reduceat(attribute.missing[order].astype(np.int64), starts)
        if isinstance(attribute, NumericAttribute):
            kind, first, last = _intervals(attribute, order, starts, missing, sizes)
            shares[:, number] = np.where(kind == INTERVAL, attribute.share(first, last), kind == AT_ROOT)
            columns |= {f"kind_{number}": kind, f"low_{number}": first, f"high_{number}": last}
            keys += [kind, first, last]
        else:
            node, label = _ancestors(attribute, order, starts, missing, sizes)
            columns[f"label_{number}"] = label
            keys.append(node)
    reader_class = _ranks(keys)
    columns["reader_class"] = reader_class
    return Classes(sizes, shares, reader_class, pa.table(columns))


def _intervals(
    attribute: NumericAttribute,
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    missing: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Kind, low and high code of each class's cell; the codes are 0 where it is no interval."""
    first = np.minimum.reduceat(attribute.low[order], starts)
    last = np.maximum.reduceat(attribute.high[order], starts)
    ends = attribute.domain
    covers_domain = (first <= ends[0]) & (last >= ends[1]) & (ends[0] < ends[1])
    kind = np.where((missing > 0) | covers_domain, AT_ROOT, INTERVAL)
    kind[missing == sizes] = NULL
    plain = kind == INTERVAL
    return kind, np.where(plain, first, 0), np.where(plain, last, 0)


def _ancestors(
    attribute: CategoricalAttribute,
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    missing: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], pa.Array]:
    """A number of each class's common ancestor (-1: NULL), and its label.

    Leaves are in depth-first order, so the lowest common ancestor of a class is that of its first and last.
    """
    hierarchy = attribute.hierarchy
    if not len(hierarchy.values):  # nothing but NULLs
        return np.full(len(sizes), -1), pa.nulls(len(sizes), pa.string())
    leaf = attribute.leaf[order]
    last = np.maximum.reduceat(leaf, starts)
    first = np.minimum.reduceat(np.where(leaf < 0, len(hierarchy.values), leaf), starts)
    first = np.minimum(first, len(hierarchy.values) - 1)
    first[last < 0] = 0
    height = np.count_nonzero(hierarchy.level_codes[first] != hierarchy.level_codes[last], axis=1)
    labels = [label for level in hierarchy.level_labels for label in level] + [hierarchy.root, ROOT]
    offsets = np.cumsum([0] + [len(level) for level in hierarchy.level_labels])
    root = offsets[-1]
    codes = np.append(hierarchy.level_codes, np.zeros((len(hierarchy.level_codes), 1), np.int64), axis=1)
    node = offsets[height] + codes[first, height]
    node[missing > 0] = root if hierarchy.root == ROOT else root + 1
    node[missing == sizes] = -1
    taken = pa.array(labels, pa.string()).take(pa.array(np.maximum(node, 0), mask=node < 0))
    return node, taken


def _ranks(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Dense rank of each class among the generalizations: equal keys, equal rank."""
    packed = [keys[0] - keys[0].min()]
    room = int(packed[0].max()) + 1
    for key in keys[1:]:
        digits = key - key.min()
        base = int(digits.max()) + 1
        if room * base < 2**63:
            packed[-1] = packed[-1] * base + digits
            room *= base
        else:
            packed.append(digits)
            room = base
    order = np.lexsort(packed[::-1])
    differs = np.zeros(len(order), dtype=bool)
    for key in packed:
        differs[1:] |= key[order[1:]] != key[order[:-1]]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(differs)
    return ranks

"""From the class of each row to what readers see of it: one generalized tuple per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.arrow import numbers, texts
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.levels import ancestor_heights, at_level, top_level
from kanon_duck.loss import categorical_shares, class_boxes, class_intervals
from kanon_duck.microdata import Microdata, NumericAttribute

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
        ``label_i``; a numeric one ``kind_i`` (interval, root or null), ``low_i`` and ``high_i`` (codes); and
        ``share_i``.
    """

    sizes: NDArray[np.int64]
    shares: NDArray[np.float64]
    reader_class: NDArray[np.int64]
    cells: pa.Table


def generalize(microdata: Microdata, labels: NDArray[np.int64], levels: Sequence[int] | None = None) -> Classes:
    """Generalize every class to the least general tuple that covers its rows, or what its rows show at given levels.

    A numeric cell is the interval from the least low to the greatest high step; a categorical one the lowest
    common ancestor (Definition 3 of Truta & Campan 2007). A class of NULLs shows NULL; NULL mixed with
    values, and an interval that covers the domain, show the root.

    Parameters
    ----------
    microdata : Microdata
    labels : int64, shape (rows,)
        Class of each row of the encoding, 0 to m - 1, each in use; -1 for a row that is left out.
    levels : sequence of int, optional
        For each quasi-identifier the level at which all rows show it (see `kanon_duck.levels`).

    Returns
    -------
    Classes
    """
    encoding = microdata.encoding
    low, high, sizes = class_boxes(encoding.codes, labels)
    shares = categorical_shares(low, high, encoding)
    null = np.iinfo(encoding.codes.dtype).max
    columns = {"class": numbers(np.arange(len(sizes))), "rows": numbers(sizes)}
    keys: list[NDArray[np.int64]] = []
    for number, attribute in enumerate(microdata.attributes):
        first_column = int(np.searchsorted(encoding.attributes, number))
        # NULL has the largest code, so a box tells whether a class holds any, and whether it holds nothing else
        state = _State(high[:, first_column] == null, low[:, first_column] == null)
        if levels is not None and levels[number] == top_level(attribute):
            state.all_null[:] = False  # there NULL is shown as everything else
        if isinstance(attribute, NumericAttribute):
            shown = attribute if levels is None else at_level(attribute, levels[number])
            kind, first, last = _intervals(shown, labels, state)
            shares[:, number] = np.where(kind == INTERVAL, attribute.share(first, last), kind == AT_ROOT)
            cell = {f"kind_{number}": kind, f"low_{number}": first, f"high_{number}": last}
            columns |= {name: numbers(part) for name, part in cell.items()}
            keys += cell.values()
        else:
            height = np.rint(shares[:, number] * attribute.hierarchy.height).astype(np.int64)
            code = low[:, first_column].astype(np.int64)
            if levels is not None:
                height = np.maximum(height, _heights(attribute.hierarchy, levels[number], code, state))
                shares[:, number] = np.maximum(shares[:, number], height / max(attribute.hierarchy.height, 1))
            node, label = _ancestors(attribute.hierarchy, code, height, state)
            columns[f"label_{number}"] = label
            keys.append(node)
        columns[f"share_{number}"] = numbers(shares[:, number])
    reader_class = _ranks(keys)
    columns["reader_class"] = numbers(reader_class)
    return Classes(sizes, shares, reader_class, pa.table(columns))


class _State(NamedTuple):
    """Whether each class has NULLs of an attribute, and whether it has nothing else."""

    some_null: NDArray[np.bool_]
    all_null: NDArray[np.bool_]


def _intervals(
    attribute: NumericAttribute, labels: NDArray[np.int64], state: _State
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Kind, low and high code of each class's cell; the codes are 0 where it is no interval."""
    first, last = class_intervals(attribute.low, attribute.high, labels, len(state.all_null))
    ends = attribute.domain
    covers_domain = (first <= ends[0]) & (last >= ends[1]) & ((ends[0] < ends[1]) | (first < last))
    kind = np.where(state.some_null | covers_domain, AT_ROOT, INTERVAL)
    kind[state.all_null] = NULL
    plain = kind == INTERVAL
    return kind, np.where(plain, first, 0), np.where(plain, last, 0)


def _heights(hierarchy: BoundHierarchy, level: int, code: NDArray[np.int64], state: _State) -> NDArray[np.int64]:
    """Height of what each class shows at a level; ``code`` is that of its first value on the lowest level."""
    if level >= hierarchy.height:
        return np.full(len(code), hierarchy.height)
    by_code = np.zeros(len(hierarchy.values) + 1, np.int64)
    by_code[hierarchy.level_codes[:, 0]] = ancestor_heights(hierarchy, level)
    return by_code[np.where(state.all_null, -1, code)]  # NULL takes the last


def _ancestors(
    hierarchy: BoundHierarchy, code: NDArray[np.int64], height: NDArray[np.int64], state: _State
) -> tuple[NDArray[np.int64], pa.Array]:
    """A number of each class's lowest common ancestor (-1: NULL), and its label.

    The ancestor is told by its height and any value below it: ``code`` is that of each class's first on the lowest
    level, which several values may share.
    """
    labels = pa.concat_arrays([*hierarchy.level_labels, texts([hierarchy.root, ROOT])])
    offsets = np.cumsum([0] + [len(level) for level in hierarchy.level_labels])
    root = int(offsets[-1])
    node = np.full(len(code), root if hierarchy.root == ROOT else root + 1)
    below_root = ~state.some_null & (height < hierarchy.height)
    if hierarchy.height:
        path = np.empty_like(hierarchy.level_codes)
        path[hierarchy.level_codes[:, 0]] = hierarchy.level_codes
        node[below_root] = offsets[height[below_root]] + path[code[below_root], height[below_root]]
    node[~state.some_null & (height == hierarchy.height)] = root
    node[state.all_null] = -1
    return node, labels.take(numbers(node, node < 0))


def _ranks(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Dense rank of each class among the generalizations: equal keys, equal rank."""
    packed = [keys[0] - keys[0].min(initial=0)]
    room = int(packed[0].max(initial=0)) + 1
    for key in keys[1:]:
        digits = key - key.min(initial=0)
        base = int(digits.max(initial=0)) + 1
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

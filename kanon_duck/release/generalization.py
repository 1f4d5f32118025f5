"""Generalizes classes: from the class of each row to the one tuple that its readers see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.encoding.levels import ancestor_heights, at_level, top_level
from kanon_duck.encoding.loss import class_boxes, class_intervals
from kanon_duck.encoding.microdata import Microdata, NumericAttribute
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.runtime.arrow import numbers, texts
from kanon_duck.runtime.parallel import each
from kanon_duck.runtime.sorting import sort_rows

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
        For each quasi-identifier the level at which all rows show it (see `kanon_duck.encoding.levels`).

    Returns
    -------
    Classes
    """
    encoding = microdata.encoding
    low, high, sizes = class_boxes(encoding.codes, labels)
    null = np.iinfo(encoding.codes.dtype).max

    def cells_of(place: int) -> _GeneralizedAttribute:
        attribute, level = microdata.attributes[place], None if levels is None else levels[place]
        columns = slice(*np.searchsorted(encoding.attributes, [place, place + 1]))
        # NULL has the largest code, so a box tells whether a class holds any, and whether it holds nothing else
        nulls = _Nulls(high[:, columns.start] == null, low[:, columns.start] == null)
        if level == top_level(attribute):
            nulls.all_null[:] = False  # there NULL is shown as everything else
        if isinstance(attribute, NumericAttribute):
            return _numeric_cells(attribute if level is None else at_level(attribute, level), labels, nulls)
        return _categorical_cells(attribute.hierarchy, level, low[:, columns], high[:, columns], nulls)

    cells = each(cells_of, range(len(microdata.attributes)))
    reader_class = _ranks([key for of_attribute in cells for key in of_attribute.keys])
    columns = {"class": numbers(np.arange(len(sizes))), "rows": numbers(sizes)}
    for place, of_attribute in enumerate(cells):
        shown = of_attribute.shown | {"share": numbers(of_attribute.share)}
        columns |= {f"{name}_{place}": column for name, column in shown.items()}
    columns["reader_class"] = numbers(reader_class)
    shares = np.array([of_attribute.share for of_attribute in cells]).reshape(len(cells), len(sizes)).T
    return Classes(sizes, shares, reader_class, pa.table(columns))


class _Nulls(NamedTuple):
    """Whether each class has NULLs of an attribute, and whether it has nothing else."""

    some_null: NDArray[np.bool_]
    all_null: NDArray[np.bool_]


class _GeneralizedAttribute(NamedTuple):
    """What each class shows of one quasi-identifier, numbers that tell it apart, and the share that it loses."""

    shown: dict[str, pa.Array]
    keys: list[NDArray[np.int64]]
    share: NDArray[np.float64]


def _numeric_cells(attribute: NumericAttribute, labels: NDArray[np.int64], nulls: _Nulls) -> _GeneralizedAttribute:
    """Kind, low and high code of each class's cell; the codes are 0 where it is no interval."""
    first, last = class_intervals(attribute.low, attribute.high, labels, len(nulls.all_null))
    ends = attribute.domain
    covers_domain = (first <= ends[0]) & (last >= ends[1]) & ((ends[0] < ends[1]) | (first < last))
    kind = np.where(nulls.some_null | covers_domain, AT_ROOT, INTERVAL)
    kind[nulls.all_null] = NULL
    plain = kind == INTERVAL
    cell = {"kind": kind, "low": np.where(plain, first, 0), "high": np.where(plain, last, 0)}
    share = np.where(plain, attribute.share(cell["low"], cell["high"]), kind == AT_ROOT)
    return _GeneralizedAttribute({name: numbers(part) for name, part in cell.items()}, list(cell.values()), share)


def _categorical_cells(
    hierarchy: BoundHierarchy,
    level: int | None,
    low: NDArray[np.unsignedinteger],
    high: NDArray[np.unsignedinteger],
    nulls: _Nulls,
) -> _GeneralizedAttribute:
    """Label of the lowest common ancestor of each class, or of what it shows at a level."""
    height = np.count_nonzero(low != high, axis=1)
    code = low[:, 0].astype(np.int64)
    if level is not None:
        height = np.maximum(height, _heights(hierarchy, level, code, nulls))
    node, label = _ancestors(hierarchy, code, height, nulls)
    return _GeneralizedAttribute({"label": label}, [node], height / low.shape[1])


def _heights(hierarchy: BoundHierarchy, level: int, code: NDArray[np.int64], nulls: _Nulls) -> NDArray[np.int64]:
    """Height of what each class shows at a level; ``code`` is that of its first value on the lowest level."""
    if level >= hierarchy.height:
        return np.full(len(code), hierarchy.height)
    by_code = np.zeros(len(hierarchy.values) + 1, np.int64)
    by_code[hierarchy.level_codes[:, 0]] = ancestor_heights(hierarchy, level)
    return by_code[np.where(nulls.all_null, -1, code)]  # NULL takes the last


def _ancestors(
    hierarchy: BoundHierarchy, code: NDArray[np.int64], height: NDArray[np.int64], nulls: _Nulls
) -> tuple[NDArray[np.int64], pa.Array]:
    """A number of each class's lowest common ancestor (-1: NULL), and its label.

    The ancestor is told by its height and any value below it: ``code`` is that of each class's first on the lowest
    level, which several values may share.
    """
    labels = pa.concat_arrays([*hierarchy.level_labels, texts([hierarchy.root, ROOT])])
    offsets = np.cumsum([0] + [len(level) for level in hierarchy.level_labels])
    root = int(offsets[-1])
    node = np.full(len(code), root)
    if hierarchy.height:
        path = np.full((len(hierarchy.values) + 1, hierarchy.height + 1), root)
        path[hierarchy.level_codes[:, 0], :-1] = hierarchy.level_codes + offsets[:-1]
        node = path[np.minimum(code, len(hierarchy.values)), height]  # NULL takes the last
    node[nulls.some_null] = root if hierarchy.root == ROOT else root + 1
    node[nulls.all_null] = -1
    return node, labels.take(numbers(node, nulls.all_null))


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
    order, repeated = sort_rows([word.view(np.uint64) for word in packed])
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(~repeated) - 1
    return ranks

"""Measures how wrong counts on a release are: random counts, answered from its classes and from the source.

A count asks for the rows that meet conditions on two or three quasi-identifiers. That on a numeric one is the range
between the values of two random rows, both included; that on a categorical one is to lie at or below a node of the
hierarchy, the ancestor of a random row's value at a random level below the root. NULL meets no condition.

A class answers as readers can with `kanon.overlap` and `kanon.covers`: as if its rows were spread evenly over its
cells, in each quasi-identifier by itself. A cell at the root is spread over the whole domain, and a label over the
values below it that occur in the source. (Random counts and their error relative to the true count measure releases
since Xiao & Tao, VLDB 2006, section 6; the floor of the true count is that of Xiao, Wang & Gehrke, ICDE 2010.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.microdata import Attribute, Microdata, NumericAttribute
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.release.generalization import AT_ROOT, NULL, Classes

COUNTS = 1000
"""Counts that are drawn."""

LEAST_SHARE = 0.001
"""An error is relative to at least this share of the source's rows, so that rare people do not outweigh all others."""


class Condition(NamedTuple):
    """What a count asks of one quasi-identifier.

    Attributes
    ----------
    attribute : int
    asked : tuple of int
        Of a numeric one, the first and the last code of a range; of a categorical one, a level and one of the values
        below the node of that level.
    """

    attribute: int
    asked: tuple[int, int]


Answer = Callable[[Condition], NDArray[np.float64]]
"""Tells which share of each class's cell meets a condition."""


class Counts(NamedTuple):
    """Random counts and their true answers."""

    drawn: list[list[Condition]]
    true: NDArray[np.int64]


def draw_counts(
    microdata: Microdata, generator: np.random.Generator, checkpoint: Callable[[float | None], None]
) -> Counts:
    """Draw random counts and answer them from the source's rows; none where no attribute has a value to ask for."""
    usable = {place: rows for place, each in enumerate(microdata.attributes) if (rows := _askable(each)).size}
    drawn: list[list[Condition]] = []
    true = []
    for _ in range(COUNTS if usable else 0):
        checkpoint(None)
        chosen = generator.permutation(list(usable))[: generator.integers(2, 4)]
        conditions = [_condition(int(place), microdata.attributes[place], usable[place], generator) for place in chosen]
        rows = np.arange(microdata.encoding.rows)
        for condition in conditions:
            rows = rows[_meets(condition, microdata.attributes[condition.attribute], rows)]
        drawn.append(conditions)
        true.append(len(rows))
    return Counts(drawn, np.array(true, np.int64))


def query_error(
    counts: Counts,
    microdata: Microdata,
    labels: NDArray[np.int64],
    classes: Classes,
    checkpoint: Callable[[float | None], None],
) -> float | None:
    """Median relative error of random counts that are answered from classes.

    Parameters
    ----------
    counts : Counts
        Drawn from ``microdata``.
    microdata : Microdata
    labels : int64, shape (rows,)
        Class of each row, -1 for one that is left out: the true counts know it, the classes do not.
    classes : Classes
        Their generalization.
    checkpoint : callable
        Called for each count.

    Returns
    -------
    float or None
        Of |answer - true count| / max(true count, 0.1% of the rows, 1); None without counts.
    """
    if not counts.drawn:
        return None
    cells = [_cells(place, each, labels, classes) for place, each in enumerate(microdata.attributes)]
    answers = np.empty(len(counts.drawn))
    for number, conditions in enumerate(counts.drawn):
        checkpoint(None)
        expected = classes.sizes.astype(np.float64)
        for condition in conditions:
            expected *= cells[condition.attribute](condition)
        answers[number] = expected.sum()
    least = max(LEAST_SHARE * len(labels), 1.0)
    return float(np.median(np.abs(answers - counts.true) / np.maximum(counts.true, least)))


def _askable(attribute: Attribute) -> NDArray[np.int64]:
    """Rows whose value can make a condition."""
    if isinstance(attribute, NumericAttribute):
        return np.flatnonzero(~attribute.missing)
    return np.flatnonzero(attribute.leaf >= 0) if attribute.hierarchy.height else np.empty(0, np.int64)


def _condition(place: int, attribute: Attribute, rows: NDArray[np.int64], generator: np.random.Generator) -> Condition:
    """A random condition on an attribute, from the values of some of the rows."""
    one, other = generator.choice(rows, 2)
    if isinstance(attribute, NumericAttribute):
        low, high = attribute.low[[one, other]], attribute.high[[one, other]]
        return Condition(place, (int(low.min()), int(high.max())))
    return Condition(place, (int(generator.integers(attribute.hierarchy.height)), int(attribute.leaf[one])))


def _meets(condition: Condition, attribute: Attribute, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some rows meet a condition."""
    if isinstance(attribute, NumericAttribute):
        first, last = condition.asked
        return (attribute.low[rows] >= first) & (attribute.high[rows] <= last) & ~attribute.missing[rows]
    level, leaf = condition.asked
    nodes = attribute.hierarchy.level_codes[:, level]
    return np.append(nodes == nodes[leaf], False)[attribute.leaf[rows]]  # NULL takes the last


def _cells(place: int, attribute: Attribute, labels: NDArray[np.int64], classes: Classes) -> Answer:
    """What the cells of an attribute answer."""
    if isinstance(attribute, NumericAttribute):
        return _intervals(place, attribute, classes)
    return _nodes(attribute.hierarchy, attribute.leaf, labels, classes.shares[:, place])


def _intervals(place: int, attribute: NumericAttribute, classes: Classes) -> Answer:
    """For intervals: the part of their length that lies in a range; a single point lies in it or does not."""
    kind, first, last = (classes.cells.column(f"{name}_{place}").to_numpy() for name in ("kind", "low", "high"))
    first = _positions(attribute, np.where(kind == AT_ROOT, attribute.domain[0], first))
    last = _positions(attribute, np.where(kind == AT_ROOT, attribute.domain[1], last))
    point, length = first == last, np.maximum(last - first, np.finfo(float).tiny)

    def share(condition: Condition) -> NDArray[np.float64]:
        low, high = _positions(attribute, np.array(condition.asked))
        shared = np.minimum(last, high) - np.maximum(first, low)
        return np.where(kind == NULL, 0.0, np.where(point, shared >= 0, np.maximum(shared, 0) / length))

    return share


def _positions(attribute: NumericAttribute, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where codes stand, so that differences are lengths."""
    return codes.astype(np.float64) if attribute.positions is None else attribute.positions[codes]


def _nodes(
    hierarchy: BoundHierarchy, leaf: NDArray[np.int32], labels: NDArray[np.int64], shares: NDArray[np.float64]
) -> Answer:
    """For labels: the share of the values below them that lies below a node."""
    # codes of the ancestors of each value, the root's last; and a last row, for NULL, that is like no other
    paths = np.zeros((len(hierarchy.values) + 1, hierarchy.height + 1), np.int64)
    paths[:-1, :-1] = hierarchy.level_codes
    paths[-1] = -1
    value = np.full(len(shares), -1)  # one in each class, whose cell is its ancestor of the class's height
    known = (labels >= 0) & (leaf >= 0)
    value[labels[known]] = leaf[known]
    height = np.rint(shares * hierarchy.height).astype(np.int64)
    # classes with the same cell have the same answer
    first_number = np.cumsum([0, *(1 + paths.max(axis=0))])
    node = np.where(value < 0, -1, first_number[height] + paths[value, height])
    _, one_class, cell = np.unique(node, return_index=True, return_inverse=True)
    value, height = value[one_class], height[one_class]
    values = (paths[:, height] == paths[value, height]).sum(axis=0)

    def share(condition: Condition) -> NDArray[np.float64]:
        level, asked = condition.asked
        upper = np.maximum(height, level)
        related = paths[value, upper] == paths[asked, upper]
        below = np.count_nonzero(paths[:, level] == paths[asked, level])
        return (related * np.where(height > level, below / values, 1.0))[cell]

    return share

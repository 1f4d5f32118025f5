"""Levels of full-domain generalization: what a quasi-identifier shows if all rows show it at one level.

Level 0 of a numeric quasi-identifier is its step, level j intervals of 2**j steps counted from the domain's lower end,
and the top level the whole domain. Level j of a categorical one of height H is what its hierarchy has at depth H - j,
counted from the root: a leaf that lies higher, in an unbalanced tree, stays what it is. NULL is a value of its own
below the top level, where everything is ``*``.

Guarantee: rows that agree at one level agree at every higher one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from kanon_duck.encoding.microdata import Attribute, CategoricalAttribute, NumericAttribute
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.runtime.arrow import array, numbers

NULL = np.iinfo(np.int64).min


def top_level(attribute: Attribute) -> int:
    """The highest level, at least 1: there are levels 0 to this, whatever values occur."""
    if isinstance(attribute, CategoricalAttribute):
        return max(attribute.hierarchy.height, 1)
    first, last = attribute.domain
    return max((last - first - (not _on_grid(attribute))).bit_length(), 1)


def codes_at(attribute: Attribute, level: int) -> NDArray[np.int64]:
    """Codes of the rows that tell apart what they show at a level."""
    if level == top_level(attribute):
        return np.zeros(len(attribute.leaf if isinstance(attribute, CategoricalAttribute) else attribute.low), np.int64)
    if isinstance(attribute, NumericAttribute):
        return np.where(attribute.missing, NULL, _intervals(attribute, level))
    hierarchy = attribute.hierarchy
    nodes = np.zeros(len(hierarchy.values), np.int64)
    if hierarchy.height:
        height = ancestor_heights(hierarchy, level)
        offsets = np.cumsum([0] + [len(labels) for labels in hierarchy.level_labels])
        nodes = offsets[height] + hierarchy.level_codes[np.arange(len(height)), height]
    return np.append(nodes, NULL)[attribute.leaf]  # the leaf of NULL is -1


def shares_at(attribute: Attribute, level: int) -> NDArray[np.float64]:
    """Share in [0, 1] that each row loses of the attribute at a level, as released."""
    if isinstance(attribute, NumericAttribute):
        if level == top_level(attribute):
            return np.ones(len(attribute.low))
        shown = at_level(attribute, level)
        return np.where(attribute.missing, 0.0, attribute.share(shown.low, shown.high))
    share = ancestor_heights(attribute.hierarchy, level) / max(attribute.hierarchy.height, 1)
    return np.append(share, float(level == top_level(attribute)))[attribute.leaf]


def at_level(attribute: NumericAttribute, level: int) -> NumericAttribute:
    """The attribute with the interval of each row at a level in the place of its value.

    An interval that reaches over an end of the domain ends there, or at the row's value where this lies further out.
    """
    first, last = attribute.domain
    if level == top_level(attribute):
        end = max(last, first + 1)  # a domain of one value can be at the root too, where that is mixed with NULL
        return replace(attribute, low=np.full_like(attribute.low, first), high=np.full_like(attribute.high, end))
    low = first + (_intervals(attribute, level) << level)
    high = low + (1 << level) - _on_grid(attribute)
    return replace(
        attribute,
        low=np.maximum(low, np.minimum(first, attribute.low)),
        high=np.minimum(high, np.maximum(last, attribute.high)),
    )


def ancestor_heights(hierarchy: BoundHierarchy, level: int) -> NDArray[np.int64]:
    """Height of what each value of a hierarchy shows at a level, in the order of ``hierarchy.values``."""
    values, height = len(hierarchy.values), hierarchy.height
    if level >= height:
        return np.full(values, height)
    labels = [
        names.take(numbers(codes)) for names, codes in zip(hierarchy.level_labels, hierarchy.level_codes.T, strict=True)
    ]
    # the highest ancestor below the root has depth 1; a node whose parent is higher by several stands in all columns
    depth = np.ones(values, np.int64)
    heights = np.zeros(values, np.int64)
    for column in range(height - 2, -1, -1):
        depth += array(pc.not_equal(labels[column], labels[column + 1]))
        heights += depth > height - level
    return heights


def _on_grid(attribute: NumericAttribute) -> bool:
    """Whether all values lie on the step's multiples: an interval of w steps then holds w values, from end to end."""
    return attribute.high is attribute.low


def _intervals(attribute: NumericAttribute, level: int) -> NDArray[np.int64]:
    """Number of each row's interval of 2**level steps; between the domain's multiples, its upper end is in the last."""
    first, last = attribute.domain
    steps = attribute.low - first
    if not _on_grid(attribute) and first < last:
        steps = steps - ((attribute.low == last) & (attribute.high == last))
    return steps >> level

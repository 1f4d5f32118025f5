"""The encoded quasi-identifiers of some rows, both for the search and for exact generalization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.numeric import Step
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.kernels import LANES
from kanon_duck.runtime.parallel import each

LARGEST_CAP = 2**23
"""The search counts in float32, which tells whole numbers apart up to twice this."""

FAR = 3
"""A value further from the bulk of its column than this many times the bulk's width is far outside the rest."""

APART = 6
"""Times the positions in a bulk that codes must have room for: bulk, far above, far below and NULL stand apart."""

BY_RANK = 0.25
"""Share of the positions in a crowded bulk that follows the ranks of its values: enough to tell them apart."""

SHORTEST = 1e-100
"""Stands for the width of a domain or bulk of one value."""

STRETCH = 1 << 16
"""Rows that are encoded in one go, so that all of their columns are written while they are in the cache."""


@dataclass(frozen=True)
class NumericAttribute:
    """An encoded numeric quasi-identifier.

    ``low`` and ``high`` are codes of the low and the high step of each row (see `kanon_duck.encoding.numeric`):
    the step counted from the domain's lower end or, in a domain of over 2**62 steps, its rank.

    Attributes
    ----------
    name : str
    step : Step
    low, high : int64, shape (rows,)
        Codes; of no meaning where ``missing``. One and the same array where values lie on the step's multiples.
    missing : bool, shape (rows,)
        NULLs.
    domain : tuple of int
        Codes of the domain's ends.
    bulk : tuple of int
        Rising codes, the first and the last of them the ends of what the search tells apart finely: the domain, or
        the part of it that holds all values but those far outside the rest. Between any two that follow each other
        there are about equally many different values, where there are more than two (see `kanon_duck.encoding.bulk`).
    base : int
        Step that code 0 stands for (not for ranks).
    ranks : str or None
        Temporary table (code, step) where codes are ranks.
    positions : float64 or None
        For ranks: position of each code in the domain, which is 0 to 1.
    """

    name: str
    step: Step
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    missing: NDArray[np.bool_]
    domain: tuple[int, int]
    bulk: tuple[int, ...]
    base: int
    ranks: str | None = None
    positions: NDArray[np.float64] | None = None

    def take(self, rows: NDArray[np.int64]) -> NumericAttribute:
        """Some of the rows."""
        low = self.low.take(rows)
        high = low if self.high is self.low else self.high.take(rows)
        return replace(self, low=low, high=high, missing=self.missing.take(rows))

    def points(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Codes as points on a line, whose distances are those of the steps they stand for."""
        return codes.astype(np.float64) if self.positions is None else self.positions[codes]

    def is_far(self) -> NDArray[np.bool_]:
        """Whether each row has a value far outside the rest."""
        first, last = self.points(np.array(self.bulk))[[0, -1]]
        reach = FAR * (last - first)
        far = (self.points(self.low) < first - reach) | (self.points(self.high) > last + reach)
        return far & ~self.missing

    def share(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of the domain that intervals of codes take up: at most 1, and 0 where the domain is a point."""
        first, last = self.domain
        if last == first:
            return np.zeros(len(low))
        if self.positions is not None:
            return np.minimum(self.positions[high] - self.positions[low], 1.0)
        return np.minimum((high - low) / (last - first), 1.0)


@dataclass(frozen=True)
class CategoricalAttribute:
    """An encoded categorical quasi-identifier.

    Attributes
    ----------
    name : str
    hierarchy : BoundHierarchy
    leaf : int32, shape (rows,)
        Index into ``hierarchy.values``; -1 for NULL, -2 for a value that the hierarchy does not know.
    """

    name: str
    hierarchy: BoundHierarchy
    leaf: NDArray[np.int32]

    def take(self, rows: NDArray[np.int64]) -> CategoricalAttribute:
        """Some of the rows."""
        return replace(self, leaf=self.leaf.take(rows))


Attribute = NumericAttribute | CategoricalAttribute


@dataclass(frozen=True)
class Sensitive:
    """What privacy models speak of besides the quasi-identifiers, as codes that only tell equal from unequal.

    Attributes
    ----------
    persons : int64, shape (rows,) or (0,)
        Whom each row is about; empty where each row is a person of its own.
    values, strong : int64, shape (sensitive attributes, rows)
        Value of each row, and its strong value; no attributes where the models speak of none.
    levels : int64, shape (columns, rows)
        Values as distances see them (see `kanon_duck.privacy.sensitive`); no columns without t-closeness.
    attribute, ordered : tuple
        Of each column of ``levels``, the sensitive attribute it belongs to, and whether its codes are an order.
    """

    persons: NDArray[np.int64]
    values: NDArray[np.int64]
    strong: NDArray[np.int64]
    levels: NDArray[np.int64]
    attribute: tuple[int, ...]
    ordered: tuple[bool, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Sensitive:
        """Some of the rows."""
        return replace(
            self,
            persons=self.persons[rows] if self.persons.size else self.persons,
            values=self.values.take(rows, axis=1),
            strong=self.strong.take(rows, axis=1),
            levels=self.levels.take(rows, axis=1),
        )


@dataclass(frozen=True)
class Microdata:
    """The encoded rows of a source.

    Attributes
    ----------
    attributes : list
        One per quasi-identifier, in the order of the settings.
    encoding : Encoding
        What the search works on, the same rows in the same order.
    sensitive : Sensitive or None
        What the models speak of besides; None where that is the number of rows alone.
    """

    attributes: list[Attribute]
    encoding: Encoding
    sensitive: Sensitive | None = None

    def take(self, rows: NDArray[np.int64]) -> Microdata:
        """Some of the rows."""
        return Microdata(
            [attribute.take(rows) for attribute in self.attributes],
            replace(self.encoding, codes=self.encoding.codes.take(rows, axis=0)),
            None if self.sensitive is None else self.sensitive.take(rows),
        )


def encoding_of(attributes: list[Attribute], weights: list[float], rows: int) -> Encoding:
    """The search's view of the attributes of some rows, with the weight of each attribute."""
    trees = [one.hierarchy for one in attributes if isinstance(one, CategoricalAttribute)]
    most_codes = max((int(tree.level_codes.max(initial=0)) for tree in trees), default=0)
    if len(attributes) == 1 and isinstance(attributes[0], NumericAttribute):
        most_codes = int(min(APART * _steps(attributes[0]), LARGEST_CAP))  # nothing else tells its values apart
    dtype: type[np.unsignedinteger] = np.uint16 if most_codes < np.iinfo(np.uint16).max else np.uint32
    null = np.iinfo(dtype).max
    # an attribute has a column also where its hierarchy has height 0, to tell NULL from values
    sizes = [1 if isinstance(one, NumericAttribute) else max(one.hierarchy.height, 1) for one in attributes]
    columns = sum(sizes)
    width = -(-columns // LANES) * LANES
    codes = np.zeros((rows, width), dtype=dtype)
    caps = np.zeros(width, dtype=dtype)
    unit_weights = np.zeros(width, dtype=np.float32)
    blocks = []
    first = 0
    for attribute, weight, size in zip(attributes, weights, sizes, strict=True):
        block = slice(first, first + size)
        if isinstance(attribute, NumericAttribute):
            of_rows, caps[block] = _positions(attribute, min(int(null) // APART, LARGEST_CAP), null)
            unit_weights[block] = weight / caps[first]
        else:
            of_rows, caps[block] = _level_codes(attribute, size, dtype), 1
            unit_weights[block] = weight / size
        blocks.append((codes[:, block], of_rows))
        first += size

    def fill(start: int) -> None:
        for block, of_rows in blocks:
            block[start : start + STRETCH] = of_rows(slice(start, start + STRETCH))

    each(fill, range(0, rows, STRETCH))
    return Encoding(
        codes=codes,
        caps=caps,
        weights=unit_weights,
        columns=columns,
        attributes=np.repeat(np.arange(len(attributes)), sizes),
        numeric=np.array([isinstance(attribute, NumericAttribute) for attribute in attributes]),
    )


OfRows = Callable[[slice], NDArray[Any]]
"""The columns of an attribute for some rows, shape (rows, columns)."""


def _level_codes(attribute: CategoricalAttribute, size: int, dtype: type[np.unsignedinteger]) -> OfRows:
    """Codes of the rows on each level; NULL, and what the hierarchy does not know, has the largest."""
    hierarchy = attribute.hierarchy
    levels = np.zeros((len(hierarchy.values) + 1, size), dtype)
    levels[:-1, : hierarchy.height] = hierarchy.level_codes
    levels[-1] = np.iinfo(dtype).max
    return lambda rows: levels.take(np.maximum(attribute.leaf[rows], -1), axis=0)


def _steps(attribute: NumericAttribute) -> float:
    """Positions that the search could tell apart in the bulk."""
    if attribute.positions is not None:
        return LARGEST_CAP
    halves = 1 if attribute.high is attribute.low else 2
    return float(halves * (attribute.bulk[-1] - attribute.bulk[0]))


def _positions(attribute: NumericAttribute, largest: int, null: int) -> tuple[OfRows, int]:
    """Positions of the rows in the bulk, 0 to a cap of at most ``largest``, or ``null``; and that cap (at least 1).

    They follow the values, and where the bulk has codes between its ends to the share ``BY_RANK`` their ranks. Where
    a step holds values between its multiples, these stand halfway between them. What lies beside the bulk is at
    its end, but for what is far outside the rest: above the bulk from twice the cap on, below it from four times the
    cap on, each by the share of the domain that it is away, up to another cap.

    Guarantee: a class that mixes any two of bulk, far above, far below and NULL costs the whole attribute, and one
    inside the bulk as much as if nothing were far.
    """
    bulk = attribute.points(np.array(attribute.bulk))
    first, last = bulk[[0, -1]].tolist()
    domain = attribute.points(np.array(attribute.domain))
    cap = int(max(min(_steps(attribute), largest), 1))
    unit = cap / max(last - first, SHORTEST)
    reach = FAR * (last - first)
    ranked = np.linspace(0, cap, len(bulk))

    def of_rows(rows: slice) -> NDArray[np.int64]:
        points = attribute.points(attribute.low[rows])
        if attribute.high is not attribute.low:
            points = (points + attribute.points(attribute.high[rows])) / 2
        positions = np.clip((points - first) * unit, 0, cap)
        if len(bulk) > 2:
            positions += BY_RANK * (np.interp(points, bulk, ranked) - positions)
        codes = positions.astype(np.int64)
        for far, distance, begin in (
            (points > last + reach, points - last, 2 * cap),
            (points < first - reach, first - points, 4 * cap),
        ):
            if far.any():
                away = distance[far] / max(domain[1] - domain[0], SHORTEST)
                codes[far] = begin + (np.minimum(away, 1.0) * cap).astype(np.int64)
        return np.where(attribute.missing[rows], null, codes)[:, None]

    return of_rows, cap

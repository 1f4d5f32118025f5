"""Sorts the rows so that similar rows stand close together.

Idea: sort by components, the cheapest first. A component is one level of a hierarchy (rows that agree
on it save the level's weight) or one halving of the ranges of all numeric quasi-identifiers together,
along a Hilbert curve (which saves half of what was left of their weights; the very first halving tells
NULLs, and values far outside the rest, from the others). A level saves nothing for rows whose value fewer
than k rows have. Its price is the entropy of its attribute down to that level for each unit of loss it
saves: coarse levels and skewed columns come first, deep and even ones last.

Cost: O(n) to build the keys, one sort of n keys. Source of the two halves: sorting by rising
entropy, and Hilbert curves for k-anonymity (Ghinita, Karras, Kalnis & Mamoulis, VLDB 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.hilbert import hilbert_keys, pack_keys
from kanon_duck.runtime.parallel import Checkpoint, each, part, run
from kanon_duck.runtime.sorting import sort_rows

CURVE_BITS, BITS_ALONE = 12, 24
"""Most bits of a coordinate on the curve, of several and of one alone: a finer difference is too small a loss to sort
by."""

SAMPLE = 1 << 15
"""Rows that entropies are estimated from: evenly spaced, so they depend on the table alone."""

WELL_SHARED = 0.9
"""A sample that shows so large a share of rows with common codes is believed."""

STRETCH = 1 << 17
"""Rows whose keys are made in one go."""

CURVE_PRICE = 4.0
"""Factor on the price of a halving: numbers sorted last are narrowed inside whatever cell remains, so
putting them first gains less than it seems to. ``tests.benchmarks.settings`` shows 4 to 16 equally good."""


@dataclass(frozen=True)
class Component:
    """One component of a sort key.

    Attributes
    ----------
    column : int
        The column, or -1 for the position on the Hilbert curve.
    shift : int
        How many of its lowest bits the component leaves out.
    limit : int
        Largest value of the component.
    price : float
        Bits of entropy, from the root of its attribute to here, per unit of loss it saves.
    """

    column: int
    shift: int
    limit: int
    price: float


class Curve:
    """The Hilbert curve through the numeric quasi-identifiers of an encoding."""

    def __init__(self, encoding: Encoding) -> None:
        used = np.arange(encoding.columns)
        numeric = used[encoding.numeric[encoding.attributes]]
        self.columns = numeric[encoding.caps[numeric] > 0][:64]
        dimensions = len(self.columns)
        caps = encoding.caps[self.columns].astype(np.float64)
        weights = encoding.weights[self.columns] * caps
        # the upper half of the cube is empty but for values far outside the rest, and NULLs at its far end
        needed = 1 + int(caps.max()).bit_length() if dimensions else 0
        self.bits = min(needed, CURVE_BITS if dimensions > 1 else BITS_ALONE, 64 // max(dimensions, 1))
        self.weight = float(weights.sum())
        self.scales = ((1 << self.bits >> 1) - 1) * weights / caps / max(weights.max(initial=0.0), 1e-30)

    def positions(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
        """Position of each row on the curve; zeros where nothing is numeric."""
        keys = np.zeros(len(codes), np.uint64)
        if self.bits:
            point = np.empty(len(self.columns), np.uint64)
            hilbert_keys(codes, self.columns, self.scales, self.bits, point, keys)
        return keys


def _entropy(counts: NDArray[np.int64]) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum())


def _counts(codes: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Rows of each code of a level column, those of NULL last."""
    null = np.iinfo(codes.dtype).max
    limit = int(codes.max(where=codes != null, initial=0)) + 1
    return np.bincount(np.minimum(codes, limit), minlength=limit + 1)


def _shared(counts: NDArray[np.int64], k: int) -> float:
    """Share of the rows whose code k rows or more have: for the others no class can agree on it."""
    return float(counts[counts >= k].sum() / counts.sum())


def components(encoding: Encoding, curve: Curve, k: int) -> list[list[Component]]:
    """Chains of components, coarse to fine: one for each categorical attribute, one for the curve."""
    sample = encoding.codes[:: max(1, encoding.rows // SAMPLE)]

    def levels(attribute: int) -> list[Component]:
        chain = []
        for column in np.flatnonzero(encoding.attributes == attribute)[::-1]:
            counts = _counts(sample[:, column])
            shared = _shared(counts, k)
            if shared < WELL_SHARED and len(sample) < encoding.rows:  # in a sample a code has fewer rows
                shared = _shared(_counts(encoding.codes[:, column]), k)
            saved = max(shared * float(encoding.weights[column]), 1e-30)
            chain.append(Component(int(column), 0, len(counts) - 1, _entropy(counts) / saved))
        return chain

    chains = each(levels, np.flatnonzero(~encoding.numeric).tolist())
    if curve.bits:
        dimensions = len(curve.columns)
        positions = np.sort(curve.positions(np.ascontiguousarray(sample)))
        chain = []
        for level in range(curve.bits):
            shift = dimensions * (curve.bits - 1 - level)
            prefix = positions >> np.uint64(shift)
            starts = np.flatnonzero(np.r_[True, prefix[1:] != prefix[:-1], True])
            entropy = _entropy(np.diff(starts))
            saved = curve.weight * 0.5**level
            chain.append(Component(-1, shift, (1 << dimensions) - 1, CURVE_PRICE * entropy / saved))
        chains.append(chain)
    return chains


def cheapest_first(chains: list[list[Component]]) -> list[Component]:
    """Merge the chains: again and again the cheapest of their next components."""
    chains = [list(chain) for chain in chains]
    merged = []
    while chains := [chain for chain in chains if chain]:
        merged.append(min(chains, key=lambda chain: chain[0].price).pop(0))
    return merged


def sort_keys(
    codes: NDArray[np.unsignedinteger], positions: NDArray[np.uint64], parts: Sequence[Component]
) -> NDArray[np.uint64]:
    """Keys of the rows: as many 64-bit words as the components need, the most significant first."""
    bits = np.array([part.limit.bit_length() for part in parts], np.uint64)
    words = np.zeros(len(parts), np.int64)
    used = 0
    for place in range(len(parts)):
        used += int(bits[place])
        if used > 64:
            words[place:] += 1
            used = int(bits[place])
    keys = np.zeros((int(words.max(initial=0)) + 1, len(codes)), np.uint64)
    columns = np.array([part.column for part in parts], np.int64)
    shifts = np.array([part.shift for part in parts], np.uint64)
    limits = np.array([part.limit for part in parts], np.uint64)
    pack_keys(codes, positions, columns, shifts, limits, bits, words, keys)
    return keys


def order(encoding: Encoding, k: int, checkpoint: Checkpoint) -> NDArray[np.int64]:
    """Put near neighbours close together.

    Parameters
    ----------
    encoding : Encoding
    k : int
        Least size of a class.
    checkpoint : function
        See ``parallel.run``.

    Returns
    -------
    int64, shape (n,)
        A permutation of the rows; rows with equal keys stand in table order.
    """
    if encoding.rows < 2:
        return np.arange(encoding.rows)
    curve = Curve(encoding)
    parts = cheapest_first(components(encoding, curve, k))
    stretches = [slice(first, first + STRETCH) for first in range(0, encoding.rows, STRETCH)]
    keys: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)] * len(stretches)

    def fill(number: int, pause: Callable[[], None]) -> None:
        codes = encoding.codes[stretches[number]]
        positions = curve.positions(codes)
        pause()
        keys[number] = sort_keys(codes, positions, parts)

    run([partial(fill, number) for number in range(len(stretches))], part(checkpoint, 0.0, 0.5))
    return _sorted(np.concatenate(keys, axis=1), part(checkpoint, 0.5, 1.0))


def _sorted(words: NDArray[np.uint64], checkpoint: Checkpoint) -> NDArray[np.int64]:
    """The order that sorts keys of several words, equal ones as they stand: in pieces, each sorted by itself."""
    first = words[0]
    pieces = min(len(first) // STRETCH, 200) + 1
    sample = np.sort(first[:: max(1, len(first) // SAMPLE)])
    borders = np.unique(sample[np.arange(1, pieces) * len(sample) // pieces])
    piece = np.searchsorted(borders, first, side="right").astype(np.uint8)
    rows = np.argsort(piece, kind="stable")
    stops = np.cumsum(np.bincount(piece, minlength=len(borders) + 1))

    def sort(number: int, pause: Callable[[], None]) -> None:
        pause()
        place = slice(stops[number - 1] if number else 0, stops[number])
        rows[place] = rows[place][sort_rows(list(words[:, rows[place]]))[0]]

    run([partial(sort, number) for number in range(len(stops))], checkpoint)
    return rows


def alike(encoding: Encoding, low: NDArray[np.unsignedinteger], high: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Class numbers in an order where neighbours are alike: that of one row for each.

    It follows from the boxes alone. The row's numbers are the middles of the box. NULL stands for several codes
    of a level column, because only classes that have one code alone stay far from rows with another.
    """
    if len(low) == 0:
        return np.empty(0, np.int64)
    several = (encoding.caps == 1) & (low != high)
    middles = np.where(several, np.iinfo(low.dtype).max, low + (high - low) // 2)
    return order(replace(encoding, codes=middles), 1, lambda _: None)

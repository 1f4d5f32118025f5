"""The bulk of a numeric column: where its values are, without those far outside the rest, and how crowded they are.

Idea: start with the shortest interval that holds three quarters of the different values, and let it grow to the next
value as long as this is at most ``FAR`` times its width away. What it never reaches is far: dates such as 9999-12-31,
incomes of 999999999. How many rows have such a value does not matter. Where many different values crowd in a small
part of the bulk, as incomes do, codes between its ends let the search follow their ranks too. Cost: a sort of a
sample, and of what lies outside its interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.microdata import FAR, NumericAttribute

SAMPLE = 1 << 15
"""Rows that the first interval is found from: evenly spaced, so they depend on the table alone."""

FEWEST = 5
"""Different values without which nothing can be said to be far from the rest."""


CROWDED = 1 / 200
"""A quarter of the different values in so small a share of the bulk cannot be told apart by equal steps."""

PARTS = 64
"""Parts of a crowded bulk with equally many different values."""


def find_bulk(attribute: NumericAttribute) -> tuple[int, ...]:
    """Codes of the bulk of the values inside the domain; where nothing in it is far, its ends are the domain's."""
    known = np.flatnonzero(~attribute.missing)
    sample = _different(attribute, known[:: max(1, len(known) // SAMPLE)])
    if len(sample) < FEWEST:
        return attribute.domain
    points = attribute.points(sample)
    count = len(sample) - len(sample) // 4 if len(sample) >= 8 else len(sample) - 1
    start = int(np.argmin(points[count - 1 :] - points[: len(sample) - count + 1]))
    inside = sample[start : start + count]
    outside = known[(attribute.low[known] < inside[0]) | (attribute.high[known] > inside[-1])]
    codes = np.union1d(inside, _different(attribute, outside))
    first, last = _grown(attribute.points(codes), *np.searchsorted(codes, inside[[0, -1]]).tolist())
    nothing_far = first == 0 and last == len(codes) - 1
    ends = attribute.domain if nothing_far else (int(codes[first]), int(codes[last]))
    return _with_crowds(attribute, ends, codes[first : last + 1])


def _with_crowds(attribute: NumericAttribute, ends: tuple[int, int], codes: NDArray[np.int64]) -> tuple[int, ...]:
    """The ends of a bulk and, where its values crowd, codes between them that part the values evenly."""
    points = attribute.points(codes)
    quarter = len(points) // 4
    width = np.ptp(attribute.points(np.array(ends)))
    if len(points) < 4 * PARTS or np.min(points[quarter:] - points[:-quarter]) > CROWDED * width:
        return ends
    between = codes[np.linspace(0, len(codes) - 1, PARTS + 1).astype(np.int64)[1:-1]]
    return (ends[0], *between.tolist(), ends[1])


def _different(attribute: NumericAttribute, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different codes that some rows have inside the domain, rising."""
    first, last = attribute.domain
    codes = np.union1d(attribute.low[rows], attribute.high[rows])
    return codes[(codes >= first) & (codes <= last)]


def _grown(points: NDArray[np.float64], first: int, last: int) -> tuple[int, int]:
    """Places of the first and the last of rising points that an interval between two of them grows to."""
    gaps = np.diff(points)
    while True:
        near = gaps <= FAR * (points[last] - points[first])
        up = last + int(np.argmin(np.append(near[last:], False)))
        down = first - int(np.argmin(np.append(near[:first][::-1], False)))
        if (down, up) == (first, last):
            return first, last
        first, last = down, up

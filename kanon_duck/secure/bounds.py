"""What must stay possible for everybody: rows, and values of each attribute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Bounds:
    """The bounds of a secure series.

    A *value* is the whole tuple of sensitive and kept values of a row, as a code from 0. Where k alone is set, and
    nothing is kept, there is one code and no attribute.

    Attributes
    ----------
    k : int
        Rows that must stay possible for everybody.
    attribute_values : int64, shape (tuples, attributes)
        What each tuple says of each attribute that l or p speaks of: its value, or its strong value, from 0.
    required : int64, shape (attributes,)
        Different ones that must stay possible for everybody: l or p.
    """

    k: int
    attribute_values: Integers
    required: Integers

    @property
    def tuples(self) -> int:
        """Number of tuples."""
        return len(self.attribute_values)

    def diverse(self, group: Integers, value: Integers, groups: int) -> NDArray[np.bool_]:
        """Whether the values of each group are diverse enough; pairs of group and value may repeat.

        Parameters
        ----------
        group, value : int64, shape (pairs,)
        groups : int
        """
        enough = np.ones(groups, bool)
        for attribute, required in enumerate(self.required):
            own = self.attribute_values[value, attribute]
            most = int(self.attribute_values[:, attribute].max(initial=0)) + 1
            pairs = np.unique(group * most + own)
            enough &= np.bincount(pairs // most, minlength=groups) >= required
        return enough

    def traits(self, value: Integers) -> Integers:
        """What values say of each attribute, numbered from 0 over all attributes; shape (values, attributes)."""
        of_values = np.empty((len(value), len(self.required)), np.int64)
        first = 0
        for attribute in range(len(self.required)):
            numbers, own = np.unique(self.attribute_values[value, attribute], return_inverse=True)
            of_values[:, attribute] = first + own
            first += len(numbers)
        return of_values

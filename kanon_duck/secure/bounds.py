"""What must stay possible for everybody: rows, and values of each attribute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_duck.kernels.secure_values import find_diverse

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

    def diverse(self, stops: Integers, values: Integers) -> NDArray[np.bool_]:
        """Whether lists of values are diverse enough.

        Parameters
        ----------
        stops : int64, shape (lists,)
            Where the values of each end.
        values : int64
        """
        enough = np.empty(len(stops), bool)
        find_diverse(stops, values, self.attribute_values, self.required, enough)
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

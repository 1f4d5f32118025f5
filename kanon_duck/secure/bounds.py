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
    derived : tuple of Unions
        Of the views derived from the series, what must stay possible there for everybody.
    """

    k: int
    attribute_values: Integers
    required: Integers
    derived: tuple[Unions, ...] = ()

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


@dataclass(frozen=True)
class Unions:
    """The classes of a view that is derived from a series: each is a *union* of cohorts, shown together or not at all.

    All cohorts of a union are first shown there in the same release. What parts from one of them stays in its union,
    and so does company.

    Attributes
    ----------
    union : int64, shape (slots,)
        The union that each slot belongs to, or NONE. There may be more slots: see `secure.unions.union_of_slots`.
    formed : int64, shape (unions,)
        Release that each was first shown in.
    bounds : Bounds
        What must stay possible for everybody in the view.
    """

    union: Integers
    formed: Integers
    bounds: Bounds

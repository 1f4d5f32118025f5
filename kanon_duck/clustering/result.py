"""The result of a clustering method that returns more than the class of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Clustering(NamedTuple):
    """Classes, and how they are to be shown.

    Attributes
    ----------
    labels : int64, shape (n,)
        Class of each row, -1 for one that is left out.
    levels : sequence of int, or None
        The level at which all rows show each quasi-identifier (see `kanon_duck.encoding.levels`); None where
        every class shows the least general tuple that covers it.
    warnings : sequence of str
        What the owner should know of how they were made.
    """

    labels: NDArray[np.int64]
    levels: Sequence[int] | None = None
    warnings: Sequence[str] = ()

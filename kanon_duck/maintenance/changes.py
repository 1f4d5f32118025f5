"""What maintenance did to a partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_duck.kernels.box import NO_CLASS


@dataclass(frozen=True)
class Changes:
    """Difference of two partitions of the same rows.

    Attributes
    ----------
    touched : int64, shape (classes,)
        Rising numbers of the classes of either that do not have the same rows in both.
    moved : int
        Rows that are in a class in both, and not in the same.
    """

    touched: NDArray[np.int64]
    moved: int


def changes(before: NDArray[np.int64], after: NDArray[np.int64]) -> Changes:
    """Compare the labels of all rows before and after.

    Parameters
    ----------
    before, after : int64, shape (n,)
        Class of each row, -1 for one in none.

    Returns
    -------
    Changes
    """
    changed = before != after
    old, new = before[changed], after[changed]
    touched = np.union1d(old, new)
    moved = int(np.count_nonzero((old != NO_CLASS) & (new != NO_CLASS)))
    return Changes(touched[touched != NO_CLASS], moved)

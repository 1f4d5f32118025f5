"""Compares two partitions of the same rows: which classes changed, and who came, went or moved."""

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
    changed = np.flatnonzero(before != after)
    old, new = before[changed], after[changed]
    moved = int(np.count_nonzero((old != NO_CLASS) & (new != NO_CLASS)))
    return Changes(classes_in(old, new), moved)


def classes_in(*labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rising numbers of the classes that some rows are in."""
    is_there = np.zeros(max(int(each.max(initial=NO_CLASS)) for each in labels) + 2, bool)
    for each in labels:
        is_there[each] = True  # NO_CLASS takes the last element, which belongs to no class
    return np.flatnonzero(is_there[:-1])


def rows_of(classes: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rising numbers of the rows that are in one of some classes."""
    is_meant = np.zeros(max(int(labels.max(initial=NO_CLASS)), int(classes.max(initial=NO_CLASS))) + 2, bool)
    is_meant[classes] = True  # NO_CLASS takes the last element, which belongs to no class
    return np.flatnonzero(is_meant[labels])


def people(before: NDArray[np.int64], after: NDArray[np.int64], changed: NDArray[np.bool_]) -> dict[str, int]:
    """How many people a release has that the one before had not, has other values of, has no more, and has moved.

    Parameters
    ----------
    before, after : int64, shape (n,)
        Class of each row, -1 for one in none.
    changed : bool, shape (n,)
        Whether its values are others.
    """
    was, is_now = before != NO_CLASS, after != NO_CLASS
    return {
        "inserted": int(np.count_nonzero(~was & is_now)),
        "updated": int(np.count_nonzero(was & is_now & changed)),
        "deleted": int(np.count_nonzero(was & ~is_now)),
        "moved": int(np.count_nonzero(was & is_now & ~changed & (before != after))),
    }


def keep_numbers(before: NDArray[np.int64], after: NDArray[np.int64], unused: int) -> NDArray[np.int64]:
    """Number the classes of ``after`` as in ``before`` as far as they go on, the others from ``unused`` on.

    A class goes on from the one that gave it most rows, if that gave no other class more.

    Parameters
    ----------
    before, after : int64, shape (n,)
        Class of each row, -1 for one in none.
    unused : int
        From here on no number has been used.
    """
    classes = int(after.max(initial=NO_CLASS)) + 1
    both = (before != NO_CLASS) & (after != NO_CLASS)
    pairs, shared = np.unique(before[both] * classes + after[both], return_counts=True)
    old, new = np.divmod(pairs, max(classes, 1))
    goes_on = _first_largest(shared, old) & _first_largest(shared, new)
    numbers = np.full(classes + 1, NO_CLASS)
    fresh = np.ones(classes, bool)
    fresh[new[goes_on]] = False
    numbers[new[goes_on]] = old[goes_on]
    numbers[:-1][fresh] = unused + np.arange(np.count_nonzero(fresh))
    return numbers[after]  # NO_CLASS takes the last element, which belongs to no class


def _first_largest(values: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each value is the largest of its group, the first among equals."""
    order = np.lexsort((-values, groups))
    largest = np.zeros(len(values), bool)
    largest[order[np.unique(groups[order], return_index=True)[1]]] = True
    return largest

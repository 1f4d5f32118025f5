"""Measures what a partition loses: information loss, discernibility and average class size.

The share that a cell loses is what others call the normalized certainty penalty (NCP; Xu et al., KDD 2006). Numeric
shares are the same; for categories NCP counts the leaves below the common ancestor, where here its height counts.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from kanon_duck.kernels.box import fill_boxes
from kanon_duck.runtime.parallel import each


def class_boxes(codes: NDArray[Any], labels: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Box and size of each class: its generalization information, Definition 3 of Truta & Campan 2007.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
        Encoded rows.
    labels : int64, shape (n,)
        Class of each row, 0 to m - 1; -1 for a row in no class.

    Returns
    -------
    low, high : dtype of ``codes``, shape (m, width)
        Smallest and largest code of the class per column; the largest there is and 0 where it has no rows.
    sizes : int64, shape (m,)
        Rows of the class.
    """
    classes = int(labels.max(initial=-1)) + 1
    low = np.full((classes, codes.shape[1]), np.iinfo(codes.dtype).max, codes.dtype)
    high = np.zeros_like(low)
    sizes = np.zeros(classes, np.int64)
    borders = np.linspace(0, classes, get_num_threads() + 1, dtype=np.int64)

    def fill(some: slice) -> None:
        fill_boxes(codes, labels, some.start, low[some], high[some], sizes[some])

    each(fill, [slice(*pair) for pair in pairwise(borders)])
    return low, high, sizes


def class_intervals(
    low: NDArray[np.int64], high: NDArray[np.int64], labels: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Least low and greatest high of each class.

    Parameters
    ----------
    low, high : int64, shape (n,)
        An interval for each row.
    labels : int64, shape (n,)
        Class of each row, 0 to ``classes - 1``, each in use; -1 for a row in no class.
    classes : int

    Returns
    -------
    first, last : int64, shape (classes,)
    """
    first = np.full(classes + 1, np.iinfo(np.int64).max)
    last = np.full(classes + 1, np.iinfo(np.int64).min)
    np.minimum.at(first, labels, low)  # rows in no class count for the last place
    np.maximum.at(last, labels, high)
    return first[:-1], last[:-1]


def information_loss(sizes: NDArray[np.int64], shares: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Information loss of a partition, Definitions 4 and 5 of Truta & Campan 2007.

    Parameters
    ----------
    sizes : int64, shape (m,)
        Rows of each class.
    shares : float64, shape (m, number of quasi-identifiers)
        Share in [0, 1] that each class loses of each quasi-identifier: range of the class over the range of
        the domain, or height of the lowest common ancestor over the height of the hierarchy.

    Returns
    -------
    per_attribute : float64, shape (number of quasi-identifiers,)
        Rows times share, summed over the classes; between 0 and the number of rows.
    total : float
        Sum over the quasi-identifiers.
    """
    losses = np.ascontiguousarray(shares.T) * sizes
    per_attribute = losses.sum(axis=1)  # contiguous, hence summed pairwise: exact to the last digits
    return per_attribute, math.fsum(per_attribute)


def discernibility(sizes: NDArray[np.int64]) -> int:
    """Discernibility metric DM: each row counts the rows it cannot be told from, itself included.

    Parameters
    ----------
    sizes : int64, shape (m,)
        Rows of each class, as a reader sees them (equal classes merged).

    Returns
    -------
    int
        Sum of the squared sizes (Truta, Campan & Meyer 2007, section 5).
    """
    return int(np.square(sizes).sum())


def average_class_size(rows: int, classes: int, k: int) -> float:
    """Average class size metric AVG: rows / classes / k; 1 is the best a k-anonymous release can reach.

    Parameters
    ----------
    rows, classes : int
        Rows released and classes as a reader sees them, at least 1.
    k : int
        The k of k-anonymity.

    Returns
    -------
    float
        See Truta, Campan & Meyer 2007, section 5.
    """
    return rows / classes / k

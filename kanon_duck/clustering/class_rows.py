"""Turns the class of each row into lists of rows by class, which kernels that change classes work on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_type(n: int) -> Any:
    """The dtype of row numbers in the lists of rows that kernels take: int32, or int64 where that cannot count them."""
    return np.int32 if n < 2**31 else np.int64


def class_members(labels: NDArray[Any], classes: int, room: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Turn labels into lists of rows.

    Parameters
    ----------
    labels : int, shape (n,)
        Class of each row, in [0, classes).
    classes : int
        Number of classes; those without rows are free for use.
    room : int
        Rows that each class must have room for; more where a class is larger.

    Returns
    -------
    members : shape (classes, room)
        Rows of each class, rising; see `row_type`.
    sizes : int64, shape (classes,)
    positions : int64, shape (n,)
        Where each row stands in its class.
    """
    sizes = np.bincount(labels, minlength=classes)
    order = np.argsort(labels, kind="stable")
    positions = np.empty(len(labels), np.int64)
    positions[order] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = np.zeros((classes, max(room, int(sizes.max(initial=0)))), row_type(len(labels)))
    members[labels, positions] = np.arange(len(labels))
    return members, sizes, positions


def without_gaps(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The classes in the same order, numbered from 0; -1 stays."""
    numbers, dense = np.unique(labels, return_inverse=True)
    return dense.astype(np.int64) - (1 if numbers[0] < 0 else 0)

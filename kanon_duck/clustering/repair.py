"""Unites classes that do not satisfy the privacy models with others until all classes do.

Idea: all models hold for a union of classes that satisfy them, so uniting is always a way out. Classes stand in an
order in which like are near like; one that does not satisfy the demand is united with the one near it for which that
costs least, of those with which it satisfies the demand, if there are any. Cost: O(reach) boxes, and some unions
looked at, for each such class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.class_rows import row_type
from kanon_duck.clustering.order import alike
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.loss import class_boxes
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.repair import NOBODY, find_unsatisfied, unite_unsatisfied
from kanon_duck.privacy.requirement import Demand
from kanon_duck.runtime.parallel import Checkpoint

VISITS = 1 << 20
"""Rows looked at between two looks at whether the work is still wanted."""


def unsatisfied_classes(labels: NDArray[np.int64], demanded: Demand) -> NDArray[np.int64]:
    """Numbers of the classes that do not satisfy what is demanded, rising.

    Parameters
    ----------
    labels : int64, shape (n,)
        Class of each row, -1 for one in none.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    """
    numbers, members, starts = _lists(labels)
    return numbers[fall_short(members, starts, demanded)]


def fall_short(members: NDArray[np.signedinteger], starts: NDArray[np.int64], demanded: Demand) -> NDArray[np.bool_]:
    """Whether each class, the rows ``members[starts[c]:starts[c + 1]]``, does not satisfy what is demanded."""
    short = np.zeros(len(starts) - 1, bool)
    find_unsatisfied(members[None, :], starts, demanded, short)
    return short


def repair(
    encoding: Encoding, labels: NDArray[np.int64], demanded: Demand, checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Unite classes until every one satisfies what is demanded.

    Guarantee: every class of the result satisfies it; where not even all rows together do, no row is in a class.

    Parameters
    ----------
    encoding : Encoding
    labels : int64, shape (n,)
        Class of each row, -1 for one in none.
    demanded : int or Requirement
        See `kanon_duck.privacy.requirement`.
    checkpoint : function
        What it raises stops the work.

    Returns
    -------
    int64, shape (n,)
        Labels with the numbers that the classes had.
    """
    if isinstance(demanded, int) and not _any_small(labels, demanded):
        return labels
    numbers, members, starts = _lists(labels)
    m = len(numbers)
    unsatisfied = fall_short(members, starts, demanded)
    if not unsatisfied.any():
        return labels
    dense = np.full(len(labels), NO_CLASS)
    dense[members] = np.repeat(np.arange(m), np.diff(starts))
    low, high, sizes = class_boxes(encoding.codes, dense)
    sequence = alike(encoding, low, high)
    before, after = np.full(m, NOBODY), np.full(m, NOBODY)
    before[sequence[1:]], after[sequence[:-1]] = sequence[:-1], sequence[1:]
    following = np.full(len(labels), NO_CLASS)
    following[members[:-1]] = members[1:]
    last = members[starts[1:] - 1]
    following[last] = NO_CLASS
    hosts = np.arange(m)
    first, scratch, position = members[starts[:-1]], np.empty((1, len(labels)), members.dtype), 0
    while position < m:
        position = unite_unsatisfied(
            low, high, sizes, first, last, following, before, after, encoding.caps, encoding.weights, demanded,
            unsatisfied, hosts, scratch, position, VISITS,
        )  # fmt: skip
        checkpoint(position / m)
    while np.any(hosts != hosts[hosts]):
        hosts = hosts[hosts]
    repaired = np.full(len(labels), NO_CLASS)
    repaired[members] = numbers[hosts[dense[members]]]
    if unsatisfied.any():
        repaired[:] = NO_CLASS
    return repaired


def _any_small(labels: NDArray[np.int64], size: int) -> bool:
    """Whether a class has fewer rows."""
    sizes = np.bincount(labels[labels != NO_CLASS])
    return bool(np.any((sizes > 0) & (sizes < size)))


def _lists(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.signedinteger], NDArray[np.int64]]:
    """Numbers of the classes, rising; their rows, class by class; and where each class begins among these."""
    members = np.argsort(labels, kind="stable").astype(row_type(len(labels)), copy=False)
    members = members[np.searchsorted(labels[members], 0) :]
    numbers, starts = np.unique(labels[members], return_index=True)
    return numbers, members, np.append(starts, len(members))

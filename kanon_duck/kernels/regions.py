"""Finds which released classes may hold which people, by their quasi-identifiers."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def covering_classes(people, classes, starts, widths, covers):
    """Classes whose cells cover the values of each person.

    Parameters
    ----------
    people : int64, shape (n, attributes)
        Code of each person's value of each attribute.
    classes : int64, shape (classes, attributes)
        Code of each class's cell.
    starts, widths : int64, shape (attributes,)
        Where the table of an attribute begins in ``covers``, and how many cells the attribute has.
    covers : bool
        For each attribute, value and cell, whether the cell covers the value.

    Returns
    -------
    stops, found : int64
        The classes of each person, rising.
    """
    stops = np.empty(len(people), np.int64)
    found = np.empty(max(len(people), 16), np.int64)
    count = 0
    for person in range(len(people)):
        for number in range(len(classes)):
            covered = True
            for a in range(people.shape[1]):
                if not covers[starts[a] + people[person, a] * widths[a] + classes[number, a]]:
                    covered = False
                    break
            if covered:
                if count == len(found):
                    longer = np.empty(2 * count, np.int64)
                    longer[:count] = found
                    found = longer
                found[count] = number
                count += 1
        stops[person] = count
    return stops, found[:count].copy()

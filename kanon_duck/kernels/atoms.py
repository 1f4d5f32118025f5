"""Tells people apart by the sets they are in."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def split_by_sets(stops, people, atoms):
    """Give people the same number if and only if they are in the same sets.

    Cost: linear in the members of all sets.

    Parameters
    ----------
    stops, people : int64
        Members of each set, nobody twice in one: those of set s end at ``stops[s]``.
    atoms : int64, shape (n,)
        All 0; gets the numbers, which have gaps.
    """
    last_set = np.full(len(people) + 1, -1)
    successor = np.zeros(len(people) + 1, np.int64)
    unused, at = 1, 0
    for number in range(len(stops)):
        while at < stops[number]:
            atom = atoms[people[at]]
            if last_set[atom] != number:
                last_set[atom] = number
                successor[atom] = unused
                unused += 1
            atoms[people[at]] = successor[atom]
            at += 1


@njit(nogil=True, cache=True)
def connect(left, right, roots):
    """Give everything that edges connect the same root.

    Parameters
    ----------
    left, right : int64, shape (edges,)
        Ends of the edges.
    roots : int64, shape (nodes,)
        The node itself for each node; gets the least node that it is connected with.
    """
    for edge in range(len(left)):
        one, other = left[edge], right[edge]
        while roots[one] != one:
            roots[one] = roots[roots[one]]
            one = roots[one]
        while roots[other] != other:
            roots[other] = roots[roots[other]]
            other = roots[other]
        roots[max(one, other)] = min(one, other)
    for node in range(len(roots)):
        roots[node] = roots[roots[node]]

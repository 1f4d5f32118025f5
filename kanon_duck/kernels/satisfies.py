"""The predicate that keeps every class private: the one place where a search asks."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def satisfies(members, number, first, stop, k):
    """Whether the rows ``members[number, first:stop]`` may be a class: they are at least ``k``."""
    return stop - first >= k

"""The predicate that keeps every class private: the one place where a search asks."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def satisfies(members, number, count, k):
    """Whether the first ``count`` rows of ``members[number]`` may be a class: they are at least ``k``."""
    return count >= k

"""Kernels over arrays, compiled by numba; the first use compiles them, later processes read them from a cache."""

from __future__ import annotations

import tempfile

from numba import config, njit


def _trial() -> None:
    """Nothing: it shows whether numba finds a folder to keep compiled kernels in."""


try:
    njit(cache=True)(_trial)
except RuntimeError:  # neither this folder nor the user's can be written: compile anew in every process
    config.CACHE_DIR = tempfile.mkdtemp(prefix="kanon_duck_")

INNER = {"nogil": True, "cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""How kernels are compiled that only other kernels call."""

"""Compiled loops over arrays (numba): the first use compiles them, later processes read them from a cache."""

from __future__ import annotations

import gc

import numpy as np
from numba import njit
from numba.core import event

from kanon_duck.kernels.cache import find_kept_kernels

find_kept_kernels()  # before the first kernel is declared


def _nothing() -> None:
    """Nothing."""


wake = njit(cache=True)(_nothing)
"""A process's first call of a kernel takes numba a third of a second, which may pass beside other work."""

LANES = 16
"""Rows are padded to a multiple of this many columns, so that inner loops have a constant length."""

INNER = {"nogil": True, "cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""How kernels are compiled that only other kernels call."""

ZERO = np.int64(0)
"""What such kernels are passed for 0: numba would compile them once more for the literal."""


class _CollectorAtRest(event.Listener):
    """Keeps the garbage collector from looking through a compiler's many objects while they are in use.

    Compilations nest, but numba lets one thread at a time compile.
    """

    depth = 0
    was_enabled = False

    def on_start(self, _event: event.Event) -> None:
        if self.depth == 0:
            self.was_enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, _event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and self.was_enabled:
            gc.enable()


event.register("numba:compile", _CollectorAtRest())

"""How kernels are compiled."""

from __future__ import annotations

import gc

import pytest
from numba import njit
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

import kanon_duck.kernels  # noqa: F401


def test_the_garbage_collector_rests_while_a_kernel_compiles_and_goes_on_afterwards():
    seen = []

    @intrinsic
    def look(_typing, number):
        seen.append(gc.isenabled())
        if isinstance(number, types.Float):
            return None  # no such function
        return number(number), lambda _context, _builder, _signature, arguments: arguments[0]

    inner = njit(lambda number: look(number))
    outer = njit(lambda number: inner(number) + look(number))
    assert outer(1) == 2
    assert gc.isenabled()
    with pytest.raises(TypingError):
        outer(1.0)
    assert gc.isenabled()
    assert seen
    assert not any(seen)

    gc.disable()
    try:
        assert njit(lambda number: look(number))(2) == 2
        assert not gc.isenabled(), "who switched it off switches it on"
    finally:
        gc.enable()

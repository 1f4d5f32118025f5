"""Splits of cohorts."""

from __future__ import annotations

from kanon_duck.encoding import Encoding
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.state import State


def split_cohorts(state: State, encoding: Encoding, bounds: Bounds, hides: bool) -> State:
    return state

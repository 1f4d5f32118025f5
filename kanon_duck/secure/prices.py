"""What the search weighs against the loss: all in units of what a row of the series loses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding

WAITING_PRICE, RISING = 2.5, 1.15
"""What it costs that one waits, and what that is multiplied with for each release waited."""

FORCED_PRICE = 75.0
"""What it costs that one waits whose patience is at its end."""

PLACED_PRICE = 16.0
"""What it costs in the first release to leave somebody out who had a class."""

COUNTERFEIT_PRICE, HIDDEN_PRICE = 1.5, 5.0
"""What a counterfeit costs, and a person of a class that is not shown."""

MANY_COUNTERFEITS = 0.05
"""Share of the people from which on counterfeits get dearer."""

CROWDING_PRICE = 0.02
"""What people of a new group cost for each of them, and company for each of a class, where one who leaves hides all."""

DOOR_PRICE = 1.5
"""What it costs to fill the last empty slot beside which company can come."""

MOVE_RISE = 5.0
"""Rise of a class's loss from which on somebody whose quasi-identifiers changed leaves it for another."""

LEAST_GAIN = 0.15
"""What a split must lower the loss by."""


def cost(
    encoding: Encoding, low: NDArray[np.unsignedinteger[Any]], high: NDArray[np.unsignedinteger[Any]]
) -> NDArray[np.float64]:
    """Cost per row of boxes."""
    return np.minimum(high - low, encoding.caps) @ encoding.weights.astype(np.float64)


def mean_loss(
    encoding: Encoding,
    low: NDArray[np.unsignedinteger[Any]],
    high: NDArray[np.unsignedinteger[Any]],
    people: NDArray[np.int64],
) -> float:
    """Loss per row of classes with boxes of shape (classes, width) and numbers of people of shape (classes,)."""
    some = people > 0
    return float(cost(encoding, low[some], high[some]) @ people[some]) / max(int(people.sum()), 1)


def in_units(encoding: Encoding, unit: float) -> Encoding:
    """The encoding with weights that count loss in units, so that prices suit any table; unchanged if that is 0."""
    return replace(encoding, weights=(encoding.weights / unit).astype(np.float32)) if unit > 0 else encoding

"""Splits of cohorts in two sound parts.

Guarantee: a split is made only if everybody keeps a certificate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.secure_split import GO, WITH_ITS_UNIT, find_parts
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import failures, former_cohort, offer
from kanon_duck.secure.prices import HIDDEN_PRICE, LEAST_GAIN
from kanon_duck.secure.state import NONE, SeriesState, joined, own_copy, with_cohorts

Integers = NDArray[np.int64]


def split_cohorts(
    state: SeriesState, encoding: Encoding, bounds: Bounds, hides: bool, changed: NDArray[np.bool_]
) -> SeriesState:
    """Split the changed cohorts whose loss falls by it.

    Parameters
    ----------
    hides : bool
        Whether a cohort with an empty slot is not shown.
    changed : bool, shape (cohorts,)
        Which to look at.
    """
    cohort, slot = best_parts(state, encoding, bounds, state.hiding(hides), changed)
    while len(cohort):
        apart = _apart(state, encoding, cohort, slot)
        blamed = np.zeros(apart.cohorts, bool)
        blamed[failures(apart, bounds).cohorts] = True
        if not blamed.any():
            return apart
        wrong = blamed[cohort] | blamed[state.cohorts :]
        cohort = cohort[~wrong] if wrong.any() else cohort[:0]
        slot = slot[np.isin(state.cohort[slot], cohort)]
    return state


def best_parts(
    state: SeriesState, encoding: Encoding, bounds: Bounds, hiding: NDArray[np.bool_], changed: NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """The cohorts that had better be split, and the slots that part from them.

    Each part has k static base slots with diverse enough values, among them the company that parts from its witness;
    that may part only where the witness is an original slot, and its part offers the value. People who left may be in a
    part that is not shown.
    """
    static, gone, base, parted = state.static(), state.gone(), state.base(), state.parted()
    original = static & (state.witness == NONE)
    number_of_slots = np.bincount(state.cohort[static & ~gone], minlength=state.cohorts)
    chosen = changed & state.living() & (number_of_slots >= 2 * bounds.k)
    slots = np.flatnonzero(chosen[state.cohort])
    slots = slots[np.argsort(state.cohort[slots], kind="stable")]
    n, cohort = len(slots), state.cohort[slots]
    numbers, begins = np.unique(cohort, return_index=True)
    stops = np.append(begins[1:], n)[: len(numbers)]
    place = np.zeros(state.slots, np.int64)
    place[slots] = np.arange(n)
    may_part = ~base & ~gone & original[state.witness]
    units = np.arange(state.slots)
    for goes_with, which in ((state.witness, ~base & ~may_part), (state.beside, gone)):
        with_it = slots[which[slots]]
        units = joined(units, with_it, goes_with[with_it])
    witness = np.full(n, WITH_ITS_UNIT)
    parts = may_part[slots]
    witness[parts] = place[state.witness[slots[parts]]]
    offered = offer(state, bounds, original)
    # rows that a part has in common with the cohort that the present one parted from
    elsewhere = np.full(n, n)
    parted_from = former_cohort(state)[cohort]
    has_parted = parted_from != NONE
    elsewhere[has_parted] = offered.count(parted_from[has_parted], state.value[slots[has_parted]])
    demands = np.flatnonzero(parted & chosen[state.cohort[state.witness]])
    demands = demands[np.argsort(state.cohort[state.witness[demands]], kind="stable")]
    demand_stops = np.searchsorted(state.cohort[state.witness[demands]], numbers, side="right")
    side, settled, best_side = np.zeros(n, np.int8), np.zeros(n, np.int8), np.zeros(n, np.int8)
    gains = np.zeros(len(numbers))
    find_parts(
        encoding.codes, encoding.caps, encoding.weights, begins, stops, state.holder[slots], state.value[slots],
        (base & static)[slots], static[slots], original[slots], elsewhere, state.born[slots], place[units[slots]],
        witness, hiding[slots], demand_stops, place[state.witness[demands]], state.value[demands], bounds.k,
        bounds.attribute_values, bounds.required, HIDDEN_PRICE, LEAST_GAIN, side, settled, best_side, np.zeros(n),
        np.zeros(n, np.int64), gains,
    )  # fmt: skip
    parting = numbers[gains > 0]
    return parting, slots[(best_side == GO) & np.isin(cohort, parting)]


def _apart(state: SeriesState, encoding: Encoding, cohort: Integers, slot: Integers) -> SeriesState:
    """The state after slots have parted from their cohorts, each into one more."""
    number = np.full(state.cohorts, NONE)
    number[cohort] = state.cohorts + np.arange(len(cohort))
    state = own_copy(with_cohorts(state, len(cohort)))
    state.cohort[slot] = number[state.cohort[slot]]
    fit_boxes(state, encoding, np.concatenate([cohort, number[cohort]]))
    return state


def fit_boxes(state: SeriesState, encoding: Encoding, cohorts: Integers) -> None:
    """Make the boxes of cohorts tight around the people who hold their slots."""
    fitted = np.zeros(state.cohorts, bool)
    fitted[cohorts] = True
    state.low[fitted] = np.iinfo(state.low.dtype).max
    state.high[fitted] = 0
    held = np.flatnonzero(state.held() & fitted[state.cohort])
    codes = encoding.codes[state.holder[held]]
    np.minimum.at(state.low, state.cohort[held], codes)
    np.maximum.at(state.high, state.cohort[held], codes)


def changed_cohorts(state: SeriesState, moved: Integers) -> NDArray[np.bool_]:
    """Cohorts to which something has happened in the present release."""
    changed = np.zeros(state.cohorts, bool)
    new = (state.born == state.release) | (state.empty_until == state.release) | (state.empty_from == state.release)
    changed[state.cohort[new]] = True
    slot = state.slot[moved]
    changed[state.cohort[slot[slot != NONE]]] = True
    return changed

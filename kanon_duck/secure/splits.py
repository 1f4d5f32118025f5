"""Splits of cohorts: of base slots into two sound parts, and of company that parts as a daughter.

Guarantee: a split is made only if everybody keeps a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.secure_split import find_parts
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import Offer, failures, offer
from kanon_duck.secure.plan import joined
from kanon_duck.secure.prices import HIDDEN_PRICE, LEAST_GAIN
from kanon_duck.secure.state import NONE, SeriesState, own_copy, with_cohorts

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Slots that part from their cohorts.

    Attributes
    ----------
    cohort, origin : int64, shape (splits,)
        The cohort, and the origin of the one that parts.
    slot, number : int64
        Slots that part, and of which split.
    """

    cohort: Integers
    origin: Integers
    slot: Integers
    number: Integers


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
    hiding = state.hiding(hides)
    state = _carry_out(state, encoding, bounds, base_splits(state, encoding, bounds, hiding, changed))
    grown = np.append(changed, np.ones(state.cohorts - len(changed), bool))
    return _carry_out(state, encoding, bounds, daughters(state, encoding, bounds, hiding, grown))


def base_splits(
    state: SeriesState, encoding: Encoding, bounds: Bounds, hiding: NDArray[np.bool_], changed: NDArray[np.bool_]
) -> Split:
    """Parts of cohorts, each with k static base slots and diverse enough values.

    Company goes with its witness, and a slot that was taken away with its door too. People who left may be in a part
    that is not shown.
    """
    counts = (state.witness == NONE) & state.static()
    rows = np.bincount(state.cohort[counts], minlength=state.cohorts)
    chosen = changed & state.living() & (rows >= 2 * bounds.k)
    slots = _slots_of(state, chosen)
    units = np.arange(state.slots)
    for company_of in (state.witness, state.beside):
        with_it = slots[company_of[slots] != NONE]
        units = joined(units, with_it, company_of[with_it])
    unit = units[slots]
    cohorts = np.flatnonzero(chosen)
    side, gains = best_parts(
        state, encoding, bounds, hiding, slots, unit, counts[slots], np.ones(len(slots), bool), state.origin, True
    )
    parting = cohorts[gains > 0]
    goes = (side == 1) & np.isin(state.cohort[slots], parting)
    return Split(parting, state.origin[parting], slots[goes], np.searchsorted(parting, state.cohort[slots[goes]]))


def daughters(
    state: SeriesState, encoding: Encoding, bounds: Bounds, hiding: NDArray[np.bool_], changed: NDArray[np.bool_]
) -> Split:
    """Company that can part: with one witness that was empty from the first of their births to the last.

    Guarantee: the values of those who part are among those that the cohort offers.
    """
    offered = offer(state, bounds)
    company = (state.witness != NONE) & ~state.gone() & (changed & state.living())[state.cohort]
    slots = np.flatnonzero(company)
    witness = state.witness[slots]
    may = (state.born[slots] >= state.empty_from[witness]) & (state.born[slots] <= state.empty_until[witness])
    may &= exchangeable(state, offered, slots)
    slots, witness = slots[may], witness[may]
    static = state.static()
    numbers, group = np.unique(witness, return_inverse=True)
    enough = np.bincount(group, static[slots], minlength=len(numbers)) >= bounds.k
    # of each cohort the witness with most company
    most = np.argsort(np.bincount(group, minlength=len(numbers)), kind="stable")
    of_cohort = np.full(state.cohorts, NONE)
    of_cohort[state.cohort[numbers[most]]] = numbers[most]
    enough &= of_cohort[state.cohort[numbers]] == numbers
    stays = enough[group]
    slots, witness = slots[stays], witness[stays]
    chosen = np.zeros(state.cohorts, bool)
    chosen[state.cohort[slots]] = True
    movable = np.zeros(state.slots, bool)
    movable[slots] = True
    everything = _slots_of(state, chosen)
    cohorts = np.flatnonzero(chosen)
    side, gains = best_parts(
        state, encoding, bounds, hiding, everything, everything, movable[everything] & static[everything],
        movable[everything], of_cohort, False,
    )  # fmt: skip
    parting = cohorts[gains > 0]
    goes = (side == 1) & np.isin(state.cohort[everything], parting)
    return Split(
        parting, of_cohort[parting], everything[goes], np.searchsorted(parting, state.cohort[everything[goes]])
    )


def exchangeable(state: SeriesState, offered: Offer, slots: Integers) -> NDArray[np.bool_]:
    """Which company slots have a value that their cohort offers."""
    return offered.count(state.cohort[slots], state.value[slots]) > 0


def _slots_of(state: SeriesState, chosen: NDArray[np.bool_]) -> Integers:
    """Slots of some cohorts, by cohort."""
    slots = np.flatnonzero(chosen[state.cohort])
    return slots[np.argsort(state.cohort[slots], kind="stable")]


def best_parts(
    state: SeriesState,
    encoding: Encoding,
    bounds: Bounds,
    hiding: NDArray[np.bool_],
    slots: Integers,
    unit: Integers,
    counts: NDArray[np.bool_],
    movable: NDArray[np.bool_],
    origin: Integers,
    both: bool,
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """The best parts of some cohorts.

    Parameters
    ----------
    slots : int64, shape (n,)
        By cohort.
    unit : int64, shape (n,)
        The slot with which each goes.
    counts, movable : bool, shape (n,)
        Whether each counts for soundness, and may go.
    origin : int64, shape (cohorts,)
        Witness of the part that goes, or NONE.
    both : bool
        Whether what stays must be sound too.

    Returns
    -------
    side : int8, shape (n,)
        1 for slots that go.
    gains : float64, shape (cohorts among the slots,)
        What the loss falls by, 0 for cohorts that stay whole.
    """
    n, cohort = len(slots), state.cohort[slots]
    numbers, begins = np.unique(cohort, return_index=True)
    stops = np.append(begins[1:], n)[: len(numbers)]
    place = np.zeros(state.slots, np.int64)
    place[slots] = np.arange(n)
    # rows that what goes has in common with the cohort that it was in before
    most = np.full(n, n)
    parting = origin[cohort] != NONE
    most[parting] = offer(state, bounds).count(state.cohort[origin[cohort[parting]]], state.value[slots[parting]])
    side, best_side, gains = np.zeros(n, np.int8), np.zeros(n, np.int8), np.zeros(len(numbers))
    find_parts(
        encoding.codes, encoding.caps, encoding.weights, begins, stops, state.holder[slots], state.value[slots],
        counts, most, state.born[slots], place[unit], hiding[slots], movable, both, bounds.k, bounds.attribute_values,
        bounds.required, HIDDEN_PRICE, LEAST_GAIN, side, best_side, np.zeros(n), np.zeros(n, np.int64), gains,
    )  # fmt: skip
    return best_side, gains


def _carry_out(state: SeriesState, encoding: Encoding, bounds: Bounds, split: Split) -> SeriesState:
    """The state after those splits that leave nobody without a certificate."""
    keep = np.ones(len(split.cohort), bool)
    before = state
    while keep.any():
        state = _apart(before, encoding, split, keep)
        blamed = np.zeros(state.cohorts, bool)
        blamed[failures(state, bounds).cohorts] = True
        if not blamed.any():
            return state
        numbers = np.flatnonzero(keep)
        wrong = blamed[split.cohort[numbers]] | blamed[before.cohorts + np.arange(len(numbers))]
        keep[numbers[wrong] if wrong.any() else numbers] = False
    return before


def _apart(state: SeriesState, encoding: Encoding, split: Split, keep: NDArray[np.bool_]) -> SeriesState:
    """The state after some splits."""
    first = state.cohorts
    number = np.cumsum(keep) - 1
    state = own_copy(with_cohorts(state, int(keep.sum()), split.origin[keep]))
    goes = keep[split.number]
    slot = split.slot[goes]
    daughter = state.witness[slot] != NONE
    own_witness = np.zeros(state.slots, bool)
    own_witness[slot[~daughter]] = True
    # company that goes with its witness stays company
    stays_company = daughter & own_witness[np.maximum(state.witness[slot], 0)]
    state.cohort[slot] = first + number[split.number[goes]]
    state.witness[slot[daughter & ~stays_company]] = NONE
    fit_boxes(state, encoding, np.concatenate([split.cohort[keep], first + np.arange(int(keep.sum()))]))
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

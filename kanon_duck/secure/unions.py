"""A view derived from a series, whose classes are unions of the series' cohorts, as a series of its own.

Whoever sees the derived view alone sees each union as one cohort. The slots that it had when it was first shown there
are its original slots, born then. Those that came later are company beside the same witness as in the series, also
where the two have parted there. So everything that certificates need is read off the state.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.secure.bounds import Unions
from kanon_duck.secure.state import NONE, SeriesState

Integers = NDArray[np.int64]


def union_of_slots(state: SeriesState, unions: Unions) -> Integers:
    """The union of every slot of a state, also of those that came since the unions were last told.

    Guarantee: a slot that came later is in a union only as company of a slot that is in it.
    """
    known = len(unions.union)
    union = np.append(unions.union, np.full(state.slots - known, NONE))
    new = np.arange(known, state.slots)
    witness = state.witness[new]
    came = witness != NONE
    union[new[came]] = union[witness[came]]
    return union


def as_series(state: SeriesState, unions: Unions) -> SeriesState:
    """The series as the derived view shows it, every union that somebody is in: slots in no union are left out.

    The cohorts are the unions. They have no boxes, and nobody waits.

    Guarantee: a slot has parted from its witness nowhere: it is an original slot, or in the union of its witness.
    """
    union = union_of_slots(state, unions)
    slots = np.flatnonzero(union != NONE)
    number = np.full(state.slots + 1, NONE)  # the last: of no slot
    number[slots] = np.arange(len(slots))
    cohort = union[slots]
    formed = unions.formed[cohort]
    at_once = state.born[slots] <= formed
    witness = np.where(at_once, state.beside[slots], state.witness[slots])
    empty_from, empty_until = state.empty_from[slots], state.empty_until[slots]
    as_before = empty_until <= formed  # who holds it has done so since the union was first shown
    _, first, of_link = np.unique(state.link[slots], return_index=True, return_inverse=True)
    born, slot = np.maximum(state.born[slots], formed), number[state.slot]
    since = np.where(slot != NONE, np.maximum(state.since, np.append(born, NONE)[slot]), NONE)
    none = np.empty((len(unions.formed), 0), state.low.dtype)
    seen = replace(
        state,
        value=state.value[slots],
        cohort=cohort,
        witness=number[witness],
        born=born,
        holder=state.holder[slots],
        empty_from=np.where(as_before, NONE, np.maximum(empty_from, formed)),
        empty_until=np.where(as_before, NONE, empty_until),
        beside=number[state.beside[slots]],
        link=first[of_link].astype(np.int64),
        low=none,
        high=none,
        slot=slot,
        since=since,
        waiting=np.full(len(state.waiting), NONE),
    )
    return replace(seen, shown=seen.living())

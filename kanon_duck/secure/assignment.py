"""The assignments that certificates name: who has another value than the true one, so that every release is as it is.

For owners and tests. ``docs/secure-releases.md`` has the rules that they follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.secure.state import NONE, STILL, SeriesState


def assignment(state: SeriesState, person: int, value: int) -> dict[int, int]:
    """Who has another value than the true one in an assignment in which a person has a value; O(slots) for each call.

    Parameters
    ----------
    person : int
        One who is or has been in a release.
    value : int
        One of the values of the person's certificate.

    Returns
    -------
    dict
        Value by person; everybody else has the own value, and counterfeits have what is left over.
    """
    given: dict[int, int] = {}
    own = state.slot[person]
    if value == state.value[own]:
        return given
    static, gone, base, parted = state.static(), state.gone(), state.base(), state.parted()
    values = state.value.copy()

    def give(slot: int, new: int, since: int = NONE, until: int = STILL) -> None:
        for each in np.flatnonzero((state.slot == slot) & (state.since >= since) & (state.since < until)):
            given[int(each)] = int(new)

    def partner(cohort: int, wanted: int, among: NDArray[np.bool_]) -> int:
        found = np.flatnonzero(among & (state.cohort == cohort) & (values == wanted))
        return int(found[np.argmax(static[found])])  # rather one that is linked with no other

    def permute(slots: list[int], wanted: dict[int, int]) -> None:
        """Give original slots of a cohort wanted ones of their values, and what is left to the others."""
        left = [int(values[slot]) for slot in slots]
        for new in wanted.values():
            left.remove(new)
        for slot in slots:
            values[slot] = wanted[slot] if slot in wanted else left.pop()
            give(slot, values[slot])

    def offering(wanted: dict[int, int]) -> list[int]:
        """Slots, and original ones of their cohort that have what is wanted of these."""
        originals = static & (state.witness == NONE)
        return sorted({*wanted, *(partner(state.cohort[slot], new, originals) for slot, new in wanted.items())})

    def exchange(first: int, second: int) -> None:
        new = {first: int(values[second]), second: int(values[first])}
        if state.born[first] != state.born[second]:
            latest_first = sorted((slot for slot in new if parted[slot]), key=lambda slot: -state.born[slot])
            # each witness ends with the value of the slot that parted from it
            ends: dict[int, int] = {}
            for slot in latest_first:
                ends.setdefault(int(state.witness[slot]), int(values[slot]))
            for cohort in {int(state.cohort[witness]) for witness in ends}:
                wanted = {witness: end for witness, end in ends.items() if state.cohort[witness] == cohort}
                permute(offering(wanted), wanted)
            for slot in latest_first:
                give(state.witness[slot], new[slot], NONE, state.born[slot])
        for slot, value_there in new.items():
            values[slot] = value_there
            give(slot, value_there)
            if slot == second:
                for linked in np.flatnonzero((state.link == state.link[slot]) & (np.arange(state.slots) != slot)):
                    place(int(linked), value_there)

    def came_and_went(slot: int, new: int) -> None:
        witness, door, own_value = state.witness[slot], state.beside[slot], values[slot]
        permute(offering({door: own_value}), {door: own_value})
        if values[witness] != new:
            exchange(witness, partner(state.cohort[slot], new, base))
        give(witness, own_value, state.born[slot])
        give(door, new, state.empty_until[slot])
        give(slot, new)

    def place(slot: int, new: int) -> None:
        witness, own_value = int(state.witness[slot]), int(values[slot])
        if new == own_value:
            return
        if base[slot]:
            exchange(slot, partner(state.cohort[slot], new, base))
        elif gone[slot] and state.beside[slot] != witness:
            came_and_went(slot, new)
        else:
            place(witness, new)
            give(slot, new)
            give(witness, own_value, state.born[slot], state.empty_until[slot] if gone[slot] else STILL)

    for slot in np.flatnonzero(state.link == state.link[own]).tolist():
        place(slot, value)
    return given

"""Enumerates every assignment of rows to people that agrees with all releases."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def enumerate_assignments(
    atom, option_stops, option_value, option_stops_rows, option_rows, remaining, tracked_stops, tracked, weights, low,
    high, limit,
):  # fmt: skip
    """Count the assignments in which each person has an option, and with these the people of each atom and value.

    Parameters
    ----------
    atom : int64, shape (people,)
        Rising; people of one atom have the same options. Assignments that differ only by a permutation of such people
        are looked at once and counted as often as there are.
    option_stops : int64, shape (atoms,)
        Where the options of each atom end.
    option_value : int64, shape (options,)
    option_stops_rows, option_rows : int64
        The kinds of rows (a class and a value, in one release) that an option takes one of each.
    remaining : int64
        Rows of each kind.
    tracked_stops, tracked : int64
        Sets of atoms whose number of people with each value is of interest.
    weights : float64, shape (atoms, values)
        Gets the sum over all assignments of the people of an atom who have a value.
    low, high : int64, shape (tracked sets, values)
        Get the least and the largest number of people of a set who have a value.
    limit : int
        Largest number of steps.

    Returns
    -------
    float
        Number of assignments, -1 where there are more steps to do than the limit.
    """
    people = len(atom)
    values = weights.shape[1]
    chosen = np.full(people + 1, -1)
    have = np.zeros(weights.shape, np.int64)
    ways = np.ones(people + 1, np.float64)  # permutations inside the atoms up to each person
    total, steps, person = 0.0, 0, 0
    while person >= 0:
        steps += 1
        if steps > limit:
            return -1.0
        if person == people:
            total += ways[people]
            for a in range(weights.shape[0]):
                for value in range(values):
                    weights[a, value] += ways[people] * have[a, value]
            first = 0
            for number in range(len(tracked_stops)):
                for value in range(values):
                    count = 0
                    for at in range(first, tracked_stops[number]):
                        count += have[tracked[at], value]
                    low[number, value] = min(low[number, value], count)
                    high[number, value] = max(high[number, value], count)
                first = tracked_stops[number]
            person -= 1
            continue
        own = atom[person]
        option = chosen[person]
        if option >= 0:  # give back what was taken, and try the next
            have[own, option_value[option]] -= 1
            for at in range(option_stops_rows[option - 1] if option else 0, option_stops_rows[option]):
                remaining[option_rows[at]] += 1
            option += 1
        elif person and atom[person - 1] == own:
            option = chosen[person - 1]
        else:
            option = option_stops[own - 1] if own else 0
        while option < option_stops[own]:
            free = True
            for at in range(option_stops_rows[option - 1] if option else 0, option_stops_rows[option]):
                free &= remaining[option_rows[at]] > 0
            if free:
                break
            option += 1
        if option == option_stops[own]:
            chosen[person] = -1
            person -= 1
            continue
        chosen[person] = option
        have[own, option_value[option]] += 1
        for at in range(option_stops_rows[option - 1] if option else 0, option_stops_rows[option]):
            remaining[option_rows[at]] -= 1
        # the n-th of an atom who takes an option, the m-th in a row who takes the same: n / m times as many ways
        place, run = 1, 1
        while person - place >= 0 and atom[person - place] == own:
            if chosen[person - place] == option:
                run += 1
            place += 1
        ways[person + 1] = ways[person] * place / run
        person += 1
        chosen[person] = -1
    return total

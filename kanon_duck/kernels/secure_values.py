"""Values of cohorts and of groups of slots: how often each has each, and whether they are diverse enough."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def count_values(begins, values, distinct, counts, stops):
    """Count the values of lists that stand one behind the other.

    Parameters
    ----------
    begins : int64, shape (lists + 1,)
        Where each begins, and the last ends.
    values : int64
        Sorted in place, list by list.
    distinct, counts : int64, same shape
        Written from the start: the different values of each list, rising, and how often each occurs.
    stops : int64, shape (lists,)
        Written: where those of each list end.

    Returns
    -------
    int
        How many there are.
    """
    found = 0
    for number in range(stops.size):
        begin, end = begins[number], begins[number + 1]
        for place in range(begin + 1, end):
            value, before = values[place], place
            while before > begin and values[before - 1] > value:
                values[before] = values[before - 1]
                before -= 1
            values[before] = value
        for place in range(begin, end):
            if place == begin or values[place] != values[place - 1]:
                distinct[found] = values[place]
                counts[found] = 0
                found += 1
            counts[found - 1] += 1
        stops[number] = found
    return found


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def find_diverse(stops, values, attribute_values, required, diverse):
    """Write for each list of values whether it has as many different ones of each attribute as are required."""
    begin = 0
    for number in range(stops.size):
        diverse[number] = True
        for attribute in range(required.size):
            different = 0
            for place in range(begin, stops[number]):
                own = attribute_values[values[place], attribute]
                new = True
                for earlier in range(begin, place):
                    new &= attribute_values[values[earlier], attribute] != own
                different += new
                if different >= required[attribute]:
                    break
            diverse[number] &= different >= required[attribute]
        begin = stops[number]


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def list_values(group, stops, values, own, list_stops, listed):
    """List for each person the values of a group, and the own, if it is not among them; rising.

    Parameters
    ----------
    group, own : int64, shape (people,)
    stops, values : int64
        Values of each group, rising.
    list_stops : int64, shape (people,)
        Written: where the list of each person ends.
    listed : int64
        Written, with room for all values of all people and one more for each.
    """
    found = 0
    for person in range(group.size):
        begin = stops[group[person] - 1] if group[person] > 0 else 0
        placed = False
        for place in range(begin, stops[group[person]]):
            if not placed and own[person] <= values[place]:
                placed = True
                if own[person] < values[place]:
                    listed[found] = own[person]
                    found += 1
            listed[found] = values[place]
            found += 1
        if not placed:
            listed[found] = own[person]
            found += 1
        list_stops[person] = found

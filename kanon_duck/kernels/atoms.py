"""Finds people who are in the same sets, and people whom sets connect."""

from __future__ import annotations

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def in_lists(keys, elements, count):
    """Put elements together that have the same key, in the order in which they come.

    Parameters
    ----------
    keys, elements : int64, shape (n,)
    count : int
        Keys are from 0 to below this.

    Returns
    -------
    stops : int64, shape (count,)
        Where the list of each key ends.
    lists : int64, shape (n,)
    """
    places = np.zeros(count + 1, np.int64)
    for key in keys:
        places[key + 1] += 1
    for key in range(count):
        places[key + 1] += places[key]
    lists = np.empty(len(keys), np.int64)
    for at in range(len(keys)):
        lists[places[keys[at]]] = elements[at]
        places[keys[at]] += 1
    return places[:count], lists


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def split_by_sets(stops, people, atoms):
    """Give people the same number if and only if they are in the same sets.

    Cost: linear in the members of all sets.

    Parameters
    ----------
    stops, people : int64
        Members of each set, nobody twice in one: those of set s end at ``stops[s]``.
    atoms : int64, shape (n,)
        All 0; gets the numbers, which have gaps.
    """
    sets_seen, successor = np.zeros(len(people) + 1, np.int64), np.zeros(len(people) + 1, np.int64)
    unused, at = 1, 0
    for number in range(len(stops)):
        while at < stops[number]:
            atom = atoms[people[at]]
            if sets_seen[atom] <= number:  # this is the first of the set's people who have had it
                sets_seen[atom] = number + 1
                successor[atom] = unused
                unused += 1
            atoms[people[at]] = successor[atom]
            at += 1


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def connect(left, right, roots):
    """Give everything that edges connect the same root.

    Parameters
    ----------
    left, right : int64, shape (edges,)
        Ends of the edges.
    roots : int64, shape (nodes,)
        The node itself for each node; gets the least node that it is connected with.
    """
    for edge in range(len(left)):
        one, other = left[edge], right[edge]
        while roots[one] != one:
            roots[one] = roots[roots[one]]
            one = roots[one]
        while roots[other] != other:
            roots[other] = roots[roots[other]]
            other = roots[other]
        roots[max(one, other)] = min(one, other)
    for node in range(len(roots)):
        roots[node] = roots[roots[node]]


@njit(**INNER)
def _group_at(stops, groups, begins, ends, person, release):
    """Group of a person in a release, or -1."""
    for at in range(stops[person - 1] if person else 0, stops[person]):
        if begins[groups[at]] <= release < ends[groups[at]]:
            return groups[at]
    return -1


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def spread(
    seeds, first, second, blocks, block_stops, block_groups, group_stops, group_people, person_stops, person_groups,
    begins, ends, person_mark, block_mark, mark,
):  # fmt: skip
    """Find the people whom the classes of two releases connect with some blocks of the first.

    Cost: that of the people found.

    Parameters
    ----------
    seeds : int64
        Blocks to begin with.
    first, second : int
        The releases.
    blocks : int64, shape (groups,)
        Block of each group.
    block_stops, block_groups, group_stops, group_people, person_stops, person_groups : int64
        Groups of each block, people of each group, groups of each person.
    begins, ends : int64, shape (groups,)
    person_mark, block_mark : int64
        Get ``mark`` where they have been visited; without it before.
    mark : int

    Returns
    -------
    people, before, after, component : int64
        Who is found, their groups in the two releases, -1 where the release does not have them, and a number that
        those share whom classes connect; only those who are connected with a group that begins with the second.
    """
    people = np.empty(len(person_mark), np.int64)
    before, after = np.empty(len(person_mark), np.int64), np.empty(len(person_mark), np.int64)
    component = np.empty(len(person_mark), np.int64)
    queue = np.empty(len(block_mark), np.int64)
    count = 0
    for seed in seeds:
        if block_mark[seed] == mark:
            continue
        block_mark[seed] = mark
        queue[0] = seed
        done, waiting, start = 0, 1, count
        begun = False
        while done < waiting:
            block = queue[done]
            done += 1
            for place in range(block_stops[block - 1] if block else 0, block_stops[block]):
                group = block_groups[place]
                begun |= begins[group] == second
                for at in range(group_stops[group - 1] if group else 0, group_stops[group]):
                    person = group_people[at]
                    if person_mark[person] == mark:
                        continue
                    person_mark[person] = mark
                    people[count] = person
                    component[count] = seed
                    before[count] = _group_at(person_stops, person_groups, begins, ends, person, first)
                    after[count] = _group_at(person_stops, person_groups, begins, ends, person, second)
                    for group_then in (before[count], after[count]):
                        if group_then >= 0 and block_mark[blocks[group_then]] != mark:
                            block_mark[blocks[group_then]] = mark
                            queue[waiting] = blocks[group_then]
                            waiting += 1
                    count += 1
        if not begun:
            count = start
    return people[:count], before[:count], after[:count], component[:count]

"""Annealing of the people who wait for a slot: groups of their own, slots of open cohorts, company beside these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_duck.encoding import LANES
from kanon_duck.kernels import INNER
from kanon_duck.kernels.anneal import accepts, below
from kanon_duck.kernels.simd import load, maximum, minimum, weigh

NO_CANDIDATE = -1
"""Ends a row of ``homes``."""

FORBIDDEN = 1e12
"""Loss of a host with members that it may not have."""


class Pool(NamedTuple):
    """What annealing looks up. Hosts are the open cohorts, and behind them groups of new slots.

    Attributes
    ----------
    codes : shape (n, width); caps, weights : as in ``Encoding``
        Of the people of the pool.
    value : int64, shape (n,)
    price : float64, shape (n,)
        What it costs that one waits.
    known : int64, shape (n,)
        0 for one who has never been in a release; else 1 + the place among those who have.
    allowed_stops, allowed : int64
        For each of those, values besides the own that all former slots can have, rising.
    attribute_values, required, k
        See ``Bounds``.
    low, high : shape (cohorts, width)
        Boxes of the open cohorts.
    people : int64, shape (cohorts,)
    empty_stops : int64, shape (cohorts,); empty : int64
        Values of the empty slots of each, rising.
    hiding : bool, shape (empty slots,)
        Whether the cohort is not shown as long as the slot is empty; of equal values, these come first.
    takes : bool, shape (cohorts,)
        Whether one of the empty slots can be a witness.
    hidden_price, empty_price : float
        What a person who is not shown costs, and a counterfeit.
    near : int32, shape (n, neighbours)
    homes : int32, shape (n, candidates)
        Open cohorts that may take each, then NO_CANDIDATE.
    """

    codes: NDArray
    caps: NDArray
    weights: NDArray
    value: NDArray
    price: NDArray
    known: NDArray
    allowed_stops: NDArray
    allowed: NDArray
    attribute_values: NDArray
    required: NDArray
    k: int
    low: NDArray
    high: NDArray
    people: NDArray
    empty_stops: NDArray
    empty: NDArray
    hiding: NDArray
    takes: NDArray
    hidden_price: float
    empty_price: float
    near: NDArray
    homes: NDArray


class Hosts(NamedTuple):
    """Who is where; changed by annealing.

    Attributes
    ----------
    host, place : int64, shape (n,)
        Host of each person, and position among its members.
    members : int32, shape (hosts, room)
    sizes : int64, shape (hosts,)
    losses : float64, shape (hosts,)
    vacant : int64, shape (hosts + 1,)
        A stack of the groups without members; its first element is their number.
    moved, former : int64, shape (n + 1,)
        Scratch: a record of moves, its length first.
    """

    host: NDArray
    place: NDArray
    members: NDArray
    sizes: NDArray
    losses: NDArray
    vacant: NDArray
    moved: NDArray
    former: NDArray


@njit(**INNER)
def count_different(pool, members, host, size, person, attribute):
    """Different values of an attribute among new members of a group that ``person`` (-1: anybody) may have."""
    different = 0
    for position in range(size):
        member = members[host, position]
        if pool.known[member] > 0 or not may_have(pool, person, pool.value[member]):
            continue
        own = pool.attribute_values[pool.value[member], attribute]
        found = person >= 0 and pool.attribute_values[pool.value[person], attribute] == own
        for earlier in range(position):
            other = members[host, earlier]
            if found:
                break
            found = (
                pool.known[other] == 0
                and pool.attribute_values[pool.value[other], attribute] == own
                and may_have(pool, person, pool.value[other])
            )
        different += not found
    return different + (person >= 0)


@njit(**INNER)
def may_have(pool, person, value):
    """Whether all former slots of a person (-1: of nobody) can have a value, or it is the person's own."""
    if person < 0 or pool.value[person] == value:
        return True
    number = pool.known[person] - 1
    begin = pool.allowed_stops[number - 1] if number > 0 else 0
    end = pool.allowed_stops[number]
    while begin < end:
        middle = (begin + end) // 2
        if pool.allowed[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin < pool.allowed_stops[number] and pool.allowed[begin] == value


@njit(**INNER)
def missing(pool, members, host, size):
    """How many people or values a group lacks to be shown; 0 where it may be."""
    new = 0
    for position in range(size):
        new += pool.known[members[host, position]] == 0
    lacks = max(pool.k - new, 0)
    for attribute in range(pool.required.size):
        lacks = max(lacks, pool.required[attribute] - count_different(pool, members, host, size, -1, attribute))
    if lacks == 0 and new < size:
        for position in range(size):
            person = members[host, position]
            if pool.known[person] == 0:
                continue
            rows = 1
            for other in range(size):
                member = members[host, other]
                rows += pool.known[member] == 0 and may_have(pool, person, pool.value[member])
            lacks = max(lacks, pool.k - rows)
            for attribute in range(pool.required.size):
                found = count_different(pool, members, host, size, person, attribute)
                lacks = max(lacks, pool.required[attribute] - found)
    return lacks


@njit(**INNER)
def filled(pool, members, host, size):
    """How many empty slots of a cohort its members fill, how many of them are new, and whether the rest hides it."""
    count, new, hidden = 0, 0, False
    begin = pool.empty_stops[host - 1] if host > 0 else 0
    for position in range(begin, pool.empty_stops[host]):
        value = pool.empty[position]
        rank = 0  # among the empty slots with this value
        while position - rank > begin and pool.empty[position - rank - 1] == value:
            rank += 1
        for at in range(size):
            member = members[host, at]
            if pool.value[member] == value:
                if rank == 0:
                    count += 1
                    new += pool.known[member] == 0
                    break
                rank -= 1
        else:
            hidden |= pool.hiding[position]
    return count, new, hidden


@njit(**INNER)
def box_cost(pool, members, host, size, cohorts):
    """Cost per row of the box around a host's members, and around its cohort."""
    cost = 0.0
    for lane in range(0, pool.codes.shape[1], LANES):
        if host < cohorts:
            low, high = load(pool.low, host, lane), load(pool.high, host, lane)
        else:
            low = load(pool.codes, members[host, 0], lane)
            high = low
        for position in range(size):
            row = load(pool.codes, members[host, position], lane)
            low, high = minimum(low, row), maximum(high, row)
        cost += weigh(low, high, pool.caps, pool.weights, lane)
    return cost


@njit(**INNER)
def waiting_price(pool, members, host, size):
    """What it costs that all members of a host wait."""
    price = 0.0
    for position in range(size):
        price += pool.price[members[host, position]]
    return price


@njit(**INNER)
def host_loss(pool, members, host, size, guidance):
    """Loss of a host: of its people if it is shown, else the price of their waiting.

    A group that lacks little costs somewhat less than its waiting, by ``guidance``, so that groups can come about.
    """
    cohorts = pool.people.size
    if host >= cohorts:
        if size == 0:
            return 0.0
        price = waiting_price(pool, members, host, size)
        lacks = missing(pool, members, host, size)
        if lacks == 0:
            return size * box_cost(pool, members, host, size, cohorts)
        if guidance > 0.0 and size > 1:
            needed = np.float64(pool.k)
            for required in pool.required:
                needed = max(needed, np.float64(required))
            share = guidance * max(0.0, 1.0 - lacks / needed)
            loss = size * box_cost(pool, members, host, size, cohorts)
            if loss < price:
                return price - share * (price - loss)
        return price
    empties = pool.empty_stops[host] - (pool.empty_stops[host - 1] if host > 0 else 0)
    fills, new, hidden = filled(pool, members, host, size)
    if hidden:
        return pool.people[host] * pool.hidden_price + waiting_price(pool, members, host, size)
    # a cohort takes company where a slot changes hands, or is empty
    if size > fills and (not pool.takes[host] or (fills == empties and new == 0)):
        return FORBIDDEN
    loss = (pool.people[host] + size) * box_cost(pool, members, host, size, cohorts)
    return loss + (empties - fills) * pool.empty_price


@njit(**INNER)
def shift(pool, hosts, person, target, guidance):
    """Move a person to another host with room; returns the rise of the loss."""
    source, position = hosts.host[person], hosts.place[person]
    rise = -hosts.losses[source] - hosts.losses[target]
    hosts.sizes[source] -= 1
    last = hosts.members[source, hosts.sizes[source]]
    hosts.members[source, position] = last
    hosts.place[last] = position
    cohorts = pool.people.size
    if source >= cohorts and hosts.sizes[source] == 0:
        hosts.vacant[0] += 1
        hosts.vacant[hosts.vacant[0]] = source
    if target >= cohorts and hosts.sizes[target] == 0:  # it is the first on the stack
        hosts.vacant[0] -= 1
    hosts.members[target, hosts.sizes[target]] = person
    hosts.host[person], hosts.place[person] = target, hosts.sizes[target]
    hosts.sizes[target] += 1
    hosts.losses[source] = host_loss(pool, hosts.members, source, hosts.sizes[source], guidance)
    hosts.losses[target] = host_loss(pool, hosts.members, target, hosts.sizes[target], guidance)
    return rise + hosts.losses[source] + hosts.losses[target]


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def fill_host_losses(pool, hosts, guidance):
    """Write the losses of all hosts; returns their sum."""
    total = 0.0
    for host in range(hosts.sizes.size):
        hosts.losses[host] = host_loss(pool, hosts.members, host, hosts.sizes[host], guidance)
        total += hosts.losses[host]
    return total


@njit(**INNER)
def record(hosts, person):
    """Note where a person is before a move."""
    hosts.moved[0] += 1
    hosts.moved[hosts.moved[0]] = person
    hosts.former[hosts.moved[0]] = hosts.host[person]


@njit(**INNER)
def take_back(pool, hosts, guidance):
    """Undo the moves noted, the last first."""
    while hosts.moved[0] > 0:
        person, former = hosts.moved[hosts.moved[0]], hosts.former[hosts.moved[0]]
        if former >= pool.people.size and hosts.sizes[former] == 0:
            # bring it to the top of the stack
            place = hosts.vacant[0]
            while hosts.vacant[place] != former:
                place -= 1
            hosts.vacant[place] = hosts.vacant[hosts.vacant[0]]
            hosts.vacant[hosts.vacant[0]] = former
        shift(pool, hosts, person, former, guidance)
        hosts.moved[0] -= 1


@njit(**INNER)
def is_home(pool, person, host):
    """Whether an open cohort may take a person, as far as is known beforehand."""
    if pool.known[person] == 0:
        return True
    for home in pool.homes[person]:
        if home == host:
            return True
    return False


@njit(**INNER)
def divide(pool, hosts, source, guidance):
    """Move the half of a group's members that is nearest to one of them to a new group; returns the rise."""
    fresh = hosts.vacant[hosts.vacant[0]]
    seed = hosts.members[source, 0]
    other, furthest = seed, -1.0
    for position in range(hosts.sizes[source]):
        distance = pair(pool, seed, hosts.members[source, position])
        if distance > furthest:
            other, furthest = hosts.members[source, position], distance
    rise = 0.0
    position = hosts.sizes[source] - 1
    while position >= 0:
        person = hosts.members[source, position]
        if pair(pool, person, other) < pair(pool, person, seed):
            record(hosts, person)
            rise += shift(pool, hosts, person, fresh, guidance)
        position -= 1
    return rise


@njit(**INNER)
def pair(pool, first, second):
    """Cost per row of the box around two people."""
    cost = 0.0
    for lane in range(0, pool.codes.shape[1], LANES):
        one, other = load(pool.codes, first, lane), load(pool.codes, second, lane)
        cost += weigh(minimum(one, other), maximum(one, other), pool.caps, pool.weights, lane)
    return cost


@njit(**INNER)
def disperse(pool, hosts, source, guidance):
    """Move all members of a group to the hosts of near people that are cheapest for each; returns the rise."""
    rise = 0.0
    room = hosts.members.shape[1]
    while hosts.sizes[source] > 0:
        person = hosts.members[source, hosts.sizes[source] - 1]
        best, best_rise = -1, FORBIDDEN
        for nth in range(pool.near.shape[1] + pool.homes.shape[1]):
            if nth < pool.near.shape[1]:
                target = hosts.host[pool.near[person, nth]]
            else:
                target = np.int64(pool.homes[person, nth - pool.near.shape[1]])
                if target < 0:
                    continue
            if target == source or hosts.sizes[target] == room:
                continue
            if target < pool.people.size and not is_home(pool, person, target):
                continue
            hosts.members[target, hosts.sizes[target]] = person
            own_rise = host_loss(pool, hosts.members, target, hosts.sizes[target] + 1, guidance) - hosts.losses[target]
            if own_rise < best_rise:
                best, best_rise = target, own_rise
        if best < 0:
            return FORBIDDEN
        record(hosts, person)
        rise += shift(pool, hosts, person, best, guidance)
    return rise


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def anneal_pool(pool, hosts, temperature, cooling, begin, steps, guidance, random):
    """Some steps of annealing, each for the next person; all state is in the arrays.

    Guarantee: the sum of the losses is that of the places that people have; a group that lacks something, and a cohort
    that may not be shown with its members, cost what it costs that all of these wait.

    Parameters
    ----------
    pool : Pool
    hosts : Hosts
        Its losses are those for this guidance.
    temperature : float64, shape (1,)
    cooling : float
    begin, steps : int
    guidance : float
        See `host_loss`.
    random : uint64, shape (1,)
    """
    n = hosts.host.size
    cohorts = pool.people.size
    room = hosts.members.shape[1]
    heat = temperature[0]
    hosts.moved[0] = 0
    for step in range(begin, begin + steps):
        heat *= cooling
        person = step % n
        source = hosts.host[person]
        kind = below(random, 100)
        if kind < 2 and source >= cohorts:
            hosts.moved[0] = 0
            if kind == 0 and hosts.vacant[0] > 0 and hosts.sizes[source] > 1:
                rise = divide(pool, hosts, source, guidance)
            else:
                rise = disperse(pool, hosts, source, guidance)
            if rise < FORBIDDEN / 2 and accepts(random, rise, heat):
                hosts.moved[0] = 0
            else:
                take_back(pool, hosts, guidance)
            continue
        if kind < 32:
            target = np.int64(pool.homes[person, below(random, pool.homes.shape[1])])
            if target < 0:
                kind = 32 + below(random, 68)
        if kind >= 32:
            if kind < 36:
                if hosts.sizes[source] == 1 and source >= cohorts or hosts.vacant[0] == 0:
                    continue
                target = hosts.vacant[hosts.vacant[0]]
            else:
                target = hosts.host[pool.near[person, below(random, pool.near.shape[1])]]
        if target == source:
            continue
        if target < cohorts and not is_home(pool, person, target):
            continue
        hosts.moved[0] = 0
        rise = 0.0
        if hosts.sizes[target] > 0 and below(random, 2) == 0:
            # somebody comes in exchange
            other = np.int64(hosts.members[target, below(random, hosts.sizes[target])])
            if source < cohorts and not is_home(pool, other, source):
                continue
            if hosts.sizes[source] == room:
                continue
            record(hosts, other)
            rise += shift(pool, hosts, other, source, guidance)
        elif hosts.sizes[target] == room:
            continue
        record(hosts, person)
        rise += shift(pool, hosts, person, target, guidance)
        if rise < FORBIDDEN / 2 and accepts(random, rise, heat):
            hosts.moved[0] = 0
        else:
            take_back(pool, hosts, guidance)
    temperature[0] = heat

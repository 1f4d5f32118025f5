"""Annealing of the people who wait for a slot: groups of their own, slots of open cohorts, company beside these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_duck.kernels import INNER, LANES, ZERO
from kanon_duck.kernels.anneal import accepts, below, best_exchange, pair_cost
from kanon_duck.kernels.simd import load, maximum, minimum, weigh

NO_CANDIDATE = -1
"""Ends a row of ``homes``."""

IF_NEW, ALWAYS = 1, 2
"""When a cohort takes company."""

STAYS, GOES_WITH_ANY = -1, -2
"""Of an empty slot: it cannot be taken away, or can whenever a door of its cohort gets a new holder."""

MOST_DOORS = 62
"""Empty slots of a cohort that can be doors."""

FORBIDDEN = 1e12
"""Loss of a host with members that it may not have."""


class Pool(NamedTuple):
    """The people of the pool, and what must hold of groups of them.

    Attributes
    ----------
    codes : shape (n, width); caps, weights : as in ``Encoding``
    price : float64, shape (n,)
        What it costs that one waits.
    value : int64, shape (n,)
    traits : int64, shape (n, attributes)
        What the value says of each attribute, numbered from 0.
    known : int64, shape (n,)
        0 for one who has never been in a release; else 1 + the place among those who have.
    allowed_stops, allowed, allowed_counts : int64
        For each of those, values that all former slots can have, rising, and in how many rows.
    required : int64, shape (attributes,); k : int
        See ``Bounds``.
    crowding : float
        What people of a group cost for each of them, and company for each of its class.
    near : int32, shape (n, neighbours)
    homes : int32, shape (n, candidates)
        Open cohorts that may take each, or NO_CANDIDATE.
    """

    codes: NDArray
    caps: NDArray
    weights: NDArray
    price: NDArray
    value: NDArray
    traits: NDArray
    known: NDArray
    allowed_stops: NDArray
    allowed: NDArray
    allowed_counts: NDArray
    required: NDArray
    k: int
    crowding: float
    near: NDArray
    homes: NDArray


class Cohorts(NamedTuple):
    """The open cohorts, which are the first hosts.

    Attributes
    ----------
    low, high : shape (cohorts, width)
    people : int64, shape (cohorts,)
    empty_stops : int64, shape (cohorts,); empty : int64
        Values of the empty slots of each, rising.
    hiding : bool, shape (empty slots,)
        Whether the cohort is not shown as long as the slot is empty; of equal values, these come first.
    saving : float64, shape (empty slots,)
        What is saved when the slot is filled.
    of_empty : int64, shape (empty slots,)
        The cohort of each.
    door : bool, shape (empty slots,)
        Whether other slots can be taken away, and company can come, when somebody new fills it.
    goes : int64, shape (empty slots,)
        STAYS, GOES_WITH_ANY, or the door of its cohort, from 0, that must get a new holder for it to go.
    callers : int32, shape (empty slots, candidates)
        People who can fill each, or NO_CANDIDATE.
    takes : int64, shape (cohorts,)
        0 where none of the empty slots can be a witness; IF_NEW where one can that is filled by somebody new, or not
        filled; ALWAYS where one can that is never filled.
    hidden_price : float
        What a person who is not shown costs.
    """

    low: NDArray
    high: NDArray
    people: NDArray
    empty_stops: NDArray
    empty: NDArray
    hiding: NDArray
    saving: NDArray
    of_empty: NDArray
    door: NDArray
    goes: NDArray
    callers: NDArray
    takes: NDArray
    hidden_price: float


class Hosts(NamedTuple):
    """Who is where; changed by annealing. Behind the open cohorts come groups of new slots.

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
    seen : int64, shape (1 + traits,)
        Scratch, 0 at first.
    prefixes : dtype of the codes, shape (2, room, LANES); scratch : float64, shape (room,)
    """

    host: NDArray
    place: NDArray
    members: NDArray
    sizes: NDArray
    losses: NDArray
    vacant: NDArray
    moved: NDArray
    former: NDArray
    seen: NDArray
    prefixes: NDArray
    scratch: NDArray


@njit(**INNER)
def rows_with(number, value, allowed_stops, allowed, allowed_counts):
    """In how many rows all former slots of a person can have a value."""
    begin = allowed_stops[number - 1] if number > 0 else 0
    end = allowed_stops[number]
    while begin < end:
        middle = (begin + end) // 2
        if allowed[middle] < value:
            begin = middle + 1
        else:
            end = middle
    if begin < allowed_stops[number] and allowed[begin] == value:
        return allowed_counts[begin]
    return ZERO


@njit(**INNER)
def lacking(members, host, size, traits, known, required, k, seen):
    """How many new people or values a group lacks to be sound; 0 where it is."""
    new = 0
    for position in range(size):
        new += known[members[host, position]] == 0
    lacks = max(k - new, 0)
    for attribute in range(required.size):
        seen[0] += 1
        stamp = seen[0]
        different = 0
        for position in range(size):
            person = members[host, position]
            trait = traits[person, attribute] + 1
            if known[person] == 0 and seen[trait] != stamp:
                seen[trait] = stamp
                different += 1
        lacks = max(lacks, required[attribute] - different)
    return lacks


@njit(**INNER)
def lacking_for(person, pool, members, host, size, seen):
    """The same for one of a group who has been in a release: what all former slots can have counts."""
    number = pool.known[person] - 1
    rows = 1
    for attribute in range(-1, pool.required.size):
        seen[0] += 1
        stamp = seen[0]
        different = 1
        if attribute >= 0:
            seen[pool.traits[person, attribute] + 1] = stamp
        for position in range(size):
            member = members[host, position]
            if pool.known[member] > 0:
                continue
            found = rows_with(number, pool.value[member], pool.allowed_stops, pool.allowed, pool.allowed_counts)
            if found == 0:
                continue
            if attribute < 0:
                equal = 0
                for earlier in range(position):
                    other = members[host, earlier]
                    equal += pool.known[other] == 0 and pool.value[other] == pool.value[member]
                rows += equal < found
            elif seen[pool.traits[member, attribute] + 1] != stamp:
                seen[pool.traits[member, attribute] + 1] = stamp
                different += 1
        if attribute >= 0:
            rows = min(rows, pool.k + different - pool.required[attribute])
    return pool.k - rows


@njit(**INNER)
def group_cost(codes, caps, weights, members, host, size):
    """Cost per row of the box around the members of a group."""
    cost = 0.0
    for lane in range(0, codes.shape[1], LANES):
        low = load(codes, members[host, 0], lane)
        high = low
        for position in range(1, size):
            row = load(codes, members[host, position], lane)
            low, high = minimum(low, row), maximum(high, row)
        cost += weigh(low, high, caps, weights, lane)
    return cost


@njit(**INNER)
def waiting_price(price, members, host, size):
    """What it costs that all members of a host wait."""
    total = 0.0
    for position in range(size):
        total += price[members[host, position]]
    return total


@njit(**INNER)
def group_loss(pool, members, host, size, guidance, seen):
    """Loss of a group: of its people if it is sound, else the price of their waiting.

    One that lacks little costs somewhat less than its waiting, by ``guidance``, so that groups can come about.
    """
    if size == 0:
        return 0.0
    lacks = lacking(members, host, size, pool.traits, pool.known, pool.required, pool.k, seen)
    if pool.allowed_stops.size > 0 and lacks == 0:
        for position in range(size):
            person = np.int64(members[host, position])
            if pool.known[person] > 0:
                lacks = max(lacks, lacking_for(person, pool, members, host, size, seen))
    if lacks == 0:
        return size * (group_cost(pool.codes, pool.caps, pool.weights, members, host, size) + pool.crowding * size)
    price = waiting_price(pool.price, members, host, size)
    if guidance > 0.0 and size > 1:
        loss = size * group_cost(pool.codes, pool.caps, pool.weights, members, host, size)
        if loss < price:
            needed = np.float64(pool.k)
            for required in pool.required:
                needed = max(needed, np.float64(required))
            price -= guidance * max(0.0, 1.0 - lacks / needed) * (price - loss)
    return price


@njit(**INNER)
def fill(value, known, cohorts, members, host, size):
    """How many empty slots of a cohort its members fill, how many are new, what is not saved, and how many hide it.

    Slots that can be taken away together hide it as one.
    """
    count, new, left, hidden = 0, 0, 0.0, 0
    begin = cohorts.empty_stops[host - 1] if host > 0 else 0
    filled, opened = np.int64(0), np.int64(0)  # bits
    for position in range(begin, cohorts.empty_stops[host]):
        wanted = cohorts.empty[position]
        rank = 0  # among the empty slots with this value
        while position - rank > begin and cohorts.empty[position - rank - 1] == wanted:
            rank += 1
        found = False
        for at in range(size):
            member = members[host, at]
            if value[member] == wanted:
                if rank == 0:
                    count += 1
                    new += known[member] == 0
                    found = True
                    if position - begin < MOST_DOORS:
                        filled |= np.int64(1) << (position - begin)
                        if cohorts.door[position] and known[member] == 0:
                            opened |= np.int64(1) << (position - begin)
                    break
                rank -= 1
        if not found:
            left += cohorts.saving[position]
            hidden += cohorts.hiding[position]
    if hidden > 0 and (size > 0 or cohorts.takes[host] == ALWAYS):
        shut = False
        for position in range(begin, min(cohorts.empty_stops[host], begin + MOST_DOORS)):
            if not cohorts.hiding[position] or (filled >> (position - begin)) & 1:
                continue
            goes = cohorts.goes[position]
            if goes == GOES_WITH_ANY:
                hidden -= 1
                left -= cohorts.saving[position]
                shut |= opened == 0 and cohorts.takes[host] != ALWAYS
            elif goes >= 0 and (opened >> goes) & 1:
                hidden -= 1
                left -= cohorts.saving[position]
        hidden += shut
    return count, new, left, hidden


@njit(**INNER)
def cohort_loss(pool, cohorts, members, host, size, guidance):
    """Loss of an open cohort with its members, or the price of all their waiting if it is not shown.

    One that few empty slots hide costs somewhat less, by ``guidance``.
    """
    fills, new, left, hidden = fill(pool.value, pool.known, cohorts, members, host, size)
    if hidden > 0:
        price = cohorts.people[host] * cohorts.hidden_price + waiting_price(pool.price, members, host, size)
        return price * (1.0 - 0.5 * guidance / hidden)
    empties = cohorts.empty_stops[host] - (cohorts.empty_stops[host - 1] if host > 0 else 0)
    # a cohort takes company where a slot changes hands, or is empty
    takes = cohorts.takes[host]
    if size > fills and (takes == 0 or (takes == IF_NEW and fills == empties and new == 0)):
        return FORBIDDEN
    cost = 0.0
    for lane in range(0, pool.codes.shape[1], LANES):
        low, high = load(cohorts.low, host, lane), load(cohorts.high, host, lane)
        for position in range(size):
            row = load(pool.codes, members[host, position], lane)
            low, high = minimum(low, row), maximum(high, row)
        cost += weigh(low, high, pool.caps, pool.weights, lane)
    people = cohorts.people[host] + size
    more = size - fills  # who comes beside those who fill slots makes the class larger
    return people * (cost + pool.crowding * more) + pool.crowding * more * (people - more) + left


@njit(**INNER)
def host_loss(pool, cohorts, members, host, size, guidance, seen):
    """Loss of a host."""
    if host < cohorts.people.size:
        return cohort_loss(pool, cohorts, members, host, size, guidance)
    return group_loss(pool, members, host, size, guidance, seen)


@njit(**INNER)
def take_out(hosts, cohorts, person):
    """Take a person out of the host; the losses are the caller's part."""
    source, position = hosts.host[person], hosts.place[person]
    hosts.sizes[source] -= 1
    last = hosts.members[source, hosts.sizes[source]]
    hosts.members[source, position] = last
    hosts.place[last] = position
    if source >= cohorts and hosts.sizes[source] == 0:
        hosts.vacant[0] += 1
        hosts.vacant[hosts.vacant[0]] = source


@njit(**INNER)
def put_in(hosts, cohorts, person, target):
    """Put a person into a host with room; a vacant group comes off the stack."""
    if target >= cohorts and hosts.sizes[target] == 0:
        place = hosts.vacant[0]
        while hosts.vacant[place] != target:
            place -= 1
        hosts.vacant[place] = hosts.vacant[hosts.vacant[0]]
        hosts.vacant[0] -= 1
    hosts.members[target, hosts.sizes[target]] = person
    hosts.host[person], hosts.place[person] = target, hosts.sizes[target]
    hosts.sizes[target] += 1


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def fill_host_losses(pool, cohorts, hosts, guidance):
    """Write the losses of all hosts."""
    for host in range(hosts.sizes.size):
        hosts.losses[host] = host_loss(pool, cohorts, hosts.members, host, hosts.sizes[host], guidance, hosts.seen)


@njit(**INNER)
def move(pool, cohorts, hosts, person, target, guidance):
    """Move a person to another host, and note where from; returns the rise of the loss."""
    hosts.moved[0] += 1
    hosts.moved[hosts.moved[0]] = person
    source = hosts.host[person]
    hosts.former[hosts.moved[0]] = source
    rise = -hosts.losses[source] - hosts.losses[target]
    take_out(hosts, cohorts.people.size, person)
    put_in(hosts, cohorts.people.size, person, target)
    for host in (source, target):
        hosts.losses[host] = host_loss(pool, cohorts, hosts.members, host, hosts.sizes[host], guidance, hosts.seen)
        rise += hosts.losses[host]
    return rise


@njit(**INNER)
def take_back(pool, cohorts, hosts, guidance):
    """Undo the moves noted, the last first."""
    while hosts.moved[0] > 0:
        person, former = hosts.moved[hosts.moved[0]], hosts.former[hosts.moved[0]]
        move(pool, cohorts, hosts, person, former, guidance)
        hosts.moved[0] -= 2


@njit(**INNER)
def is_home(known, homes, person, host):
    """Whether an open cohort may take a person, as far as is known beforehand."""
    if known[person] == 0:
        return True
    found = False
    for nth in range(homes.shape[1]):
        found |= homes[person, nth] == host
    return found


@njit(**INNER)
def divide(pool, cohorts, hosts, source, guidance):
    """Move the members of a group that are nearer to the one furthest from its first to a new group."""
    fresh = hosts.vacant[hosts.vacant[0]]
    seed = np.int64(hosts.members[source, 0])
    other, furthest = seed, -1.0
    for position in range(hosts.sizes[source]):
        person = np.int64(hosts.members[source, position])
        distance = pair_cost(pool.codes, seed, person, pool.caps, pool.weights)
        if distance > furthest:
            other, furthest = person, distance
    rise = 0.0
    position = hosts.sizes[source] - 1
    while position >= 0:
        person = np.int64(hosts.members[source, position])
        distance = pair_cost(pool.codes, seed, person, pool.caps, pool.weights)
        if pair_cost(pool.codes, other, person, pool.caps, pool.weights) < distance:
            rise += move(pool, cohorts, hosts, person, fresh, guidance)
        position -= 1
    return rise


@njit(**INNER)
def disperse(pool, cohorts, hosts, source, guidance):
    """Move all members of a group, each to the host near it that is cheapest; returns the rise."""
    rise = 0.0
    room = hosts.members.shape[1]
    while hosts.sizes[source] > 0:
        person = np.int64(hosts.members[source, hosts.sizes[source] - 1])
        best, best_rise = np.int64(-1), FORBIDDEN
        for nth in range(pool.near.shape[1] + pool.homes.shape[1]):
            if nth < pool.near.shape[1]:
                target = hosts.host[pool.near[person, nth]]
            else:
                target = np.int64(pool.homes[person, nth - pool.near.shape[1]])
            if target < 0 or target == source or hosts.sizes[target] == room:
                continue
            if target < cohorts.people.size and not is_home(pool.known, pool.homes, person, target):
                continue
            size = hosts.sizes[target] + 1
            hosts.members[target, size - 1] = person
            own_rise = host_loss(pool, cohorts, hosts.members, target, size, guidance, hosts.seen)
            own_rise -= hosts.losses[target]
            if own_rise < best_rise:
                best, best_rise = target, own_rise
        if best < 0:
            return FORBIDDEN
        rise += move(pool, cohorts, hosts, person, best, guidance)
    return rise


@njit(**INNER)
def step_of_group(pool, cohorts, hosts, source, divides, guidance, random, heat):
    """Divide a group, or disperse it, if that is accepted."""
    hosts.moved[0] = 0
    if divides:
        rise = divide(pool, cohorts, hosts, source, guidance)
    else:
        rise = disperse(pool, cohorts, hosts, source, guidance)
    if rise >= FORBIDDEN / 2 or not accepts(random, rise, heat):
        take_back(pool, cohorts, hosts, guidance)


@njit(**INNER)
def partner(pool, cohorts, hosts, person, source, target, random):
    """Who of another host is to come in exchange for a person: of a group whoever is best, of a cohort anybody."""
    if source < cohorts.people.size or target < cohorts.people.size or hosts.sizes[source] < 2:
        return np.int64(hosts.members[target, below(random, hosts.sizes[target])])
    position, last = hosts.place[person], hosts.sizes[source] - 1
    stand_in = hosts.members[source, last]
    hosts.members[source, position] = stand_in
    best, _, _ = best_exchange(
        pool.codes, pool.caps, pool.weights, person, hosts.members, source, last, target, hosts.sizes[target],
        hosts.prefixes, hosts.scratch,
    )  # fmt: skip
    hosts.members[source, position] = person
    hosts.members[source, last] = stand_in
    return np.int64(hosts.members[target, best])


@njit(**INNER)
def change_places(hosts, person, other):
    """Let two people of different hosts change places."""
    source, target = hosts.host[person], hosts.host[other]
    place, other_place = hosts.place[person], hosts.place[other]
    hosts.members[source, place], hosts.members[target, other_place] = other, person
    hosts.host[person], hosts.place[person] = target, other_place
    hosts.host[other], hosts.place[other] = source, place


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def anneal_pool(pool, cohorts, hosts, temperature, cooling, begin, steps, guidance, random):
    """Some steps of annealing, each for the next person; all state is in the arrays.

    A person moves to the host of a near one, to an open cohort or to a new group, or changes places with somebody; or
    a group divides or disperses.

    Parameters
    ----------
    pool : Pool
    cohorts : Cohorts
    hosts : Hosts
        Its losses are those for this guidance.
    temperature : float64, shape (1,)
    cooling : float
    begin, steps : int
    guidance : float
        See `group_loss`.
    random : uint64, shape (1,)
    """
    n, number = hosts.host.size, cohorts.people.size
    room = hosts.members.shape[1]
    heat = temperature[0]
    for step in range(begin, begin + steps):
        heat *= cooling
        person = step % n
        source = hosts.host[person]
        kind = below(random, 256)
        if kind < 4 and source >= number:
            divides = kind == 0 and hosts.vacant[0] > 0 and hosts.sizes[source] > 1
            step_of_group(pool, cohorts, hosts, source, divides, guidance, random, heat)
            continue
        target = np.int64(-1)
        if kind < 96 and number > 0:
            target = np.int64(pool.homes[person, below(random, pool.homes.shape[1])])
        elif kind < 104 and hosts.vacant[0] > 0 and (source < number or hosts.sizes[source] > 1):
            target = hosts.vacant[hosts.vacant[0]]
        elif kind < 152 and cohorts.empty.size > 0:
            # an empty slot calls somebody
            called = below(random, cohorts.empty.size)
            caller = np.int64(cohorts.callers[called, below(random, cohorts.callers.shape[1])])
            if caller >= 0:
                person, target = caller, cohorts.of_empty[called]
                source = hosts.host[person]
        if target < 0:
            target = hosts.host[pool.near[person, below(random, pool.near.shape[1])]]
        if target == source or (target < number and not is_home(pool.known, pool.homes, person, target)):
            continue
        before, target_before = hosts.losses[source], hosts.losses[target]
        exchange = hosts.sizes[target] > 0 and below(random, 2) == 0
        other = np.int64(-1)
        if exchange:
            other = partner(pool, cohorts, hosts, person, source, target, random)
            if source < number and not is_home(pool.known, pool.homes, other, source):
                continue
            change_places(hosts, person, other)
        elif hosts.sizes[target] == room:
            continue
        else:
            take_out(hosts, number, person)
            put_in(hosts, number, person, target)
        loss = host_loss(pool, cohorts, hosts.members, source, hosts.sizes[source], guidance, hosts.seen)
        target_loss = host_loss(pool, cohorts, hosts.members, target, hosts.sizes[target], guidance, hosts.seen)
        rise = loss + target_loss - before - target_before
        if rise < FORBIDDEN / 2 and accepts(random, rise, heat):
            hosts.losses[source], hosts.losses[target] = loss, target_loss
        elif exchange:
            change_places(hosts, person, other)
        else:
            take_out(hosts, number, person)
            put_in(hosts, number, person, source)
    temperature[0] = heat

"""Anneals the classes of one window of rows by moves that never break a class."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from kanon_duck.kernels import INNER, LANES, ZERO
from kanon_duck.kernels.satisfies import satisfies
from kanon_duck.kernels.simd import load, maximum, minimum, store, weigh

FIRST = ZERO
"""Place of a class's first row."""

CHANCES = np.int64(1 << 30)
"""How finely probabilities are told apart."""

DISSOLVE_EVERY = 50
"""One step in ``DISSOLVE_EVERY * k`` tries to dissolve a class, which takes longer than others."""


@njit(**INNER)
def pair_cost(codes, first, second, caps, weights):
    """Cost per row of the box around two rows: their distance."""
    cost = 0.0
    for lane in range(0, codes.shape[1], LANES):
        one, other = load(codes, first, lane), load(codes, second, lane)
        cost += weigh(minimum(one, other), maximum(one, other), caps, weights, lane)
    return cost


@njit(**INNER)
def loss_of_class(codes, members, number, first, stop, caps, weights):
    """Loss of the rows ``members[number, first:stop]``, at least one: their number times cost per row."""
    cost = 0.0
    for lane in range(0, codes.shape[1], LANES):
        low = load(codes, members[number, first], lane)
        high = low
        for position in range(first + 1, stop):
            row = load(codes, members[number, position], lane)
            low = minimum(low, row)
            high = maximum(high, row)
        cost += weigh(low, high, caps, weights, lane)
    return (stop - first) * cost


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def fill_losses(codes, members, sizes, losses, caps, weights):
    """Write the loss of every class that has rows."""
    for number in range(sizes.size):
        if sizes[number] > 0:
            losses[number] = loss_of_class(codes, members, number, FIRST, sizes[number], caps, weights)


@njit(**INNER)
def below(random, limit):
    """A random integer in [0, limit); ``random`` holds the state of a 64-bit xorshift generator.

    Source: G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (2003).
    """
    state = random[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    random[0] = state
    return np.int64(((state >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@njit(**INNER)
def accepts(random, rise, temperature):
    """Metropolis rule: a rise of the loss is accepted with probability exp(-rise / temperature)."""
    return rise <= 0.0 or below(random, CHANCES) < math.exp(-rise / temperature) * CHANCES


@njit(**INNER)
def lean_apart(codes, caps, weights, members, full, count, vacant, leaning):
    """Copy the rows of a class to the next free slot, in an order whose halves would make two good classes.

    Rows that lean to the first row come first, then those that lean to the row furthest from it. Returns
    the losses of the two halves, together no more than that of the class. ``leaning`` is scratch.
    """
    fresh = vacant[vacant[0]]
    seed = members[full, 0]
    other = seed
    furthest = -1.0
    for position in range(count):
        row = members[full, position]
        leaning[position] = pair_cost(codes, row, seed, caps, weights)
        if leaning[position] > furthest:
            other, furthest = row, leaning[position]
    for position in range(count):
        row = members[full, position]
        lean = leaning[position] - pair_cost(codes, row, other, caps, weights)
        earlier = position
        while earlier > 0 and leaning[earlier - 1] > lean:
            leaning[earlier] = leaning[earlier - 1]
            members[fresh, earlier] = members[fresh, earlier - 1]
            earlier -= 1
        leaning[earlier] = lean
        members[fresh, earlier] = row
    half = count // 2
    first_loss = loss_of_class(codes, members, fresh, FIRST, half, caps, weights)
    return first_loss, loss_of_class(codes, members, fresh, half, count, caps, weights)


@njit(inline="always", **INNER)
def halves_satisfy(members, fresh, count, demanded):
    """Whether both halves that `lean_apart` made of ``count`` rows may be classes."""
    half = count // 2
    return satisfies(members, fresh, 0, half, demanded) and satisfies(members, fresh, half, count, demanded)


@njit(**INNER)
def split(label, slot, members, sizes, losses, vacant, full, first_loss, second_loss):
    """Turn the halves that `lean_apart` left in the next free slot into classes of the given losses."""
    fresh = vacant[vacant[0]]
    vacant[0] -= 1
    count = sizes[full]
    half = count // 2
    for position in range(count):
        row = members[fresh, position]
        number, place = (full, position) if position < half else (fresh, position - half)
        members[number, place] = row
        slot[row] = place
        label[row] = number
    sizes[full], sizes[fresh] = half, count - half
    losses[full], losses[fresh] = first_loss, second_loss


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def split_large(codes, caps, weights, k, demanded, label, slot, members, sizes, losses, vacant, scratch):
    """Halve classes of 2k rows or more, and their halves, as long as the halves satisfy the predicate.

    The arguments are those of `anneal_steps`.
    """
    for number in range(sizes.size):
        while sizes[number] >= 2 * k:
            first_loss, second_loss = lean_apart(codes, caps, weights, members, number, sizes[number], vacant, scratch)
            if not halves_satisfy(members, vacant[vacant[0]], sizes[number], demanded):
                break
            split(label, slot, members, sizes, losses, vacant, number, first_loss, second_loss)


@njit(**INNER)
def dissolve(
    codes, caps, weights, neighbours, k, demanded, label, slot, members, sizes, losses, vacant,
    temperature, random, old, hosts, scratch,
):  # fmt: skip
    """Move the rows of a class, one by one, to the neighbouring class each is cheapest for.

    All is put back where a row finds no class with room, or the total is not accepted.
    """
    count = sizes[old]
    rise = -losses[old]
    placed = 0
    while placed < count:
        row = members[old, placed]
        best = -1
        best_rise = np.inf
        for nth in range(neighbours.shape[1]):
            host = label[neighbours[row, nth]]
            size = sizes[host] + 1
            if host == old or size >= 2 * k:
                continue
            members[host, size - 1] = row
            host_rise = loss_of_class(codes, members, host, FIRST, size, caps, weights) - losses[host]
            if host_rise < best_rise and satisfies(members, host, 0, size, demanded):
                best, best_rise = host, host_rise
        if best < 0:
            break
        label[row] = best
        slot[row] = sizes[best]
        members[best, sizes[best]] = row
        hosts[placed] = best
        scratch[placed] = losses[best]
        sizes[best] += 1
        losses[best] += best_rise
        rise += best_rise
        placed += 1
    if placed == count and accepts(random, rise, temperature):
        sizes[old] = 0
        losses[old] = 0.0
        vacant[0] += 1
        vacant[vacant[0]] = old
        return
    while placed > 0:
        placed -= 1
        label[members[old, placed]] = old
        slot[members[old, placed]] = placed
        sizes[hosts[placed]] -= 1
        losses[hosts[placed]] = scratch[placed]


@njit(**INNER)
def best_exchange(codes, caps, weights, row, members, source, others, target, count, prefixes, losses):
    """The row of another class for which it is best to change places with a row.

    O(k): the box of the other class without one of its rows is that of the rows before it and those after it.

    Parameters
    ----------
    source, others : int
        The row's class, and the rows of it besides the row: they stand first in ``members``.
    target, count : int
        The other class, and its rows.
    prefixes : dtype of ``codes``, shape (2, room for rows, LANES)
        Scratch.
    losses : float64, shape (room for rows,)
        Scratch.

    Returns
    -------
    position : int
        Of that row in its class.
    loss, moved_loss : float
        Loss of both classes after the exchange, and after the row has moved without one.
    """
    lows, highs = prefixes[0], prefixes[1]
    losses[:count] = 0.0
    moved_loss = 0.0
    for lane in range(0, codes.shape[1], LANES):
        low = load(codes, members[source, 0], lane)
        high = low
        for position in range(1, others):
            member = load(codes, members[source, position], lane)
            low, high = minimum(low, member), maximum(high, member)
        before_low = load(codes, row, lane)
        before_high = before_low
        after_low, after_high = before_low, before_high
        for position in range(count):
            store(lows, position, 0, before_low)
            store(highs, position, 0, before_high)
            member = load(codes, members[target, position], lane)
            before_low, before_high = minimum(before_low, member), maximum(before_high, member)
        moved_loss += others * weigh(low, high, caps, weights, lane)
        moved_loss += (count + 1) * weigh(before_low, before_high, caps, weights, lane)
        for position in range(count - 1, -1, -1):
            member = load(codes, members[target, position], lane)
            source_cost = weigh(minimum(low, member), maximum(high, member), caps, weights, lane)
            target_low = minimum(load(lows, position, 0), after_low)
            target_high = maximum(load(highs, position, 0), after_high)
            target_cost = weigh(target_low, target_high, caps, weights, lane)
            losses[position] += (others + 1) * source_cost + count * target_cost
            after_low, after_high = minimum(after_low, member), maximum(after_high, member)
    best = 0
    for position in range(1, count):
        if losses[position] < losses[best]:
            best = position
    return best, losses[best], moved_loss


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def anneal_steps(
    codes, caps, weights, neighbours, k, demanded, label, slot, members, sizes, losses, vacant,
    temperature, cooling, begin, steps, random, hosts, scratch, prefixes,
):  # fmt: skip
    """Some steps of annealing, each for the next row; all state is in the arrays, so that the next call goes on.

    Guarantee: every class satisfies the predicate after every step, because a step is taken only when
    both classes that it changes satisfy it.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    caps, weights : as in ``Encoding``
    neighbours : int32, shape (n, count)
        Rows near each row; the row itself where there are fewer.
    k : int
    demanded : int or Requirement
        What `satisfies` takes.
    label, slot : int64, shape (n,)
        Class of each row, and its position there.
    members : int32, shape (slots for classes, room for rows)
        Rows of each class; a slot for every ``k`` rows, room for 2k rows or the largest class.
    sizes : int64; losses : float64, shape (slots for classes,)
    vacant : int64, shape (slots for classes + 1,)
        A stack of the free slots; its first element is their number.
    temperature : float64, shape (1,)
    cooling : float
        What the temperature is multiplied with at every step.
    begin, steps : int
        Steps made before, and to be made.
    random : uint64, shape (1,)
    hosts : int64; scratch : float64, shape (room for rows,)
    prefixes : dtype of ``codes``, shape (2, room for rows, LANES)
        Scratch.
    """
    heat = temperature[0]
    for step in range(begin, begin + steps):
        heat *= cooling
        row = step % label.size
        near = neighbours[row, below(random, neighbours.shape[1])]
        if label[near] == label[row]:
            continue
        source, target = label[row], label[near]

        if below(random, DISSOLVE_EVERY * k) == 0:
            dissolve(
                codes, caps, weights, neighbours, k, demanded, label, slot, members, sizes, losses, vacant,
                heat, random, source, hosts, scratch,
            )  # fmt: skip
            continue

        # take the row out of its class, the last one stepping into its place; the row of the target for
        # which that is best comes in exchange, or none, if that is better and leaves a class that may stand
        position = slot[row]
        source_size, target_size = sizes[source], sizes[target]
        other = members[source, source_size - 1]
        members[source, position] = other
        other_position, loss, moved_loss = best_exchange(
            codes, caps, weights, row, members, source, source_size - 1, target, target_size, prefixes, scratch
        )
        exchange, splits = True, False
        first_loss = second_loss = 0.0
        if source_size > k:
            splits = target_size + 1 >= 2 * k
            if splits:
                members[target, target_size] = row
                first_loss, second_loss = lean_apart(
                    codes, caps, weights, members, target, target_size + 1, vacant, scratch
                )
                moved_loss = loss_of_class(codes, members, source, FIRST, source_size - 1, caps, weights)
                moved_loss += first_loss + second_loss
            exchange = loss <= moved_loss or not satisfies(members, source, 0, source_size - 1, demanded)
        if exchange:
            splits = False
            other = members[target, other_position]
            members[source, position] = other
        else:
            loss = moved_loss
            other_position = target_size
            source_size, target_size = source_size - 1, target_size + 1
        members[target, other_position] = row
        rise = loss - losses[source] - losses[target]
        stands = accepts(random, rise, heat)  # the dearer questions come last
        if stands and splits:
            stands = halves_satisfy(members, vacant[vacant[0]], target_size, demanded)
        elif stands:
            stands = satisfies(members, target, 0, target_size, demanded)
        if stands and satisfies(members, source, 0, source_size, demanded):
            slot[other] = position
            slot[row] = other_position
            label[row] = target
            if exchange:
                label[other] = source
            sizes[source], sizes[target] = source_size, target_size
            losses[source] = loss_of_class(codes, members, source, FIRST, source_size, caps, weights)
            if splits:
                split(label, slot, members, sizes, losses, vacant, target, first_loss, second_loss)
            else:
                losses[target] = loss_of_class(codes, members, target, FIRST, target_size, caps, weights)
        else:
            members[source, position] = row
            members[target, other_position] = other
    temperature[0] = heat

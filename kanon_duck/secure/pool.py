"""Homes for the people who wait: which form groups, which fill empty slots, and which join a cohort as company.

Simulated annealing over the pool (Kirkpatrick, Gelatt & Vecchi 1983), window by window of an order in which near
people stand close together. Every window has random numbers of its own, so the result does not depend on the number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.cut import cut
from kanon_duck.clustering.order import order
from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels import LANES
from kanon_duck.kernels.satisfies import Requirement
from kanon_duck.kernels.secure_near import find_callers, find_homes, find_near
from kanon_duck.kernels.secure_pool import NO_CANDIDATE, Cohorts, Hosts, Pool, anneal_pool, fill_host_losses
from kanon_duck.privacy.requirement import Demand
from kanon_duck.runtime.parallel import Checkpoint, run
from kanon_duck.secure.bounds import Bounds

Integers = NDArray[np.int64]

WINDOW = 1 << 12
"""People of a window."""

NEIGHBOURS, ALIKE = 24, 6
"""People found near each person, and how many of these have the same value."""

FILLS, COMPANIES = 8, 12
"""Open cohorts found for each person: with an empty slot of the same value, and for company."""

CALLERS = 12
"""People found for each empty slot, with its value."""

HOT, COLD = 0.3, 0.03
"""First and last temperature, in what a row of the series loses."""

MOST_STEPS = 1_500_000
"""Steps of annealing for the whole pool: large pools get fewer for each person."""

FEWEST, MOST_COMPARED = 64, 20_000_000
"""People looked at beside each person, to either side, and in all."""

GUIDANCE = 0.5
"""What a group that lacks little saves of its waiting, at the start; it falls to nothing."""

STRETCHES = 24
"""Stretches of constant guidance; the last quarter is without."""

ROOM = 48
"""Most people of the pool in one host."""


@dataclass(frozen=True)
class Waiting:
    """The people of the pool.

    Attributes
    ----------
    person, value : int64, shape (n,)
    price : float64, shape (n,)
        What it costs that one waits, in units of loss.
    known : int64, shape (n,)
        0 for one who was never in a release; else 1 + the place among those who were.
    allowed_stops, allowed, allowed_counts : int64
        Of those who were: values that all former slots can have, and in how many rows.
    former_root : int64
        Of those who were: the cohort that the last one descends from.
    """

    person: Integers
    value: Integers
    price: NDArray[np.float64]
    known: Integers
    allowed_stops: Integers
    allowed: Integers
    allowed_counts: Integers
    former_root: Integers

    def take(self, chosen: Integers) -> Waiting:
        """Some of these people."""
        known = self.known[chosen]
        numbers = known[known > 0] - 1
        renumbered = np.zeros(len(chosen), np.int64)
        renumbered[known > 0] = np.arange(1, len(numbers) + 1)
        places, stops = _slices(self.allowed_stops, numbers)
        return Waiting(
            self.person[chosen],
            self.value[chosen],
            self.price[chosen],
            renumbered,
            stops,
            self.allowed[places],
            self.allowed_counts[places],
            self.former_root[numbers],
        )


@dataclass(frozen=True)
class Open:
    """Cohorts with empty slots.

    Attributes
    ----------
    cohort, people, root : int64, shape (cohorts,)
        Number, people who hold a slot, and the cohort from which it descends.
    some : int64, shape (cohorts,)
        One of these people.
    low, high : shape (cohorts, width)
    empty_stops, empty : int64
        Values of the empty slots of each, rising.
    hiding : bool, shape (empty slots,)
        Whether the cohort is not shown as long as the slot is empty; of equal values, these come first.
    door : bool, shape (empty slots,)
    goes : int64, shape (empty slots,)
        See ``Cohorts``.
    saving : float64, shape (empty slots,)
        What is saved when the slot is filled.
    takes : int64, shape (cohorts,)
        Whether each takes company: never, or as ``Cohorts`` says.
    offer_stops, offered, counts : int64
        Values that each offers, rising, and on how many slots.
    """

    cohort: Integers
    people: Integers
    root: Integers
    some: Integers
    low: NDArray[np.unsignedinteger]
    high: NDArray[np.unsignedinteger]
    empty_stops: Integers
    empty: Integers
    hiding: NDArray[np.bool_]
    door: NDArray[np.bool_]
    goes: Integers
    saving: NDArray[np.float64]
    takes: Integers
    offer_stops: Integers
    offered: Integers
    counts: Integers

    def take(self, chosen: Integers) -> Open:
        """Some of these cohorts."""
        empties, empty_stops = _slices(self.empty_stops, chosen)
        offers, offer_stops = _slices(self.offer_stops, chosen)
        return Open(
            self.cohort[chosen],
            self.people[chosen],
            self.root[chosen],
            self.some[chosen],
            self.low[chosen],
            self.high[chosen],
            empty_stops,
            self.empty[empties],
            self.hiding[empties],
            self.door[empties],
            self.goes[empties],
            self.saving[empties],
            self.takes[chosen],
            offer_stops,
            self.offered[offers],
            self.counts[offers],
        )


def _slices(stops: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Places of the elements of some lists that stand one behind the other, and where the lists then end."""
    starts = np.where(chosen > 0, stops[chosen - 1], 0) if len(stops) else np.zeros(0, np.int64)
    lengths = (stops[chosen] - starts) if len(stops) else np.zeros(0, np.int64)
    new_stops = np.cumsum(lengths)
    return np.repeat(starts - new_stops + lengths, lengths) + np.arange(int(lengths.sum())), new_stops


def find_places(
    encoding: Encoding,
    waiting: Waiting,
    cohorts: Open,
    bounds: Bounds,
    hidden_price: float,
    crowding: float,
    steps_per_person: float,
    seed: int,
    checkpoint: Checkpoint,
    groups: Integers | None = None,
) -> tuple[Integers, Integers]:
    """Find a place for everybody whom one can be found for.

    Parameters
    ----------
    encoding : Encoding
        Of all people.
    waiting : Waiting
    cohorts : Open
    bounds : Bounds
    hidden_price : float
        What it costs that a person of a cohort is not shown.
    crowding : float
        What each person of a new group costs for each of them.
    steps_per_person : float
    seed : int
    checkpoint : function
        See ``parallel.run``.
    groups : int64, shape (n,), optional
        Group to begin with, of each person.

    Returns
    -------
    cohort : int64, shape (n,)
        Place among the open cohorts; -1 for none.
    group : int64, shape (n,)
        Number of the new group, from 0; -1 for none. Who has neither waits.
    """
    n = len(waiting.person)
    if n == 0:
        return np.full(0, -1), np.full(0, -1)
    both = np.concatenate([waiting.person, cohorts.some])
    ordered = order(replace(encoding, codes=encoding.codes.take(both, axis=0)), bounds.k, checkpoint)
    rank = np.empty(len(both), np.int64)
    rank[ordered] = np.arange(len(both))
    windows = max(1, round(n / WINDOW))
    if groups is not None:  # a group lies in one window
        middle = np.bincount(groups, rank[:n]) / np.maximum(np.bincount(groups), 1)
        sorted_people = np.lexsort((rank[:n], groups, middle[groups]))
        key = middle[groups]
    else:
        sorted_people = np.argsort(rank[:n])
        key = rank[:n].astype(np.float64)
    borders = key[sorted_people[np.linspace(0, n, windows + 1).astype(np.int64)[1:-1]]]
    window = np.searchsorted(borders, key, side="right")
    window_of_cohort = np.searchsorted(borders, rank[n:], side="right")
    steps_per_person = min(steps_per_person, MOST_STEPS / n)
    reach = int(np.clip(MOST_COMPARED // n, FEWEST, WINDOW))
    cohort, group, counts = np.full(n, -1), np.full(n, -1), np.zeros(windows, np.int64)

    def improve(which: int, pause: Callable[[], None]) -> None:
        rows = sorted_people[window[sorted_people] == which]
        near = np.flatnonzero(window_of_cohort == which)
        near = near[np.argsort(rank[n:][near])]
        generator = np.random.default_rng([seed, which])
        found, own_groups = _place_window(
            encoding, waiting.take(rows), cohorts.take(near), rank[rows], rank[n:][near], bounds, hidden_price,
            crowding, reach, steps_per_person, generator, pause, None if groups is None else groups[rows],
        )  # fmt: skip
        cohort[rows] = np.where(found >= 0, near[found] if len(near) else -1, -1)
        group[rows] = own_groups
        counts[which] = own_groups.max(initial=-1) + 1

    run([partial(improve, which) for which in range(windows)], checkpoint)
    group[group >= 0] += (np.cumsum(counts) - counts)[window[group >= 0]]
    return cohort, group


def _place_window(
    encoding: Encoding,
    waiting: Waiting,
    cohorts: Open,
    rank: Integers,
    cohort_rank: Integers,
    bounds: Bounds,
    hidden_price: float,
    crowding: float,
    reach: int,
    steps_per_person: float,
    generator: np.random.Generator,
    pause: Callable[[], None],
    groups: Integers | None,
) -> tuple[Integers, Integers]:
    """Place the people of one window; see `find_places`."""
    n, number = len(waiting.person), len(cohorts.cohort)
    if n == 0:
        return np.full(0, -1), np.full(0, -1)
    codes = encoding.codes.take(waiting.person, axis=0)
    near = np.empty((n, NEIGHBOURS), np.int32)
    find_near(codes, encoding.caps, encoding.weights, waiting.value, reach, ALIKE, np.full(near.shape, np.inf), near)
    pause()
    homes = np.full((n, FILLS + COMPANIES), NO_CANDIDATE, np.int32)
    find_homes(
        codes, encoding.caps, encoding.weights, waiting.value, waiting.known, waiting.allowed_stops, waiting.allowed,
        waiting.allowed_counts, waiting.former_root, rank, cohorts.low, cohorts.high, cohorts.people, cohorts.root,
        cohort_rank, cohorts.empty_stops, cohorts.empty, cohorts.takes, cohorts.offer_stops, cohorts.offered,
        cohorts.counts, bounds.attribute_values, bounds.required, bounds.k, 2 * reach, FILLS,
        np.full(homes.shape, np.inf), homes,
    )  # fmt: skip
    pause()
    callers = np.full((len(cohorts.empty), CALLERS), NO_CANDIDATE, np.int32)
    find_callers(
        codes, encoding.caps, encoding.weights, waiting.value, rank, cohorts.low, cohorts.high, cohorts.people,
        cohort_rank, cohorts.empty_stops, cohorts.empty, 2 * reach, np.full(callers.shape, np.inf), callers,
    )  # fmt: skip
    pause()
    of_empty = np.repeat(np.arange(number), np.diff(cohorts.empty_stops, prepend=0))
    traits = bounds.traits(waiting.value)
    pool = Pool(
        codes, encoding.caps, encoding.weights, waiting.price, waiting.value, traits, waiting.known,
        waiting.allowed_stops, waiting.allowed, waiting.allowed_counts, bounds.required, bounds.k, crowding, near,
        homes,
    )  # fmt: skip
    opened = Cohorts(
        cohorts.low, cohorts.high, cohorts.people, cohorts.empty_stops, cohorts.empty, cohorts.hiding, cohorts.saving,
        of_empty, cohorts.door, cohorts.goes, callers, cohorts.takes, hidden_price,
    )  # fmt: skip
    if groups is None:
        groups = _first_groups(replace(encoding, codes=codes), waiting, traits, bounds, pause)
    starts = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    room = max(ROOM, int(np.bincount(starts).max()) + 2)
    hosts = _hosts(number, number + starts, room, int(traits.max(initial=0)) + 2, codes.dtype)
    steps = max(1, int(steps_per_person * n))
    random = generator.integers(1, 2**63, 1, dtype=np.uint64)
    temperature = np.array([HOT])
    cooling = (COLD / HOT) ** (1 / steps)
    for stretch in range(STRETCHES):
        guidance = GUIDANCE * max(0.0, 1.0 - stretch / (0.75 * STRETCHES))
        fill_host_losses(pool, opened, hosts, guidance)
        begin, end = stretch * steps // STRETCHES, (stretch + 1) * steps // STRETCHES
        for first in range(begin, end, 1 << 16):
            pause()
            anneal_pool(pool, opened, hosts, temperature, cooling, first, min(1 << 16, end - first), guidance, random)
    return _placed(pool, opened, hosts)


def _first_groups(
    encoding: Encoding, waiting: Waiting, traits: Integers, bounds: Bounds, pause: Callable[[], None]
) -> Integers:
    """Groups to begin with: the best cut of the order for those who were never in a release, others by themselves."""
    n = len(waiting.person)
    groups = np.arange(n)
    new = np.flatnonzero(waiting.known == 0)
    if len(new) >= bounds.k:
        demanded: Demand = bounds.k
        if len(bounds.required):
            most, none = int(bounds.required.max()), np.empty(0, np.int64)
            values = np.ascontiguousarray(traits[new].T)
            demanded = Requirement(
                max(bounds.k, most), bounds.k, none, 1, values, values, most, 0, 0.0, 0.0, 0, 1.0, None
            )  # fmt: skip
        own = replace(encoding, codes=encoding.codes[new])
        groups[new] = n + cut(own, np.arange(len(new)), demanded, lambda _share: pause())
    return groups


def _hosts(cohorts: int, host: Integers, room: int, traits: int, dtype: Any) -> Hosts:
    """Everybody in a group; there is one for each person."""
    n = len(host)
    members = np.zeros((cohorts + n, room), np.int32)
    sizes = np.bincount(host, minlength=cohorts + n)
    arranged = np.argsort(host, kind="stable")
    place = np.empty(n, np.int64)
    place[arranged] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members[host, place] = np.arange(n)
    free = cohorts + np.flatnonzero(sizes[cohorts:] == 0)[::-1]
    vacant = np.zeros(n + 1, np.int64)
    vacant[: len(free) + 1] = len(free), *free
    scratch = np.zeros(2 * n + room + 1, np.int64)
    return Hosts(
        host, place, members, sizes, np.zeros(cohorts + n), vacant, scratch, scratch.copy(),
        np.zeros(traits, np.int64), np.empty((2, room, LANES), dtype), np.empty(room),
    )  # fmt: skip


def _placed(pool: Pool, opened: Cohorts, hosts: Hosts) -> tuple[Integers, Integers]:
    """Who has a place; the others' hosts cost what their waiting does."""
    fill_host_losses(pool, opened, hosts, 0.0)
    losses = hosts.losses.copy()
    # a host is shown if its loss does not depend on the price of waiting
    dearer = opened._replace(hidden_price=opened.hidden_price + 1.0)
    fill_host_losses(pool._replace(price=pool.price + 1.0), dearer, hosts, 0.0)
    shown = hosts.losses == losses
    in_cohort = hosts.host < len(opened.people)
    cohort = np.where(in_cohort & shown[hosts.host], hosts.host, -1)
    group = np.full(len(hosts.host), -1)
    placed = ~in_cohort & shown[hosts.host]
    group[placed] = np.unique(hosts.host[placed], return_inverse=True)[1]
    return cohort, group

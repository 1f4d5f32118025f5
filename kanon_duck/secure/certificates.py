"""Certificates: for each person, values that stay possible over the whole series, and why.

An *assignment* gives every person one value, and every counterfeit of every release one; it is consistent where it
reproduces every class of every release. A value is possible for a person if some consistent assignment gives it. The
true assignment is consistent; others come from it by exchanges (``docs/secure-releases.md`` has the proofs):

exchange of base slots a and b of a cohort
    All who ever hold a get b's value, and the other way round. Slots that were born together have always been shown
    together. Of a daughter's slots, born in the other cohort at t(a) < t(b) while the witness e was empty: there e has
    b's value, and a base slot with that value has e's; and from t(a) to t(b) e's row has a's value instead.
company
    A slot y came when the holder of its witness i changed. y may have the value of any base slot j of the cohort: i and
    j are exchanged, and from then on the values of y and i.
links
    Who has held several slots, and whoever has held one of these, may have a value that each of these slots can have,
    as long as the exchanges in the different cohorts touch no slot twice.

An exchange with a slot uses it for one person's certificate; another person's certificate may use it again, since every
certificate is an assignment of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_duck.errors import RefusedReleaseError
from kanon_duck.kernels.atoms import in_lists
from kanon_duck.kernels.secure_values import count_values, list_values
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.state import NONE, STILL, SeriesState

Integers = NDArray[np.int64]

PERMUTATION, COMPANY, MOVE = 0, 1, 2
RULES = ("permutation", "company", "move")
"""Names of the rules, by code."""


class UncertifiedError(RefusedReleaseError):
    """A release that would have been published has people without a certificate."""


@dataclass(frozen=True)
class Offer:
    """Values of the static base slots of each cohort, which others may be assigned by an exchange.

    Attributes
    ----------
    keys : int64, shape (pairs,)
        ``cohort * tuples + value``, rising and different.
    counts : int64, same shape
        Static base slots of the cohort with the value.
    stops : int64, shape (cohorts,)
        Where the keys of each cohort end.
    tuples : int
    """

    keys: Integers
    counts: Integers
    stops: Integers
    tuples: int

    def count(self, cohort: Integers, value: Integers) -> Integers:
        """Static base slots of cohorts with values."""
        if not len(self.keys):
            return np.zeros(len(cohort), np.int64)
        wanted = cohort * self.tuples + value
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, self.counts[place], 0)

    def expanded(self, cohort: Integers) -> tuple[Integers, Integers, Integers]:
        """Which of the given cohorts, value, and number of static base slots of each of their pairs."""
        starts = np.where(cohort > 0, self.stops[cohort - 1], 0)
        lengths = self.stops[cohort] - starts
        place = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return np.repeat(np.arange(len(cohort)), lengths), self.keys[place] % self.tuples, self.counts[place]


def offer(state: SeriesState, bounds: Bounds, static: NDArray[np.bool_] | None = None) -> Offer:
    """What the cohorts of a state offer."""
    base = np.flatnonzero((state.witness == NONE) & (state.static() if static is None else static))
    ends, values = in_lists(state.cohort[base], state.value[base], state.cohorts)
    distinct, counts = np.empty(len(base), np.int64), np.empty(len(base), np.int64)
    stops = np.empty(state.cohorts, np.int64)
    found = count_values(np.append(0, ends), values, distinct, counts, stops)
    of_cohort = np.repeat(np.arange(state.cohorts), np.diff(stops, prepend=0))
    return Offer(of_cohort * bounds.tuples + distinct[:found], counts[:found], stops, bounds.tuples)


def sound_cohorts(state: SeriesState, bounds: Bounds, offered: Offer) -> NDArray[np.bool_]:
    """Which cohorts have k static base slots with diverse enough values."""
    cohort = offered.keys // bounds.tuples
    rows = np.bincount(cohort, offered.counts, minlength=state.cohorts)
    return (rows >= bounds.k) & bounds.diverse(offered.stops, offered.keys % bounds.tuples)


def sound_daughters(state: SeriesState, bounds: Bounds, offered: Offer) -> NDArray[np.bool_]:
    """Which cohorts have base slots that can all be exchanged, in enough rows of all classes that they were in.

    Guarantee: a daughter is sound only if the other cohort offers all its values, and k rows have the same values in
    both. Cohorts that are no daughters always are.
    """
    daughter = (state.origin[state.cohort] != NONE) & (state.witness == NONE)
    cohort = state.cohort[daughter]
    missing = offered.count(state.cohort[state.origin[cohort]], state.value[daughter]) == 0
    sound = np.ones(state.cohorts, bool)
    sound[cohort[missing]] = False
    daughters = np.flatnonzero(state.origin != NONE)
    sound[daughters[rows_in_both(state, offered, daughters) < bounds.k]] = False
    return sound


def rows_in_both(state: SeriesState, offered: Offer, daughters: Integers) -> Integers:
    """Rows that daughters and the cohorts they parted from have in common, by value, whenever somebody was in both.

    In the other cohort these are its static base slots, and those of the daughter that were born first.
    """
    base = np.flatnonzero((state.origin[state.cohort] != NONE) & (state.witness == NONE) & state.static())
    first = np.full(state.cohorts, np.iinfo(np.int64).max)
    np.minimum.at(first, state.cohort[base], state.born[base])
    oldest = base[state.born[base] == first[state.cohort[base]]]
    keys, counts = np.unique(state.cohort[oldest] * offered.tuples + state.value[oldest], return_counts=True)
    which, value, count = offered.expanded(daughters)
    other = offered.count(state.cohort[state.origin[daughters]][which], value)
    if len(keys):
        wanted = daughters[which] * offered.tuples + value
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        other += np.where(keys[place] == wanted, counts[place], 0)
    return np.bincount(which, np.minimum(count, other), minlength=len(daughters)).astype(np.int64)


def roots(state: SeriesState) -> Integers:
    """The cohort from which each descends: exchanges in cohorts of different roots touch no slot twice."""
    root = np.arange(state.cohorts)
    while True:
        origin = state.origin[root]
        if np.all(origin == NONE):
            return root
        root = np.where(origin == NONE, root, state.cohort[origin])


@dataclass(frozen=True)
class Links:
    """Groups of linked slots, and the values that those who held them may have.

    Attributes
    ----------
    slots : int64, shape (linked slots,)
        By group.
    group : int64, same shape
        From 0.
    stops : int64, shape (groups,)
        Where the values of each group end.
    values : int64
        The values possible for each group, its own included; by group.
    rows : int64, shape (groups,)
        Rows with these values that all its cohorts have in common, and its own.
    sound : bool, shape (groups,)
    """

    slots: Integers
    group: Integers
    stops: Integers
    values: Integers
    rows: Integers
    sound: NDArray[np.bool_]


def examine_links(state: SeriesState, bounds: Bounds, offered: Offer, static: NDArray[np.bool_]) -> Links:
    """Find what is possible for those who have held linked slots.

    Guarantee: a group is sound only if its slots lie in cohorts of different roots, k rows have the same values in all
    of these, and the values that all of them offer, with the group's own, are diverse enough.
    """
    slots = np.flatnonzero(~static)
    slots = slots[np.argsort(state.link[slots], kind="stable")]
    _, first, group = np.unique(state.link[slots], return_index=True, return_inverse=True)
    groups, cohort = len(first), state.cohort[slots]
    # whoever holds a base slot of a daughter was in the other cohort before
    parted = (state.witness[slots] == NONE) & (state.origin[cohort] != NONE)
    been_in = np.concatenate([cohort, state.cohort[state.origin[cohort[parted]]]])
    of_group = np.concatenate([group, group[parted]])
    size = np.bincount(of_group, minlength=groups)
    which, value, count = offered.expanded(been_in)
    # values that every cohort of the group offers
    keys, place, times = np.unique(of_group[which] * bounds.tuples + value, return_inverse=True, return_counts=True)
    least = np.full(len(keys), np.iinfo(np.int64).max)
    np.minimum.at(least, place, count)
    common = times == size[keys // bounds.tuples]
    keys, least = keys[common], least[common]
    own = np.arange(groups) * bounds.tuples + state.value[slots[first]]
    pairs = np.union1d(keys, own)
    stops = np.searchsorted(pairs, bounds.tuples * np.arange(1, groups + 1))
    sound = bounds.diverse(stops, pairs % bounds.tuples)
    rows = 1 + np.bincount(keys // bounds.tuples, least, minlength=groups).astype(np.int64)
    sound &= rows >= bounds.k
    root = roots(state)[state.cohort[slots]]
    different = np.bincount(np.unique(group * state.cohorts + root) // max(state.cohorts, 1), minlength=groups)
    sound &= different == np.bincount(group, minlength=groups)
    return Links(slots, group, stops, pairs % bounds.tuples, rows, sound)


def gone_rightly(state: SeriesState, offered: Offer, static: NDArray[np.bool_], slots: Integers) -> NDArray[np.bool_]:
    """Which slots that were taken away went beside a base slot that is there and has been for as long as they.

    Guarantee: of those taken away in the present release, the holder of that slot changes in it. It is the witness, or
    the cohort formed at once and offers the value.
    """
    door, cohort = state.beside[slots], state.cohort[slots]
    right = static[door] & (state.cohort[door] == cohort) & (state.witness[door] == NONE)
    right &= state.born[door] <= state.born[slots]
    new = state.empty_until[slots] == state.release
    right &= ~(new & unchanged(state, door))
    elsewhere = (state.origin[cohort] == NONE) & (offered.count(cohort, state.value[slots]) > 0)
    return right & ((state.witness[slots] == door) | ((state.witness[slots] != NONE) & elsewhere))


@dataclass(frozen=True)
class Failures:
    """What is not sound in a state.

    Attributes
    ----------
    cohorts : int64
        Cohorts that are to blame: each has lost, to a link or a split, what somebody's certificate needs.
    """

    cohorts: Integers


def unchanged(state: SeriesState, slots: Integers) -> NDArray[np.bool_]:
    """Which slots somebody holds in the present release who held them in the one before."""
    before, since = state.empty_from[slots], state.empty_until[slots]
    return (before == NONE) | (before > state.release) | (since < state.release)


def failures(state: SeriesState, bounds: Bounds) -> Failures:
    """Find what is not sound.

    Guarantee: where nothing is found, everybody who has ever been in a release has a certificate.
    """
    static = state.static()
    offered = offer(state, bounds, static)
    bad = np.zeros(state.cohorts, bool)
    used = np.bincount(state.cohort[state.witness == NONE], minlength=state.cohorts) > 0
    bad[used & ~sound_cohorts(state, bounds, offered)] = True
    lost = np.flatnonzero(~sound_daughters(state, bounds, offered))
    bad[lost] = True
    bad[state.cohort[state.origin[lost]]] = True
    witness = np.concatenate([state.witness[state.witness != NONE], state.origin[state.origin != NONE]])
    bad[state.cohort[witness[~static[witness]]]] = True
    apart = state.witness != NONE
    apart &= state.cohort[np.maximum(state.witness, 0)] != state.cohort
    bad[state.cohort[apart]] = True
    new = np.flatnonzero((state.witness != NONE) & (state.born == state.release))
    bad[state.cohort[new[unchanged(state, state.witness[new])]]] = True
    gone = np.flatnonzero(state.gone())
    bad[state.cohort[gone[~gone_rightly(state, offered, static, gone)]]] = True
    links = examine_links(state, bounds, offered, static)
    bad[state.cohort[links.slots[~links.sound[links.group]]]] = True
    return Failures(np.flatnonzero(bad))


def verify(state: SeriesState, bounds: Bounds) -> None:
    """Refuse a state in which somebody has no certificate.

    Raises
    ------
    UncertifiedError
    """
    found = failures(state, bounds)
    if len(found.cohorts):
        raise UncertifiedError(
            f"{len(found.cohorts)} cohorts have people without a certificate, among them cohort {found.cohorts[0]}: "
            "nothing is released"
        )


@dataclass(frozen=True)
class Certificates:
    """What stays possible for some people.

    Attributes
    ----------
    person : int64, shape (people,)
    slot : int64, same shape
        The slot that the person holds, or held last.
    rule : int64, same shape
        Index into ``RULES``.
    stops : int64, same shape
        Where the values of each person end.
    values : int64
        Codes of tuples, rising; the person's own is among them.
    candidates : int64, shape (people,)
        Rows that have one of these values in every class that the person was in: at least so many, of its base slots,
        and of each value no more than the class with fewest has.
    """

    person: Integers
    slot: Integers
    rule: Integers
    stops: Integers
    values: Integers
    candidates: Integers


def certificates(state: SeriesState, bounds: Bounds, people: Integers) -> Certificates:
    """The certificates of some people, each of whom is or has been in a release.

    Their assignments are those of the module's description, with the person's slot (each slot of its group, for links)
    and, for each value, any static base slot of its cohort that has the value.
    """
    slot = state.slot[people]
    static = state.static()
    offered = offer(state, bounds, static)
    links = examine_links(state, bounds, offered, static)
    is_linked = ~static[slot]
    rule = np.where(is_linked, MOVE, np.where(state.witness[slot] != NONE, COMPANY, PERMUTATION))
    # the values of each cohort, and behind them those of each group of linked slots
    stops = np.append(offered.stops, len(offered.keys) + links.stops)
    values = np.append(offered.keys % bounds.tuples, links.values)
    group_of_slot = np.full(state.slots, NONE)
    group_of_slot[links.slots] = links.group
    group = np.where(is_linked, state.cohorts + group_of_slot[slot], state.cohort[slot])
    list_stops = np.empty(len(people), np.int64)
    listed = np.empty(int((np.diff(stops, prepend=0)[group] + 1).sum()), np.int64)
    list_values(group, stops, values, state.value[slot], list_stops, listed)
    cohort_rows = np.bincount(offered.keys // bounds.tuples, offered.counts, minlength=state.cohorts).astype(np.int64)
    candidates = cohort_rows[state.cohort[slot]] + (rule == COMPANY)
    in_daughter = np.flatnonzero((rule == PERMUTATION) & (state.origin[state.cohort[slot]] != NONE))
    candidates[in_daughter] = rows_in_both(state, offered, state.cohort[slot[in_daughter]])
    candidates[is_linked] = links.rows[group_of_slot[slot[is_linked]]]
    return Certificates(people, slot, rule, list_stops, listed[: list_stops[-1] if len(people) else 0], candidates)


def assignment(state: SeriesState, bounds: Bounds, person: int, value: int) -> dict[int, int]:
    """Who has another value than the true one in an assignment in which a person has a value; see the module.

    For owners and tests: O(slots) for each call.

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
    static = state.static()

    gone = state.gone()

    def give(slot: int, new: int, since: int = NONE, until: int = STILL) -> None:
        for each in np.flatnonzero((state.slot == slot) & (state.since >= since) & (state.since < until)):
            given[int(each)] = int(new)

    def partner(cohort: int, wanted: int) -> int:
        base = static & (state.witness == NONE) & (state.cohort == cohort) & (state.value == wanted)
        return int(np.flatnonzero(base)[0])

    def exchange(first: int, second: int) -> None:
        give(first, state.value[second])
        give(second, state.value[first])
        earlier, later = (first, second) if state.born[first] <= state.born[second] else (second, first)
        origin = state.origin[state.cohort[first]]
        if origin != NONE and state.born[earlier] < state.born[later] and state.value[later] != state.value[origin]:
            exchange(origin, partner(state.cohort[origin], state.value[later]))

    def came_and_went(slot: int) -> None:
        witness, door, cohort = state.witness[slot], state.beside[slot], state.cohort[slot]
        four = {witness, door, partner(cohort, value), partner(cohort, state.value[slot])}
        left = [int(state.value[each]) for each in sorted(four)]
        left.remove(value)
        left.remove(state.value[slot])
        for each in sorted(four - {witness, door}):
            give(each, left.pop())
        give(witness, value, NONE, state.born[slot])
        give(witness, state.value[slot], state.born[slot])
        give(door, state.value[slot], NONE, state.empty_until[slot])
        give(door, value, state.empty_until[slot])
        give(slot, value)

    for slot in np.flatnonzero(state.link == state.link[own]).tolist():
        witness = state.witness[slot]
        if witness == NONE:
            exchange(slot, partner(state.cohort[slot], value))
            continue
        if gone[slot] and state.beside[slot] != witness:
            came_and_went(slot)
            continue
        if value != state.value[witness]:
            exchange(witness, partner(state.cohort[witness], value))
        give(slot, value)
        give(witness, state.value[slot], state.born[slot], state.empty_until[slot] if gone[slot] else STILL)
    return given

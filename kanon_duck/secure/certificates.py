"""Certificates: for each person, values that stay possible over the whole series, and why.

An *assignment* gives every person one value, and every counterfeit of every release one; it is consistent where it
reproduces every class of every release. A value is possible for a person if some consistent assignment gives it. The
true assignment is consistent; others come from it by exchanges (``docs/secure-releases.md`` has the proofs):

exchange of base slots a and b of a cohort
    All who ever hold a get b's value, and the other way round. Slots that were born together have always been shown
    together. For a slot that has parted from its witness, the witness has the slot's new value before the slot was
    born, and its old value from then on, in place of another original slot of the witness's cohort.
company
    A slot y came when the holder of its witness i changed. y may have the value of any base slot j of the cohort: i and
    j are exchanged, and from then on the values of y and i.
links
    Who has held several slots, and whoever has held one of these, may have a value that each of these slots can have,
    as long as the exchanges in the different cohorts touch no slot twice. If that is everything that a cohort offers,
    others of it may exchange with a linked slot too.

Views that are derived from the series are series of their own, with cohorts that are unions of its cohorts.

An exchange with a slot uses it for one person's certificate; another person's certificate may use it again, since every
certificate is an assignment of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.errors import RefusedReleaseError
from kanon_duck.kernels.atoms import in_lists
from kanon_duck.kernels.secure_values import count_values, list_values
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.state import NONE, STILL, SeriesState, joined
from kanon_duck.secure.unions import as_series, union_of_slots

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

    def rows(self) -> Integers:
        """Static base slots of each cohort."""
        cohort = np.repeat(np.arange(len(self.stops)), np.diff(self.stops, prepend=0))
        return np.bincount(cohort, self.counts, minlength=len(self.stops)).astype(np.int64)

    def expanded(self, cohort: Integers) -> tuple[Integers, Integers, Integers]:
        """Which of the given cohorts, value, and number of static base slots of each of their pairs."""
        starts = np.where(cohort > 0, self.stops[cohort - 1], 0)
        lengths = self.stops[cohort] - starts
        place = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return np.repeat(np.arange(len(cohort)), lengths), self.keys[place] % self.tuples, self.counts[place]


def offer(state: SeriesState, bounds: Bounds, static: NDArray[np.bool_] | None = None) -> Offer:
    """What the cohorts of a state offer."""
    base = np.flatnonzero(state.base() & (state.static() if static is None else static))
    ends, values = in_lists(state.cohort[base], state.value[base], state.cohorts)
    distinct, counts = np.empty(len(base), np.int64), np.empty(len(base), np.int64)
    stops = np.empty(state.cohorts, np.int64)
    found = count_values(np.append(0, ends), values, distinct, counts, stops)
    of_cohort = np.repeat(np.arange(state.cohorts), np.diff(stops, prepend=0))
    return Offer(of_cohort * bounds.tuples + distinct[:found], counts[:found], stops, bounds.tuples)


def lies_in(state: SeriesState, cohorts: Integers) -> NDArray[np.bool_]:
    """Which slots lie in one of some cohorts."""
    some = np.zeros(state.cohorts, bool)
    some[cohorts] = True
    return some[state.cohort]


def offered_by_originals(state: SeriesState, bounds: Bounds, static: NDArray[np.bool_], cohorts: Integers) -> Offer:
    """What some cohorts offer on static slots that they formed with; others offer nothing here."""
    return offer(state, bounds, static & (state.witness == NONE) & lies_in(state, cohorts))


def sound_cohorts(state: SeriesState, bounds: Bounds, offered: Offer) -> NDArray[np.bool_]:
    """Which cohorts have k static base slots with diverse enough values."""
    return (offered.rows() >= bounds.k) & bounds.diverse(offered.stops, offered.keys % bounds.tuples)


def sound_parts(state: SeriesState, bounds: Bounds, offered: Offer, static: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cohorts neither miss, nor owe, what slots that parted from their witness need.

    Guarantee: whoever's slot has parted from its witness finds that this is an original static slot, and its cohort
    offers the value of the slot on another such. k rows have the same values in a cohort and in the one that its last
    slot parted from.
    """
    sound = np.ones(state.cohorts, bool)
    slots = np.flatnonzero(state.parted())
    original = static & (state.witness == NONE)
    witness = state.witness[slots]
    cohort = state.cohort[witness]
    wrong = (
        offer(state, bounds, original & lies_in(state, cohort)).count(cohort, state.value[slots]) == 0
    ) | ~original[witness]
    wrong |= state.gone()[slots]
    sound[state.cohort[slots[wrong]]] = False
    sound[cohort[wrong]] = False
    former = former_cohort(state)
    lost = np.flatnonzero((former != NONE) & (lasting(state, bounds, offered).rows() < bounds.k))
    sound[lost] = False
    sound[former[lost]] = False
    return sound


def former_cohort(state: SeriesState) -> Integers:
    """For each cohort, where the witness is of its slot that came last of those that parted; NONE if there are none.

    Whenever one of the slots was in another class, so was this cohort, until the last slot came.
    """
    slots = np.flatnonzero(state.parted())
    slots = slots[np.argsort(state.born[slots], kind="stable")]
    former = np.full(state.cohorts, NONE)
    former[state.cohort[slots]] = state.cohort[state.witness[slots]]
    return former


def lasting(state: SeriesState, bounds: Bounds, offered: Offer) -> Offer:
    """What cohorts offer, with the rows that there were in all classes that their people were in.

    Until the last of those came that parted into a cohort, there were the original slots of the former cohort, and
    those of the cohort that were born first.
    """
    former = former_cohort(state)
    cohort, value = offered.keys // bounds.tuples, offered.keys % bounds.tuples
    parted = np.flatnonzero(former[cohort] != NONE)
    if not len(parted):
        return offered
    static = state.static()
    base = np.flatnonzero(state.base() & static)
    first = np.full(state.cohorts, np.iinfo(np.int64).max)
    np.minimum.at(first, state.cohort[base], state.born[base])
    oldest = np.zeros(state.slots, bool)
    oldest[base] = state.born[base] == first[state.cohort[base]]
    early = offer(state, bounds, oldest & lies_in(state, cohort[parted])).count(cohort[parted], value[parted])
    early += offered_by_originals(state, bounds, static, former[cohort[parted]]).count(
        former[cohort[parted]], value[parted]
    )
    counts = offered.counts.copy()
    counts[parted] = np.minimum(counts[parted], early)
    return replace(offered, counts=counts)


def roots(state: SeriesState) -> Integers:
    """For each cohort the least of those that certificates may touch together with it.

    Exchanges in cohorts with different roots touch no slot twice.
    """
    slots = np.flatnonzero(state.parted())
    return joined(np.arange(state.cohorts), state.cohort[slots], state.cohort[state.witness[slots]])


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

    Guarantee: a group is sound only if its slots lie in cohorts of different roots, or in one that has a slot to
    exchange for each, k rows have the same values in all of these, and the values that all of them offer, with the
    group's own, are diverse enough.
    """
    slots = np.flatnonzero(~static)
    slots = slots[np.argsort(state.link[slots], kind="stable")]
    _, first, group = np.unique(state.link[slots], return_index=True, return_inverse=True)
    groups, cohort = len(first), state.cohort[slots]
    size = np.bincount(group, minlength=groups)
    _, of_pair, together = np.unique(group * state.cohorts + cohort, return_inverse=True, return_counts=True)
    which, value, count = lasting(state, bounds, offered).expanded(cohort)
    enough = count >= together[of_pair][which]
    which, value, count = which[enough], value[enough], count[enough]
    # values that every cohort of the group offers
    keys, place, times = np.unique(group[which] * bounds.tuples + value, return_inverse=True, return_counts=True)
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
    sound[group[~_apart_or_together(state, slots, group)]] = False
    return Links(slots, group, stops, pairs % bounds.tuples, rows, sound)


def _apart_or_together(state: SeriesState, slots: Integers, group: Integers) -> NDArray[np.bool_]:
    """Which linked slots touch no slot twice in their exchanges with the others of their group.

    Either no other slot of the group is in a cohort of the same root; or all of these are in one cohort that is related
    to no other, no more than one of them is company, and none was taken away.
    """
    root = roots(state)
    related = np.bincount(root, minlength=state.cohorts)[root] > 1
    cohort = state.cohort[slots]
    _, of_root, others = np.unique(group * state.cohorts + root[cohort], return_inverse=True, return_counts=True)
    company = np.bincount(of_root, state.witness[slots] != NONE, minlength=len(others))
    never = np.bincount(of_root, related[cohort] | state.gone()[slots], minlength=len(others)) > 0
    return ((others == 1) | (~never & (company <= 1)))[of_root]


def certifying(state: SeriesState, bounds: Bounds, offered: Offer, links: Links, static: NDArray[np.bool_]) -> Offer:
    """What cohorts offer those who hold no linked slot: also on linked base slots that can have all values of theirs.

    Guarantee: whoever held slots linked with such a one can have any value that the cohort offers, and no two of these
    slots lie in one cohort.
    """
    of_pair = links.group * state.cohorts + state.cohort[links.slots]
    _, place, times = np.unique(of_pair, return_inverse=True, return_counts=True)
    alone = np.ones(len(links.stops), bool)
    alone[links.group[times[place] > 1]] = False
    slots = links.slots[(links.sound & alone)[links.group] & state.base()[links.slots]]
    group = np.full(state.slots, NONE)
    group[links.slots] = links.group
    which, value, _ = offered.expanded(state.cohort[slots])
    of_group = np.repeat(np.arange(len(links.stops)), np.diff(links.stops, prepend=0))
    has = np.isin(group[slots[which]] * bounds.tuples + value, of_group * bounds.tuples + links.values)
    helps = static.copy()
    helping = slots[np.bincount(which, ~has, minlength=len(slots)) == 0]
    if not len(helping):
        return offered
    helps[helping] = True
    return offer(state, bounds, helps)


def gone_rightly(state: SeriesState, bounds: Bounds, static: NDArray[np.bool_], slots: Integers) -> NDArray[np.bool_]:
    """Which slots that were taken away went beside a base slot that is there and has been for as long as they.

    Guarantee: of those taken away in the present release, the holder of that slot changes in it. It is the witness, or
    both are original slots and another of these has the value.
    """
    door, cohort = state.beside[slots], state.cohort[slots]
    right = static[door] & (state.cohort[door] == cohort)
    right &= state.base()[door] | (state.witness[slots] == door)
    right &= state.born[door] <= state.born[slots]
    new = state.empty_until[slots] == state.release
    right &= ~(new & unchanged(state, door))
    witness = state.witness[slots]
    original = static & (state.witness == NONE)
    elsewhere = original[door] & original[witness] & (state.cohort[witness] == cohort)
    offered = offered_by_originals(state, bounds, static, cohort)
    elsewhere &= offered.count(cohort, state.value[slots]) > 0
    return right & (witness != NONE) & ((witness == door) | elsewhere)


@dataclass(frozen=True)
class Failures:
    """What is not sound in a state.

    Attributes
    ----------
    cohorts : int64
        Cohorts that are to blame: each has lost, to a link or a split, what somebody's certificate needs.
    linked : int64
        Linked slots whose holders have no certificate.
    """

    cohorts: Integers
    linked: Integers


def unchanged(state: SeriesState, slots: Integers) -> NDArray[np.bool_]:
    """Which slots somebody holds in the present release who held them in the one before."""
    before, since = state.empty_from[slots], state.empty_until[slots]
    return (before == NONE) | (before > state.release) | (since < state.release)


def failures(state: SeriesState, bounds: Bounds) -> Failures:
    """Find what is not sound in a series, or in a view that is derived from it.

    Guarantee: where nothing is found, everybody who has ever been in a release has a certificate.
    """
    found = unsound(state, bounds)
    cohorts, linked = [found.cohorts], [found.linked]
    for unions in bounds.derived:
        union = union_of_slots(state, unions)
        found = unsound(as_series(state, unions), unions.bounds)
        cohorts.append(state.cohort[np.isin(union, found.cohorts)])
        linked.append(np.flatnonzero(union != NONE)[found.linked])
    return Failures(np.unique(np.concatenate(cohorts)), np.unique(np.concatenate(linked)))


def unsound(state: SeriesState, bounds: Bounds) -> Failures:
    """Find what is not sound in a series alone."""
    static = state.static()
    offered = offer(state, bounds, static)
    links = examine_links(state, bounds, offered, static)
    bad = np.zeros(state.cohorts, bool)
    used = np.bincount(state.cohort[state.base()], minlength=state.cohorts) > 0
    bad[used & ~sound_cohorts(state, bounds, certifying(state, bounds, offered, links, static))] = True
    bad |= ~sound_parts(state, bounds, offered, static)
    witness = state.witness[state.witness != NONE]
    bad[state.cohort[witness[~static[witness]]]] = True
    company = np.flatnonzero(~state.base() & ~state.gone())  # may be a witness itself, of what came later
    late = state.born[state.witness[company]] >= state.born[company]
    bad[state.cohort[company[late]]] = True
    original = np.flatnonzero(state.witness == NONE)
    first = np.full(state.cohorts, STILL)
    np.minimum.at(first, state.cohort[original], state.born[original])
    bad[state.cohort[original[state.born[original] > first[state.cohort[original]]]]] = True  # it did not form at once
    new = np.flatnonzero((state.witness != NONE) & (state.born == state.release))
    bad[state.cohort[new[unchanged(state, state.witness[new])]]] = True
    gone = np.flatnonzero(state.gone())
    bad[state.cohort[gone[~gone_rightly(state, bounds, static, gone)]]] = True
    linked = links.slots[~links.sound[links.group]]
    bad[state.cohort[linked]] = True
    return Failures(np.flatnonzero(bad), linked)


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
    rule = np.where(is_linked, MOVE, np.where(state.base()[slot], PERMUTATION, COMPANY))
    # the values of each cohort, and behind them those of each group of linked slots
    certified = certifying(state, bounds, offered, links, static)
    stops = np.append(certified.stops, len(certified.keys) + links.stops)
    values = np.append(certified.keys % bounds.tuples, links.values)
    group_of_slot = np.full(state.slots, NONE)
    group_of_slot[links.slots] = links.group
    group = np.where(is_linked, state.cohorts + group_of_slot[slot], state.cohort[slot])
    list_stops = np.empty(len(people), np.int64)
    listed = np.empty(int((np.diff(stops, prepend=0)[group] + 1).sum()), np.int64)
    list_values(group, stops, values, state.value[slot], list_stops, listed)
    candidates = lasting(state, bounds, certified).rows()[state.cohort[slot]]
    candidates += rule == COMPANY
    candidates[is_linked] = links.rows[group_of_slot[slot[is_linked]]]
    return Certificates(people, slot, rule, list_stops, listed[: list_stops[-1] if len(people) else 0], candidates)

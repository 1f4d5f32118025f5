"""New classes of a derived view: cohorts that it has not shown yet are united until they satisfy its bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.order import alike
from kanon_duck.clustering.repair import repair
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.loss import class_boxes
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.satisfies import Requirement
from kanon_duck.kernels.unions import cut_classes
from kanon_duck.privacy.models import TOLERANCE
from kanon_duck.privacy.requirement import Demand
from kanon_duck.runtime.parallel import Checkpoint
from kanon_duck.secure.bounds import Bounds, Unions
from kanon_duck.secure.certificates import unsound
from kanon_duck.secure.prices import cost
from kanon_duck.secure.state import NOBODY, NONE, SeriesState
from kanon_duck.secure.unions import as_series, union_of_slots

Integers = NDArray[np.int64]


def no_unions(bounds: Bounds) -> Unions:
    """The unions of a derived view before its first release."""
    none = np.empty(0, np.int64)
    return Unions(none, none, bounds)


def form_unions(state: SeriesState, unions: Unions, encoding: Encoding, checkpoint: Checkpoint) -> Unions:
    """The unions after a release of the series, with new ones of the cohorts that it shows and that are in none.

    Guarantee: a cohort joins no union that was shown before; a new union is made only if everybody in it, and everybody
    who has been in another, has a certificate in the derived view.
    """
    unions = replace(unions, union=union_of_slots(state, unions))
    old = len(unions.formed)
    free = state.shown.copy()
    free[state.cohort[unions.union != NONE]] = False
    while True:
        slots = np.flatnonzero(free[state.cohort] & ~state.gone())
        if not len(slots):
            return unions
        grown = _with_new(state, unions, slots, _united(state, unions, slots, encoding, checkpoint))
        seen = as_series(state, grown)
        bad = np.zeros(seen.cohorts, bool)
        bad[unsound(seen, unions.bounds).cohorts] = True
        if not bad.any():
            return grown
        if not bad[old:].any():  # an old one can only be wrong because of a new one that is linked with it
            bad[old:] = True
        # whoever is linked goes, and if nobody is, all
        in_bad = bad[seen.cohort] & (seen.cohort >= old)
        leaves = in_bad & ~seen.static()
        cohort = state.cohort[grown.union != NONE]
        free[cohort[leaves if leaves.any() else in_bad]] = False


def _with_new(state: SeriesState, unions: Unions, slots: Integers, united: Integers) -> Unions:
    """The unions with new ones of some slots, from the group of each cohort."""
    groups = np.unique(united[united != NO_CLASS])
    union = unions.union.copy()
    group = united[state.cohort[slots]]
    union[slots] = np.where(group == NO_CLASS, NONE, len(unions.formed) + np.searchsorted(groups, group))
    return replace(unions, union=union, formed=np.append(unions.formed, np.full(len(groups), state.release)))


def _united(
    state: SeriesState, unions: Unions, slots: Integers, encoding: Encoding, checkpoint: Checkpoint
) -> Integers:
    """The group of each cohort that some slots are all of, by the number of one of its cohorts; -1 for none."""
    shown = unions.union != NONE
    shown[slots] = True
    linked = np.bincount(state.link[shown], minlength=state.slots)
    rows = slots[linked[state.link[slots]] == 1]
    somebody = np.full(state.cohorts, NOBODY)
    held = np.flatnonzero(state.held())
    somebody[state.cohort[held]] = state.holder[held]
    person = np.where(state.holder[rows] == NOBODY, somebody[state.cohort[rows]], state.holder[rows])
    of_people, demanded = replace(encoding, codes=encoding.codes[person]), demand_of(unions.bounds, state.value[rows])
    alone = state.cohort[rows]
    best, least = np.full(len(rows), NO_CLASS), np.inf
    for labels in (alone, _cut(state, encoding, alone, unions.bounds.k, demanded)):
        repaired = repair(of_people, labels, demanded, checkpoint)
        loss = _loss(of_people, repaired)
        if loss < least:
            best, least = repaired, loss
    united = np.full(state.cohorts, NO_CLASS)
    united[alone] = best
    return united


def _cut(state: SeriesState, encoding: Encoding, cohort: Integers, k: int, demanded: Demand) -> Integers:
    """Groups of rows, by the cohort of each: those of cohorts that are near in an order in which like are near like."""
    cohorts = np.unique(cohort)
    cohorts = cohorts[alike(encoding, state.low[cohorts], state.high[cohorts])]
    place = np.empty(state.cohorts, np.int64)
    place[cohorts] = np.arange(len(cohorts))
    members = np.argsort(place[cohort], kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(place[cohort])))
    least, begins = np.empty(len(starts)), np.empty(len(starts), np.int64)
    box = np.empty((2, state.low.shape[1]), state.low.dtype)
    penalty = float(2 * (encoding.caps * encoding.weights).sum())
    cut_classes(
        state.low[cohorts], state.high[cohorts], members[None], starts, k, demanded, penalty, encoding.caps,
        encoding.weights, box, least, begins,
    )  # fmt: skip
    group = np.arange(len(cohorts))
    end = len(cohorts)
    while end > 0 and begins[end] >= 0:
        group[begins[end] : end] = begins[end]
        end = int(begins[end])
    return group[place[cohort]]


def _loss(encoding: Encoding, labels: Integers) -> float:
    """Loss of classes of all rows; infinite where there are none."""
    if np.all(labels == NO_CLASS):
        return np.inf
    low, high, sizes = class_boxes(encoding.codes, np.unique(labels, return_inverse=True)[1].astype(np.int64))
    return float(cost(encoding, low, high) @ sizes)


def demand_of(bounds: Bounds, value: Integers) -> Demand:
    """What a class of rows with some values must satisfy; for several attributes the most that any of them must."""
    least = int(bounds.required.max(initial=0))
    if least <= 1:
        return bounds.k
    said = bounds.attribute_values[value].T
    numbered = np.array([np.unique(each, return_inverse=True)[1] for each in said], np.int64)
    none = np.empty(0, np.int64)
    return Requirement(
        k=max(bounds.k, least), least_persons=bounds.k, persons=none, number_of_persons=1, values=numbered,
        strong=numbered, l=least, p=0, entropy=0.0, c=0.0, recursive_l=0, alpha=1.0 + TOLERANCE, closeness=None,
    )  # fmt: skip

"""The series of a secure masked view: its members in the terms of slots and cohorts, and back.

`kanon_duck.secure` makes the releases; here its people are row numbers of members. A row number stands for one person
as long as the series lasts, also after that person has left: one who returns with the same values is the same person.
Further row numbers, which nobody has, hold the codes that people of a cohort once had, as far as these still widen
what readers see of it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.catalog.options import EFFORT
from kanon_duck.catalog.settings import Settings
from kanon_duck.clustering.auto import STEPS_PER_SECOND
from kanon_duck.encoding.microdata import CategoricalAttribute, Microdata
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.next_release import Contents
from kanon_duck.maintenance.state import DerivedSeries, SecureSeries
from kanon_duck.release.members import coded_columns
from kanon_duck.release.slots import write_former, write_state
from kanon_duck.runtime.arrow import numbers, texts
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.parallel import Checkpoint
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.people import Changes
from kanon_duck.secure.release import NOT_WAITING, REASONS, Release, first_release, next_release
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NONE, SeriesState
from kanon_duck.secure.unions import as_series

Integers = NDArray[np.int64]

STEPS_PER_WAITING_PERSON, FEW_WAITING = 150.0, 2000
"""Steps of annealing, at medium effort, for each of so few people without a place; of more people each has fewer, since
more of them fit together."""

MANY_WAITING = 0.03
"""Share of the people from which on the owner hears what would help those who wait."""


def series_settings(settings: Settings, waiting: int) -> SeriesSettings:
    """How releases treat people who leave, and those who wait, of whom there are some now."""
    if isinstance(settings.effort, float):
        steps = settings.effort * STEPS_PER_SECOND / max(waiting, 1)
    else:
        steps = STEPS_PER_WAITING_PERSON * EFFORT[settings.effort] * math.sqrt(FEW_WAITING / max(waiting, FEW_WAITING))
    return SeriesSettings(settings.on_delete, settings.reserve, settings.patience, steps)


def begin_series(
    settings: Settings,
    microdata: Microdata,
    value: Integers,
    labels: Integers,
    bounds: Bounds,
    release: int,
    checkpoint: Checkpoint,
) -> SecureSeries:
    """The series that begins with classes of the rows; whoever is in none is left out, and does not wait.

    Parameters
    ----------
    value : int64, shape (n,)
        Code of each row's tuple.
    labels : int64, shape (n,)
        Class of each row, from 0 without gaps; -1 for one in none.
    release : int
        Number of the release that the series begins with.
    """
    without_search = SeriesSettings(settings.on_delete, settings.reserve, settings.patience, 0.0)
    made = first_release(microdata.encoding, value, labels, bounds, without_search, settings.seed, checkpoint)
    none = np.empty(0, np.int64)
    first = made.state
    slots = replace(
        first,
        release=release,
        born=np.full(first.slots, release),
        empty_from=np.where(first.empty_from == NONE, NONE, release),
        since=np.where(first.since == NONE, NONE, release),
        waiting=np.full(len(labels), NONE),
    )
    return SecureSeries(slots, value, none, none)


def continue_series(
    settings: Settings,
    series: SecureSeries,
    microdata: Microdata,
    changes: Changes,
    bounds: Bounds,
    checkpoint: Checkpoint,
) -> tuple[SecureSeries, Release]:
    """The series after its next release, and the release itself.

    Parameters
    ----------
    series : SecureSeries
        With the values of all rows, and the codes that people had whom the changes name.
    microdata : Microdata
        Of all row numbers, with the codes that there are now.
    """
    waiting = int(np.count_nonzero(series.slots.waiting != NONE)) + len(changes.arrived) + len(changes.moved)
    made = next_release(
        series.slots,
        microdata.encoding,
        series.value,
        changes,
        bounds,
        series_settings(settings, waiting),
        settings.seed,
        checkpoint,
    )
    kept = _still_wider(made.state, series.former, series.cohort, microdata)
    return SecureSeries(made.state, series.value, series.former[kept], series.cohort[kept], series.derived), made


def as_derived_shows(
    settings: Settings, series: SecureSeries, derived: DerivedSeries, microdata: Microdata
) -> SecureSeries:
    """A series as a view that is derived from it shows it: unions of cohorts as cohorts."""
    seen = as_series(series.slots, derived.unions)
    boxes = (seen.cohorts, series.slots.low.shape[1])
    dtype = series.slots.low.dtype
    seen = replace(
        seen,
        low=np.zeros(boxes, dtype),  # no union is ever split: whatever its people have had still counts
        high=np.full(boxes, np.iinfo(dtype).max, dtype),
        shown=seen.showing(series_settings(settings, 0).hides),
    )
    kept = _still_wider(seen, derived.former, derived.cohort, microdata)
    return SecureSeries(seen, series.value, derived.former[kept], derived.cohort[kept])


def _still_wider(slots: SeriesState, former: Integers, cohort: Integers, microdata: Microdata) -> NDArray[np.bool_]:
    """Which former codes lie in the box of their cohort, and outside of what its people have now.

    Guarantee: as long as a cohort is not split, the region that readers see of it never shrinks. A split makes boxes
    anew, around the people that each part has; codes outside of them are no longer of use.
    """
    codes = microdata.encoding.codes[former]
    inside = np.all((codes >= slots.low[cohort]) & (codes <= slots.high[cohort]), axis=1)
    held = np.flatnonzero(slots.held() & np.isin(slots.cohort, cohort))
    people, of_people = slots.holder[held], slots.cohort[held]
    wider = np.zeros(len(former), bool)
    for attribute in microdata.attributes:
        if isinstance(attribute, CategoricalAttribute):
            continue
        low = np.full(slots.cohorts, np.iinfo(np.int64).max)
        high = np.full(slots.cohorts, np.iinfo(np.int64).min)
        known = ~attribute.missing[people]
        np.minimum.at(low, of_people[known], attribute.low[people[known]])
        np.maximum.at(high, of_people[known], attribute.high[people[known]])
        beyond = (attribute.low[former] < low[cohort]) | (attribute.high[former] > high[cohort])
        wider |= beyond & ~attribute.missing[former]
    # categories and NULLs have codes of their own, so that their boxes are exact
    box_low = np.full_like(slots.low, np.iinfo(slots.low.dtype).max)
    box_high = np.zeros_like(slots.high)
    np.minimum.at(box_low, of_people, microdata.encoding.codes[people])
    np.maximum.at(box_high, of_people, microdata.encoding.codes[people])
    wider |= np.any((codes < box_low[cohort]) | (codes > box_high[cohort]), axis=1)
    return inside & wider


def contents(series: SecureSeries) -> Contents:
    """What the classes of the last release hold; their numbers are those of cohorts."""
    slots = series.slots
    held = slots.held()
    rows = np.bincount(slots.cohort[~slots.gone()], minlength=slots.cohorts)
    people = np.bincount(slots.cohort[held], minlength=slots.cohorts)
    covered = slots.classes()
    covered[series.former] = np.where(slots.shown[series.cohort], series.cohort, NO_CLASS)
    return Contents(covered, rows, people, int((rows - people)[slots.shown].sum()))


def waiting_members(slots: SeriesState, reason: Integers) -> pa.Table:
    """Row number, first release of waiting, and why, of everybody whom the series holds back."""
    rows = np.flatnonzero(reason != NOT_WAITING)
    since = np.where(slots.waiting[rows] == NONE, slots.release, slots.waiting[rows])
    words = texts(REASONS).take(numbers(reason[rows]))
    return pa.table({"row": numbers(rows), "since": numbers(since), "reason": words})


def store_series(
    database: Database,
    view_number: int,
    settings: Settings,
    series: SecureSeries,
    microdata: Microdata,
    before: SecureSeries | None,
) -> None:
    """Write what a release has changed of the series; the table of members has its people already."""
    last = None if before is None else before.slots
    write_state(database, view_number, settings, series.slots, series.value, last)
    store_former(database, view_number, series, microdata)


def store_former(database: Database, view_number: int, series: SecureSeries, microdata: Microdata) -> None:
    """Write the codes that people of cohorts once had."""
    arrays, selected, joins = coded_columns(microdata.take(series.former).attributes)
    arrays |= {"row": numbers(series.former), "cohort": numbers(series.cohort)}
    write_former(database, view_number, pa.table(arrays), ["codes.row", "codes.cohort", *selected], joins)

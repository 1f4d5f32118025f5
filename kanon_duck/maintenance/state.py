"""The members of a masked view as arrays, which a process keeps from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import former_table, members_table
from kanon_duck.catalog.views import MaskedView, derived_views
from kanon_duck.encoding.microdata import Attribute, CategoricalAttribute, Microdata, NumericAttribute, Sensitive
from kanon_duck.intake.encode import EncodedSnapshot, KnownCodes, encode
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.partition import Partition, with_more_rows
from kanon_duck.release.members import add_values, known_hierarchies, load_members
from kanon_duck.release.slots import former_rows, has_slots, rows_in_use
from kanon_duck.runtime.call import Call
from kanon_duck.secure.bounds import Unions
from kanon_duck.secure.state import SeriesState


@dataclass(frozen=True)
class SecureSeries:
    """What later releases of a secure masked view need of the earlier ones.

    Attributes
    ----------
    slots : SeriesState
        People are row numbers of members.
    value : int64, shape (n,)
        Code of what is released of each person as it is, by row number; -1 for a row number of nobody.
    former, cohort : int64, shape (codes,)
        Row numbers whose codes people of a cohort once had, and that cohort.
    derived : tuple of DerivedSeries
        Of the masked views that are derived from it.
    """

    slots: SeriesState
    value: NDArray[np.int64]
    former: NDArray[np.int64]
    cohort: NDArray[np.int64]
    derived: tuple[DerivedSeries, ...] = ()


@dataclass(frozen=True)
class DerivedSeries:
    """What later releases of a masked view need that is derived from a secure one.

    Attributes
    ----------
    view_number : int
    unions : Unions
        Its classes.
    former, cohort : int64, shape (codes,)
        Row numbers whose codes people of a union once had, and that union.
    """

    view_number: int
    unions: Unions
    former: NDArray[np.int64]
    cohort: NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """The members of a masked view; everything is indexed by row number.

    A change gives a new state. It may share arrays with the old one, and write into them: whoever changes a state
    gives the old one up. The process forgets a state as soon as a call takes it (see `Memory.take`).

    Attributes
    ----------
    version : str
        The version of the members in the database that this is a copy of.
    microdata : Microdata
        Their codes.
    labels : int64, shape (n,)
        Class of each member, -1 for one in none.
    present : bool, shape (n,)
        Whether a row number is in use.
    partition : Partition or None
        The same classes as maintenance works on them, once it has; None where it must be set up.
    levels : sequence of int, or None
        See `Clustering`; set by a clustering from scratch.
    series : SecureSeries or None
        Of a secure masked view; None where it must be read.
    """

    version: str
    microdata: Microdata
    labels: NDArray[np.int64]
    present: NDArray[np.bool_]
    partition: Partition | None = None
    levels: Sequence[int] | None = None
    series: SecureSeries | None = None


def load_state(call: Call, view: MaskedView, settings: Settings, snapshot: str) -> tuple[State, EncodedSnapshot]:
    """The members as arrays, and the rows of the snapshot in the same codes.

    The arrays are those that the process remembers, if they are of the members' present version.
    """
    database = call.database
    state = call.memory.take()
    if state is not None and state.version != view.members_version:
        state = None
    if state is None:
        hierarchies = known_hierarchies(database, view.number, settings)
    else:
        hierarchies = {
            place: attribute.hierarchy
            for place, attribute in enumerate(state.microdata.attributes)
            if isinstance(attribute, CategoricalAttribute)
        }
    tables = [members_table(view.number)]
    if view.secure and has_slots(database, view.number):
        tables += [former_table(number) for number in _with_derived(call, view)]
    encoded = encode(database, settings, snapshot, KnownCodes(hierarchies, tables))
    codes = encoded.microdata.encoding.codes
    if state is None or state.microdata.encoding.codes.dtype != codes.dtype or has_ranks(encoded.microdata):
        loaded = _read_members(call, view, settings, encoded.microdata.attributes)
        state = State(view.members_version, *loaded)
    add_values(database, view.number, encoded.microdata, hierarchies)
    return state, encoded


def _with_derived(call: Call, view: MaskedView) -> list[int]:
    """Numbers of a masked view and of those derived from it."""
    return [view.number, *(each.number for each in derived_views(call, view))]


def _read_members(
    call: Call, view: MaskedView, settings: Settings, templates: list[Attribute]
) -> tuple[Microdata, NDArray[np.int64], NDArray[np.bool_]]:
    """Read the members' codes and classes; those of a secure view with the codes that its cohorts once held."""
    database = call.database
    if view.secure and has_slots(database, view.number):
        former = former_rows(_with_derived(call, view))
        rows = rows_in_use(database, view.number, former)
        return load_members(database, view.number, settings, templates, former, rows)
    return load_members(database, view.number, settings, templates)


def keep_in_mind(call: Call, state: State) -> None:
    """Remember the members for the next call, unless their codes are ranks, which new values shift."""
    call.memory.state = None if has_ranks(state.microdata) else state


def has_ranks(microdata: Microdata) -> bool:
    """Whether codes of a quasi-identifier are ranks."""
    return any(getattr(attribute, "ranks", None) is not None for attribute in microdata.attributes)


def free_rows(state: State, count: int) -> NDArray[np.int64]:
    """Row numbers for new members: those of members that have left, then new ones."""
    freed = np.flatnonzero(~state.present)[:count]
    beyond = len(state.present) + np.arange(count - len(freed))
    return np.concatenate([freed, beyond])


def write_codes(state: State, microdata: Microdata, rows: NDArray[np.int64]) -> State:
    """The state after the codes of members, new ones or changed ones, were written at their row numbers."""
    n = max(len(state.present), int(rows.max(initial=-1)) + 1)
    attributes = [
        _write_attribute(old, new, rows, n)
        for old, new in zip(state.microdata.attributes, microdata.attributes, strict=True)
    ]
    codes = _with_length(state.microdata.encoding.codes, n, 0)
    codes[rows] = microdata.encoding.codes
    sensitive = state.microdata.sensitive
    if sensitive is not None and microdata.sensitive is not None:
        sensitive = write_sensitive_codes(sensitive, microdata.sensitive, rows, n)
    partition = state.partition
    if partition is not None and len(partition.labels) < n:
        partition = with_more_rows(partition, codes)
    present = _with_length(state.present, n, False)
    present[rows] = True
    return replace(
        state,
        microdata=Microdata(attributes, replace(state.microdata.encoding, codes=codes), sensitive),
        labels=_with_length(state.labels, n, NO_CLASS),
        present=present,
        partition=partition,
    )


def _write_attribute(old: Attribute, new: Attribute, rows: NDArray[np.int64], n: int) -> Attribute:
    """The codes of one quasi-identifier with those of some rows changed."""
    if isinstance(old, CategoricalAttribute) and isinstance(new, CategoricalAttribute):
        leaf = _with_length(old.leaf, n, 0)
        leaf[rows] = new.leaf
        return replace(new, leaf=leaf)
    assert isinstance(old, NumericAttribute)
    assert isinstance(new, NumericAttribute)
    low, missing = _with_length(old.low, n, 0), _with_length(old.missing, n, True)
    low[rows], missing[rows] = new.low, new.missing
    high = low
    if old.high is not old.low:
        high = _with_length(old.high, n, 0)
        high[rows] = new.high
    return replace(new, low=low, high=high, missing=missing)


def write_sensitive_codes(old: Sensitive, new: Sensitive, rows: NDArray[np.int64], n: int) -> Sensitive:
    """The codes of n members with those of some rows changed."""

    def written(old_codes: NDArray[np.int64], new_codes: NDArray[np.int64]) -> NDArray[np.int64]:
        codes = np.zeros((len(old_codes), n), np.int64)
        codes[:, : old_codes.shape[1]] = old_codes
        codes[:, rows] = new_codes
        return codes

    persons = written(old.persons[None, :], new.persons[None, :])[0] if new.persons.size else old.persons
    values = written(old.values, new.values)
    strong = values if old.strong is old.values else written(old.strong, new.strong)
    return replace(old, persons=persons, values=values, strong=strong, levels=written(old.levels, new.levels))


def _with_length(values: NDArray[Any], n: int, fill: Any) -> NDArray[Any]:
    """The same array, or a longer copy."""
    if len(values) == n:
        return values
    longer = np.full((n, *values.shape[1:]), fill, values.dtype)
    longer[: len(values)] = values
    return longer


def same_codes(state: State, microdata: Microdata, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether rows have the codes already that the state has at their row numbers."""
    same = np.ones(len(rows), bool)
    for old, new in zip(state.microdata.attributes, microdata.attributes, strict=True):
        if isinstance(old, CategoricalAttribute) and isinstance(new, CategoricalAttribute):
            same &= old.leaf[rows] == new.leaf
        else:
            assert isinstance(old, NumericAttribute)
            assert isinstance(new, NumericAttribute)
            equal = (old.low[rows] == new.low) & (old.high[rows] == new.high)
            same &= np.where(new.missing, old.missing[rows], equal & ~old.missing[rows])
    return same

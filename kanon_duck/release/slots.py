"""The private tables of a secure masked view: slots, cohorts, people, and what they held before.

`kanon_duck.secure` says what they mean; here its arrays are written into tables and read again. Only what a release
has changed is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kanon_duck.catalog.columns import private_names
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import (
    cohorts_table,
    former_table,
    members_table,
    people_table,
    series_table,
    slots_table,
    tuples_table,
    unions_table,
    values_table,
)
from kanon_duck.intake.hashing import hash_of, person, tuple_hash, typed_columns
from kanon_duck.runtime.arrow import numbers
from kanon_duck.runtime.database import Database
from kanon_duck.secure.bounds import Bounds, Unions
from kanon_duck.secure.state import NOBODY, NONE, SeriesState

Integers = NDArray[np.int64]

OF_SLOTS = ("value", "cohort", "witness", "born", "holder", "empty_from", "empty_until", "beside", "link")
OF_COHORTS = ("shown",)
OF_PEOPLE = ("slot", "since", "waiting")
"""Arrays of the state by what they are indexed by; boxes follow from the codes of those who hold, and held, slots."""


def has_slots(database: Database, view_number: int) -> bool:
    """Whether a masked view has the tables of a series; one made by an earlier version has not, nor a derived one."""
    schema, table = people_table(view_number).split(".")
    query = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?"
    return bool(database.value(query, [schema, table]))


def create_tuples(database: Database, view_number: int, settings: Settings) -> None:
    """Make the empty table of tuples."""
    own = private_names(settings, "sensitive", "kept")
    columns = ", ".join(["CAST(0 AS BIGINT) AS value", "CAST(0 AS UBIGINT) AS hash", *own])
    database.execute(
        f"CREATE OR REPLACE TABLE {tuples_table(view_number)} AS "
        f"SELECT {columns} FROM {members_table(view_number)} LIMIT 0"
    )


def add_tuples(database: Database, view_number: int, settings: Settings, relation: str) -> None:
    """Give codes to the tuples of a relation with columns by role that have none yet."""
    table, own = tuples_table(view_number), private_names(settings, "sensitive", "kept")
    first = "".join(f", any_value({name} ORDER BY {name})" for name in own)
    database.execute(
        f"INSERT INTO {table} SELECT row_number() OVER (ORDER BY hash) - 1 + (SELECT count(*) FROM {table}), * FROM ("
        f"SELECT {tuple_hash(settings)} AS hash{first} FROM {relation} GROUP BY hash "
        f"HAVING hash NOT IN (SELECT hash FROM {table}))"
    )


def tuples_of(database: Database, view_number: int, settings: Settings, relation: str, order: str) -> Integers:
    """The code of each row of a relation with columns by role, in some order."""
    return database.numpy(
        f"SELECT tuples.value FROM {relation} AS given JOIN (SELECT value, hash FROM {tuples_table(view_number)}) "
        f"AS tuples ON tuples.hash = {tuple_hash(settings)} ORDER BY {order}"
    )["value"]


def read_bounds(database: Database, view_number: int, settings: Settings) -> Bounds:
    """What must stay possible for everybody: k rows, and of each sensitive attribute l or p values."""
    model = settings.model
    least = max(model.l or 0, model.p or 0)
    columns = typed_columns(settings, "sensitive") if least else []
    codes = [
        f"dense_rank() OVER (ORDER BY {hash_of([column])}) - 1 AS attribute_{place}"
        for place, column in enumerate(columns)
    ]
    data = database.numpy(f"SELECT {', '.join(['value', *codes])} FROM {tuples_table(view_number)} ORDER BY value")
    values = [data[f"attribute_{place}"].astype(np.int64) for place in range(len(columns))]
    attribute_values = np.array(values, np.int64).reshape(len(columns), len(data["value"])).T
    return Bounds(model.k, np.ascontiguousarray(attribute_values), np.full(len(columns), least, np.int64))


def write_state(
    database: Database,
    view_number: int,
    settings: Settings,
    state: SeriesState,
    value: Integers,
    before: SeriesState | None,
) -> None:
    """Write what a release has changed; everything where there is none before it.

    The table of members has the people of the release already.

    Parameters
    ----------
    value : int64, shape (people,)
        Code of each person's tuple.
    """
    if before is None or before.unit != state.unit:
        database.execute(
            f"CREATE OR REPLACE TABLE {series_table(view_number)} AS SELECT ?::DOUBLE AS unit", [state.unit]
        )
    _write(database, slots_table(view_number), "slot", state, before, OF_SLOTS)
    _write(database, cohorts_table(view_number), "cohort", state, before, OF_COHORTS)
    _write_people(database, view_number, settings, state, value, before)


def _write(
    database: Database, table: str, index: str, state: SeriesState, before: SeriesState | None, names: Sequence[str]
) -> None:
    """Write the rows of a table that arrays of the same length are."""
    changed = _changed(state, before, names)
    arrays = {index: numbers(changed)} | {name: _array(getattr(state, name)[changed]) for name in names}
    database.register("changed_rows", pa.table(arrays))
    if before is None:
        database.execute(f"CREATE OR REPLACE TABLE {table} AS FROM changed_rows")
    else:
        database.execute(f"DELETE FROM {table} WHERE {index} IN (SELECT {index} FROM changed_rows)")
        database.execute(f"INSERT INTO {table} BY NAME FROM changed_rows")
    database.unregister("changed_rows")


def _changed(state: SeriesState, before: SeriesState | None, names: Sequence[str]) -> Integers:
    """Places at which any of some arrays is another than before, or new."""
    count = len(getattr(state, names[0]))
    changed = np.ones(count, bool)
    if before is not None:
        known = min(len(getattr(before, names[0])), count)
        same = [getattr(state, name)[:known] == getattr(before, name)[:known] for name in names]
        changed[:known] = ~np.logical_and.reduce(same)
    return np.flatnonzero(changed)


def _array(values: NDArray[Any]) -> pa.Array:
    return pa.array(values) if values.dtype == bool else numbers(values)


def _write_people(
    database: Database,
    view_number: int,
    settings: Settings,
    state: SeriesState,
    value: Integers,
    before: SeriesState | None,
) -> None:
    """Write who has, or had, which slot, and who waits; a person is known again by key and tuple."""
    table = people_table(view_number)
    changed = _changed(state, before, OF_PEOPLE)
    arrays = {"row": numbers(changed), "value": numbers(value[changed])}
    arrays |= {name: numbers(getattr(state, name)[changed]) for name in OF_PEOPLE}
    database.register("changed_people", pa.table(arrays))
    known = f"(SELECT row, {person(settings)} AS person FROM {members_table(view_number)})"
    if before is None:
        database.execute(f"CREATE OR REPLACE TABLE {table} AS FROM changed_people LEFT JOIN {known} USING (row)")
    else:  # who has left is no member any more, and keeps the number that the table has
        database.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE kanon_changed_people AS SELECT changed.*, "
            f"coalesce(known.person, people.person) AS person FROM changed_people AS changed "
            f"LEFT JOIN {known} AS known USING (row) LEFT JOIN {table} AS people USING (row)"
        )
        database.execute(f"DELETE FROM {table} WHERE row IN (SELECT row FROM changed_people)")
        database.execute(f"INSERT INTO {table} BY NAME FROM temp.kanon_changed_people WHERE person IS NOT NULL")
    database.unregister("changed_people")


def read_state(
    database: Database,
    view_number: int,
    release: int,
    people: int,
    codes: NDArray[np.unsignedinteger],
    former: tuple[Integers, Integers],
) -> tuple[SeriesState, Integers]:
    """Read the state of the last release, and the code of each person's tuple.

    Parameters
    ----------
    release : int
        Number of the last release.
    people : int
        Row numbers that the encoding has.
    codes : shape (people, width)
    former : (int64, int64)
        Row numbers of codes that cohorts once held, and these cohorts.
    """
    slots = database.numpy(f"SELECT {', '.join(OF_SLOTS)} FROM {slots_table(view_number)} ORDER BY slot")
    cohorts = database.numpy(f"SELECT {', '.join(OF_COHORTS)} FROM {cohorts_table(view_number)} ORDER BY cohort")
    data = database.numpy(f"SELECT row, value, {', '.join(OF_PEOPLE)} FROM {people_table(view_number)}")
    of_people = {name: np.full(people, NONE, np.int64) for name in ("value", *OF_PEOPLE)}
    for name, array in of_people.items():
        array[data["row"]] = data[name]
    value = of_people.pop("value")
    width, count = codes.shape[1], len(cohorts["shown"])
    low = np.full((count, width), np.iinfo(codes.dtype).max, codes.dtype)
    high = np.zeros((count, width), codes.dtype)
    held = slots["holder"] != NOBODY
    rows = np.concatenate([slots["holder"][held], former[0]])
    cohort = np.concatenate([slots["cohort"][held], former[1]])
    np.minimum.at(low, cohort, codes[rows])
    np.maximum.at(high, cohort, codes[rows])
    unit = database.value(f"SELECT unit FROM {series_table(view_number)}")
    arrays: dict[str, Any] = {**slots, **cohorts, **of_people}
    return SeriesState(release=release, unit=unit, low=low, high=high, **arrays), value


def write_unions(database: Database, view_number: int, unions: Unions) -> None:
    """Write which union each slot belongs to in a derived view, and since when there is each union."""
    slots = np.flatnonzero(unions.union != NONE)
    of_slots = {"slot": numbers(slots), "cohort": numbers(unions.union[slots])}
    formed = {"cohort": numbers(np.arange(len(unions.formed))), "formed": numbers(unions.formed)}
    for table, columns in ((unions_table(view_number), of_slots), (cohorts_table(view_number), formed)):
        _write_whole(database, table, columns)


def read_unions(database: Database, view_number: int, slots: int, bounds: Bounds) -> Unions:
    """Read the unions of a derived view, over some number of slots of its parent."""
    data = database.numpy(f"SELECT slot, cohort FROM {unions_table(view_number)}")
    union = np.full(slots, NONE)
    union[data["slot"]] = data["cohort"]
    formed = database.numpy(f"SELECT formed FROM {cohorts_table(view_number)} ORDER BY cohort")["formed"]
    return Unions(union, formed, bounds)


def write_released_slots(database: Database, view_number: int, parent: int, state: SeriesState) -> None:
    """Write the slots that a derived view shows now, and what they stand for in its parent."""
    arrays = {name: numbers(getattr(state, name)) for name in ("value", "cohort", "holder", "beside")}
    _write_whole(database, slots_table(view_number), arrays)
    for table_of in (tuples_table, values_table):
        database.execute(f"CREATE OR REPLACE TABLE {table_of(view_number)} AS FROM {table_of(parent)}")


def _write_whole(database: Database, table: str, columns: dict[str, pa.Array]) -> None:
    """Let a table hold some columns and nothing else."""
    database.register("whole_table", pa.table(columns))
    database.execute(f"CREATE OR REPLACE TABLE {table} AS FROM whole_table")
    database.unregister("whole_table")


def slot_rows(view_number: int, settings: Settings) -> str:
    """A relation of the rows of all slots: their class, their tuple, and whether somebody holds them."""
    own = "".join(f", {name}" for name in private_names(settings, "sensitive", "kept"))
    return (
        f"(SELECT cohort AS class, holder <> {NOBODY} AS is_held{own} FROM {slots_table(view_number)} "
        f"JOIN {tuples_table(view_number)} USING (value) "
        f"WHERE beside = {NONE})"
    )


def write_former(
    database: Database, view_number: int, codes: pa.Table, selected: Sequence[str], joins: Sequence[str]
) -> None:
    """Keep the codes that cohorts once held, with ``row`` and ``cohort``; for the SQL see `coded_columns`."""
    database.register("former_codes", codes)
    database.execute(
        f"CREATE OR REPLACE TABLE {former_table(view_number)} AS "
        f"SELECT {', '.join(selected)} FROM former_codes AS codes {' '.join(joins)}"
    )
    database.unregister("former_codes")


def read_former(database: Database, view_number: int) -> tuple[Integers, Integers]:
    """Row numbers of codes that cohorts once held, and these cohorts."""
    data = database.numpy(f"SELECT row, cohort FROM {former_table(view_number)} ORDER BY row")
    return data["row"], data["cohort"]


def former_rows(view_numbers: Sequence[int]) -> str:
    """A relation of the codes that cohorts of a masked view, and of those derived from it, once held."""
    return f"({' UNION ALL BY NAME '.join(f'FROM {former_table(number)}' for number in view_numbers)})"


def rows_in_use(database: Database, view_number: int, former: str) -> int:
    """Row numbers up to here are, or have been, somebody's, also in the relation of `former_rows`."""
    rows = f"SELECT row FROM {people_table(view_number)} UNION ALL SELECT row FROM {former}"
    query = f"SELECT coalesce(max(row), -1) + 1 FROM ({rows})"
    return int(database.value(query))

"""FROM kanon.attack: what an intruder learns about one person from all releases of a masked view."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from sqlglot import exp

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table
from kanon_duck.catalog.views import find_view, stored_settings
from kanon_duck.encoding.numeric import FLOATS, INTEGERS, decimal_type
from kanon_duck.errors import KanonError
from kanon_duck.inference.own_history import OwnSeries, companions, names_of, read_names, read_stays, series_of_stays
from kanon_duck.inference.rows import Names
from kanon_duck.inference.victim import AttackStep, trace_victim
from kanon_duck.inference.views import refuse_strangers
from kanon_duck.intake.hashing import person
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database

VICTIM = "temp.kanon_victim"


def run(call: Call) -> list[Row]:
    """One row for each release since the victim came, and each column that is released as it is."""
    view = find_view(call)
    stored, settings = stored_settings(call, view)
    refuse_strangers(view, settings)
    exact = read.boolean(call.arguments, "exact", False)
    call.phase("reading")
    victim = _find(stored, view.number, settings, call.arguments)
    # bounds follow from the classes around the victim's; assignments are of everybody whom classes connect
    people = None if exact else companions(view.number, settings, victim)
    stays = read_stays(call.database, view.number, settings, view.release, people)
    known = series_of_stays([*settings.sensitive, *settings.keep], [(view.release, stays.columns)])
    names = names_of(known, [(view.name, view.release, read_names(call.database, view.number, settings, stays.table))])
    place = int(np.searchsorted(known.person, np.uint64(victim)))
    if place == len(known.person) or known.person[place] != np.uint64(victim):
        raise KanonError(f"victim is {read.shown(call.arguments['victim'])}, who has not been in any release")
    call.phase("comparing")
    steps = trace_victim(known.series, place, names.titles, exact)
    return [row for step in steps for row in _rows(step, known, names)]


def _find(call: Call, view_number: int, settings: Settings, arguments: read.Arguments) -> int:
    """The number of the one member whose row of the source has the values that are typed.

    Raises
    ------
    KanonError
        When there is none, or several.
    """
    typed = read.mapping(arguments, "victim")
    if not typed:
        raise KanonError("victim is missing: say what is known of the person, as in {'age': 52, 'zip': '41076'}")
    roles = settings.roles()
    known = [*roles["key"], *roles["quasi_identifier"]]
    query = exp.select(
        *(exp.column(name, quoted=True).as_(f"key_{place}") for place, name in enumerate(settings.key))
    ).from_(settings.query.subquery("source"))
    values: list[Any] = []
    for name, value in typed.items():
        column = read.one_of("victim", name, known, "key or quasi-identifier")
        kind = exp.DataType.build(settings.columns[column], dialect="duckdb")
        _refuse_other_type(call.database, f"victim.{name}", value, settings.columns[column])
        given = exp.TryCast(this=exp.Placeholder(), to=kind)
        query = query.where(exp.NullSafeEQ(this=exp.column(column, quoted=True), expression=given))
        values.append(None if value is None else str(value))
    with call.in_callers_schema():
        call.database.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE kanon_victim AS {query.sql(dialect='duckdb')}", values
        )
    columns = ", ".join(f"key_{place}" for place in range(len(settings.key)))
    found = _people(call.database, view_number, settings, columns)
    if len(found) != 1:
        what = f"is that of {len(found)} people" if found else "is nobody of the last refresh"
        raise KanonError(f"victim is {read.shown(typed)}, which {what}: name other columns, or the key")
    return found[0]


def _refuse_other_type(database: Database, argument: str, value: Any, column_type: str) -> None:
    """What is typed must be a value that the column can have; a cast of 1.5 to a whole number would round it."""
    kind = exp.DataType.build(column_type, dialect="duckdb")
    read_as = exp.select(exp.TryCast(this=exp.Placeholder(), to=kind).is_(exp.null()))
    broken = isinstance(value, Decimal) and value % 1 != 0 and column_type in INTEGERS
    if value is not None and (broken or database.value(read_as, [str(value)])):
        numeric = column_type in INTEGERS or column_type in FLOATS or decimal_type(column_type) is not None
        what = "number" if numeric and not broken else column_type
        raise KanonError(f"{argument} is {read.shown(value)}, which is no {what}: the column is {column_type}")


def _people(database: Database, view_number: int, settings: Settings, columns: str) -> list[int]:
    """Numbers of the members that have been found."""
    rows = database.rows(
        f"SELECT {person(settings)} FROM {members_table(view_number)} SEMI JOIN {VICTIM} USING ({columns})"
    )
    return [value for (value,) in rows]


def _rows(step: AttackStep, known: OwnSeries, names: Names) -> list[Row]:
    """What is known after a release, for each column."""
    rows = []
    for attribute in known.codes:
        shares: dict[str, float] = {}
        for value, probability in zip(step.values, step.probabilities, strict=True):
            text = names.values[attribute][value]
            shares[text] = shares.get(text, 0.0) + float(probability)
        ordered = sorted(shares, key=lambda text: (-shares[text], text))
        rows.append(
            {
                "release": names.releases[step.release],
                "class_rows": step.class_rows,
                "attribute": attribute,
                "possible_values": ordered,
                "probabilities": [shares[text] for text in ordered],
                "narrowed_by": step.narrowed_by,
            }
        )
    return rows

"""FROM kanon.risk: how likely it is that people of the current release are found again."""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from kanon_duck.catalog.tables import classes_table, members_table
from kanon_duck.catalog.views import MaskedView, declared_model, find_view
from kanon_duck.errors import KanonError
from kanon_duck.intake.kept_columns import as_shown
from kanon_duck.privacy.diversity import PERSON
from kanon_duck.privacy.risk import Sizes, risks, size_bands
from kanon_duck.release.shown import refuse_unseen
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row

WITH_KEPT = "_with_kept"
"""Ends the names of measures for an intruder who knows the kept columns too."""


def run(call: Call) -> list[Row]:
    """Measures of risk for an intruder who knows the quasi-identifiers, and for one who knows kept columns too.

    Where persons are counted, whom a row is about is taken from the private members: readers do not see it.
    """
    view = find_view(call)
    refuse_unseen(call, view)
    by_person = declared_model(call.database, view, view.release).unit is not None
    persons = f"count(DISTINCT {PERSON})" if by_person else "count(*)"
    people = int(call.database.value(f"SELECT {persons} FROM {_people(view)}"))
    population = _population(call, people)
    kept = [as_shown(f"kept_{place}") for place in range(len(view.keep))]
    measures = []
    for known, ending in (([], ""), (kept, WITH_KEPT)) if kept else (([], ""),):
        if by_person:
            sizes = _sizes(call, _people(view), ["reader_class", *known], persons)
        else:
            sizes = _sizes(call, *_released(call, view, bool(known)), persons)
        found = [
            *risks(sizes, people, population),
            _source_uniques(call, view, known, persons),
            *size_bands(sizes),
        ]
        measures += [row | {"measure": row["measure"] + ending} for row in found]
    return measures


def _population(call: Call, people: int) -> int | None:
    """The number of people that those of the release were drawn from, if it is known."""
    if call.arguments.get("population") is None:
        return None
    population = read.integer(call.arguments, "population", None, 1)
    if population < people:
        raise KanonError(
            f"population is {population}, but the release has {people} people: name the number of all people from whom "
            "they come"
        )
    return population


def _people(view: MaskedView) -> str:
    """SQL of the members that are released, with their classes."""
    return f"(FROM {members_table(view.number)} JOIN {classes_table(view.number)} USING (class))"


def _released(call: Call, view: MaskedView, with_kept: bool) -> tuple[str, list[str]]:
    """SQL of what readers see, and of the columns by which an intruder knows people."""
    table = exp.table_(view.view, db=view.schema, catalog=call.catalog, quoted=True).sql(dialect="duckdb")
    cells = [cell for name in view.quasi_identifiers for cell in view.cells(name)]
    known = [exp.column(cell, quoted=True).sql(dialect="duckdb") for cell in cells]
    if with_kept:
        known += [as_shown(exp.column(name, quoted=True).sql(dialect="duckdb")) for name in view.keep]
    return table, known


def _sizes(call: Call, relation: str, known: list[str], persons: str) -> Sizes:
    """Sizes of the classes of rows that an intruder cannot tell apart."""
    found = call.database.numpy(
        f"""
        WITH classes AS (
            SELECT {persons} AS size, count(*) AS rows FROM {relation} AS release GROUP BY {", ".join(known)}
        )
        SELECT size, count(*) AS classes, CAST(sum(rows) AS BIGINT) AS rows FROM classes GROUP BY size ORDER BY size
        """
    )
    return Sizes(*(np.asarray(found[name], np.int64) for name in ("size", "classes", "rows")))


def _source_uniques(call: Call, view: MaskedView, known: list[str], persons: str) -> Row:
    """Released rows that would be alone if their quasi-identifiers were released as they are in the source."""
    by = ", ".join(["quasi_hash", *known])
    share, rows = call.database.rows(
        f"""
        WITH classes AS (
            SELECT {persons} AS size, count(*) AS rows FROM {_people(view)} AS people GROUP BY {by}
        )
        SELECT coalesce(sum(rows) FILTER (size = 1), 0) / sum(rows), coalesce(sum(rows) FILTER (size = 1), 0)
        FROM classes
        """
    )[0]
    return {"measure": "source_uniques", "value": share, "rows": int(rows)}

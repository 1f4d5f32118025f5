"""Numeric quasi-identifiers of a snapshot: their steps and domains, and the SQL that reads their codes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import QuasiIdentifier
from kanon_duck.encoding.bulk import find_bulk
from kanon_duck.encoding.microdata import NumericAttribute
from kanon_duck.encoding.numeric import FLOATS, INTEGERS, LARGEST_FLOAT_STEPS, UNITS_PER_DAY, Step, read_step
from kanon_duck.errors import KanonError
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.database import Database, StatementError

EXACT_STEPS = 2**61
"""Domains of fewer steps are coded by the step itself; wider ones by rank among the values that occur. The difference
of two codes is a code too."""

MOST_SHOWN = 3
"""So many values far outside the rest are shown to the owner."""

ENDLESS = {"inf", "-inf"}
"""Texts of floats that are beyond the largest."""

RANKED_TYPE = "HUGEINT"
"""Type in which members keep steps whose codes are ranks; other codes are BIGINTs."""


class Ranks(NamedTuple):
    """Codes that are ranks among the steps that occur.

    Attributes
    ----------
    table : str
        Temporary table (code, step).
    positions : float64, shape (codes,)
        Position of each code in the domain, 0 to 1.
    domain, bulk : tuple of int
        Codes of the domain's ends and of the bulk.
    """

    table: str
    positions: NDArray[np.float64]
    domain: tuple[int, int]
    bulk: tuple[int, ...]


class NumericPlan(NamedTuple):
    """How the codes of one numeric quasi-identifier are read.

    Attributes
    ----------
    step : Step
    domain : tuple of int
        Its ends in steps.
    bulk : tuple of int or None
        The bulk in steps, as an earlier release was made with; None where it is still to be found.
    selected, joins : list of str
        SQL that reads ``low_<place>``, ``missing_<place>``, where it differs ``high_<place>``, and at a refresh
        ``unfit_<place>``: whether the value has no place in an interval. Such a value is read as if it were missing.
    ranks : Ranks or None
        Where codes are ranks.
    """

    step: Step
    domain: tuple[int, int]
    bulk: tuple[int, ...] | None
    selected: list[str]
    joins: list[str]
    ranks: Ranks | None


def plan_numeric(
    database: Database,
    snapshot: str,
    place: int,
    quasi_identifier: QuasiIdentifier,
    tables: list[str] | None,
    warnings: list[str],
) -> NumericPlan:
    """Step, domain and the SQL that reads the codes of one numeric quasi-identifier."""
    name, column_type = quasi_identifier.name, quasi_identifier.column_type
    column = f"snapshot.quasi_identifier_{place}"
    selected = []
    if tables is None:
        _refuse_endless(database, snapshot, name, column_type, column)
        _refuse_unrounded(database, snapshot, quasi_identifier, column)
    step = read_step(database, name, column_type, quasi_identifier.step)
    if tables is None:
        _refuse_too_large(database, snapshot, name, step, column)
    else:
        selected.append(f"NOT {step.fits(column)} AS unfit_{place}")
        column = f"CASE WHEN {step.fits(column)} THEN {column} END"
    low, high = step.low(column), step.high(column)
    observed = _observed_steps(database, snapshot, quasi_identifier, step, low, high)
    domain = _given_domain(database, quasi_identifier, step) or observed or (0, 0)
    bulk = quasi_identifier.fixed_bulk
    observed = observed or domain
    if observed[0] < domain[0] or observed[1] > domain[1]:
        outside = database.value(
            f"SELECT count(*) FROM {snapshot} AS snapshot WHERE {low} < {domain[0]} OR {high} > {domain[1]}"
        )
        warnings.append(f"{outside} rows of {name} lie outside its domain: their information loss counts at most 1")

    span = (min(observed[0], domain[0]), max(observed[1], domain[1]))
    ranks, joins = None, []
    if _coded_by_rank(database, place, domain[0], span, tables):
        ranks = _rank_steps(database, snapshot, (place, column), (low, high), (domain, bulk or domain), tables or [])
        joins = [
            f"LEFT JOIN {ranks.table} AS {end}_{place} ON {end}_{place}.step = {steps}"
            for end, steps in (("low", low), ("high", high))
        ]
        codes = [f"coalesce({end}_{place}.code, 0)" for end in ("low", "high")]
    else:
        codes = [f"coalesce(CAST({steps} - ({domain[0]}) AS BIGINT), 0)" for steps in (low, high)]
    selected += [f"{codes[0]} AS low_{place}", f"{column} IS NULL AS missing_{place}"]
    if low != high:
        selected.append(f"{codes[1]} AS high_{place}")
    return NumericPlan(step, domain, bulk, selected, joins, ranks)


def _rank_steps(
    database: Database,
    snapshot: str,
    column: tuple[int, str],
    steps: tuple[str, str],
    fixed: tuple[tuple[int, int], tuple[int, ...]],
    tables: list[str],
) -> Ranks:
    """Number the steps that occur, or that members have or had, with the domain's ends and the bulk, in their order.

    Parameters
    ----------
    column : tuple of int and str
        Place of the quasi-identifier, and SQL for its value.
    steps : tuple of str
        SQL for its low and its high step.
    fixed : pair of tuples
        The domain's ends and the bulk, in steps.
    """
    place, value = column
    table = f"temp.kanon_ranks_{place}"
    parts = [f"SELECT CAST({step} AS HUGEINT) AS step" for step in chain(*fixed)]
    stored = ("low", "high") if steps[0] != steps[1] else ("low",)
    parts += [f"SELECT {end}_{place} FROM {each_table}" for each_table in tables for end in stored]
    parts += [f"SELECT {each_step} FROM {snapshot} AS snapshot WHERE {value} IS NOT NULL" for each_step in steps]
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {table} AS SELECT row_number() OVER (ORDER BY step) - 1 AS code, step "
        f"FROM ({' UNION '.join(parts)}) WHERE step IS NOT NULL"
    )
    first, last = fixed[0]
    # the difference of two HUGEINTs may be none, and then it need not be exact
    beyond = f"coalesce(CAST(TRY(step - ({first})) AS DOUBLE), CAST(step AS DOUBLE) - {float(first)!r})"
    positions = database.numpy(
        f"SELECT {beyond} / {float(max(last - first, 1))!r} AS position FROM {table} ORDER BY code"
    )["position"]
    selected = (f"min(code) FILTER (step = {step})" for step in chain(*fixed))
    [codes] = database.rows(f"SELECT {', '.join(selected)} FROM {table}")
    return Ranks(table, positions, codes[:2], codes[2:])


def _coded_by_rank(database: Database, place: int, base: int, span: tuple[int, int], tables: list[str] | None) -> bool:
    """Whether codes are ranks: where steps are too many.

    Where they have become too many since the last release, members keep their steps themselves from now on.
    """
    wide = span[1] - span[0] >= EXACT_STEPS
    if tables is None:
        return wide
    ranked = False
    for table in tables:
        types = dict(
            database.rows(
                f"SELECT column_name, column_type FROM (DESCRIBE {table}) WHERE column_name IN (SELECT unnest(?))",
                [[f"low_{place}", f"high_{place}"]],
            )
        )
        ranked = types[f"low_{place}"] == RANKED_TYPE
        for name in types if wide and not ranked else ():
            steps = f"CAST({name} AS {RANKED_TYPE}) + ({base})"
            database.execute(f"ALTER TABLE {table} ALTER COLUMN {name} SET DATA TYPE {RANKED_TYPE} USING {steps}")
    return wide or ranked


def _observed_steps(
    database: Database, snapshot: str, quasi_identifier: QuasiIdentifier, step: Step, low: str, high: str
) -> tuple[int, int] | None:
    """Least low and greatest high step that occur, None without values; both must be values of the column's type."""
    try:
        first, last = database.rows(
            f"SELECT CAST(min({low}) AS VARCHAR), CAST(max({high}) AS VARCHAR) FROM {snapshot} AS snapshot"
        )[0]
        if first is not None:
            ends = [step.text(step.bound(f"CAST({end} AS HUGEINT)")) for end in (first, last)]
            [texts] = database.rows(f"SELECT {', '.join(ends)}")
            if not ENDLESS.isdisjoint(texts):
                raise OverflowError
    except (StatementError, OverflowError) as error:
        given = "left to its default" if quasi_identifier.step is None else shown(quasi_identifier.step)
        raise KanonError(
            f"quasi_identifiers.{quasi_identifier.name}.step is {given}: a multiple of it next "
            f"to the values does not fit {step.column_type}; name a smaller step, or cast to a wider type in the source"
        ) from error
    return None if first is None else (int(first), int(last))


def _given_domain(database: Database, quasi_identifier: QuasiIdentifier, step: Step) -> tuple[int, int] | None:
    """The domain that the owner or an earlier release gave, in steps; None where it is to be observed."""
    if quasi_identifier.fixed_domain is not None:
        return quasi_identifier.fixed_domain
    if quasi_identifier.domain is None:
        return None
    argument = f"quasi_identifiers.{quasi_identifier.name}.domain"
    steps = []
    for end, to_step in zip(quasi_identifier.domain, (step.low, step.high), strict=True):
        if step.column_type in INTEGERS and isinstance(end, Decimal):  # a cast would round to the nearest
            end = math.floor(end) if to_step == step.low else math.ceil(end)
        value = database.value(f"SELECT CAST(TRY_CAST(? AS {step.column_type}) AS VARCHAR)", [str(end)])
        if value is None:
            raise KanonError(f"{argument} has the end {shown(end)}, which is no {step.column_type} value")
        bound = f"CAST('{value}' AS {step.column_type})"  # DuckDB's own text of a number or date
        steps.append(int(database.value(f"SELECT CAST({to_step(bound)} AS VARCHAR)")))
    if steps[0] > steps[1]:
        raise KanonError(f"{argument} is {list(quasi_identifier.domain)}: give the lower end first")
    return steps[0], steps[1]


def _refuse_too_large(database: Database, snapshot: str, name: str, step: Step, column: str) -> None:
    """Floats beyond so many steps have no neighbours a step away."""
    if step.column_type not in FLOATS:
        return
    largest = database.value(f"SELECT max(abs({column})) FROM {snapshot} AS snapshot")
    if largest is not None and largest / float(step.size) > LARGEST_FLOAT_STEPS:
        raise KanonError(
            f"quasi_identifiers.{name}.step is too small for {step.column_type} values as large as {largest}: "
            "name a coarser step"
        )


def _refuse_endless(database: Database, snapshot: str, name: str, column_type: str, column: str) -> None:
    """NaN and infinity have no place in an interval."""
    if column_type not in FLOATS and column_type not in UNITS_PER_DAY:
        return
    endless = database.value(f"SELECT count(*) FROM {snapshot} AS snapshot WHERE NOT isfinite({column})")
    if endless:
        raise KanonError(
            f"{name} is NaN or infinite in {endless} rows: such values have no place in an interval; "
            "make them NULL or leave the rows out in the source"
        )


def _refuse_unrounded(database: Database, snapshot: str, quasi_identifier: QuasiIdentifier, column: str) -> None:
    """Decimals of which most occur once would show whole originals at their ends: they must name a step."""
    if quasi_identifier.step is not None or not quasi_identifier.column_type.startswith("DECIMAL"):
        return
    rows, single = database.rows(
        f"SELECT coalesce(sum(c), 0), coalesce(sum(c) FILTER (c = 1), 0) FROM "
        f"(SELECT count(*) AS c FROM {snapshot} AS snapshot WHERE {column} IS NOT NULL GROUP BY {column})"
    )[0]
    if 2 * single > rows:
        raise KanonError(
            f"quasi_identifiers.{quasi_identifier.name}.step is missing: over half of the rows hold a value that "
            "occurs once, so bounds would show whole originals; name a step, for example "
            "{'type': 'numeric', 'step': 10}"
        )


def numeric_attribute(
    name: str, place: int, plan: NumericPlan, data: dict[str, Any], order: NDArray[np.int64]
) -> NumericAttribute:
    """The encoded column of one numeric quasi-identifier in an order, from what the plan's SQL has read."""
    low, missing = data[f"low_{place}"], data[f"missing_{place}"]
    high = data.get(f"high_{place}", low)
    if plan.ranks is None:
        base = plan.domain[0]
        bulk = tuple(step - base for step in plan.bulk or plan.domain)
        attribute = NumericAttribute(name, plan.step, low, high, missing, (0, plan.domain[1] - base), bulk, base)
    else:
        table, positions, domain, bulk = plan.ranks
        attribute = NumericAttribute(name, plan.step, low, high, missing, domain, bulk, 0, table, positions)
    attribute = attribute.take(order)
    return replace(attribute, bulk=find_bulk(attribute)) if plan.bulk is None else attribute


def steps_of(database: Database, attribute: NumericAttribute, codes: Iterable[int]) -> list[int]:
    """The steps that some codes stand for."""
    if attribute.ranks is None:
        return [code + attribute.base for code in codes]
    query = f"SELECT CAST(step AS VARCHAR) FROM {attribute.ranks} WHERE code = ?"
    return [int(database.value(query, [code])) for code in codes]


def bound_texts(database: Database, attribute: NumericAttribute, codes: Iterable[int]) -> list[str]:
    """The texts of the bounds at some codes."""
    step = attribute.step
    return [
        str(database.value(f"SELECT {step.text(step.bound(f'CAST({steps} AS HUGEINT)'))}"))
        for steps in steps_of(database, attribute, codes)
    ]


def far_warning(database: Database, attribute: NumericAttribute) -> str | None:
    """What the owner should know of values far outside the rest, with a domain that leaves them out."""
    far = attribute.is_far()
    if not far.any():
        return None
    values = np.unique(attribute.low[far]).tolist()
    shown = ", ".join(bound_texts(database, attribute, values[:MOST_SHOWN]))
    more = f" and {len(values) - MOST_SHOWN} others" if len(values) > MOST_SHOWN else ""
    first, last = bound_texts(database, attribute, (attribute.bulk[0], attribute.bulk[-1]))
    ends = f"['{first}', '{last}']" if attribute.step.column_type in UNITS_PER_DAY else f"[{first}, {last}]"
    return (
        f"{np.count_nonzero(far)} rows of {attribute.name} hold values far outside the rest: {shown}{more}; "
        f"if they stand for something else make them NULL, or name a domain without them: 'domain': {ends}"
    )

"""Numeric quasi-identifiers of a snapshot: their steps and domains, and the SQL that reads their codes."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import QuasiIdentifier
from kanon_duck.encoding.microdata import NumericAttribute
from kanon_duck.encoding.numeric import FLOATS, INTEGERS, LARGEST_FLOAT_STEPS, UNITS_PER_DAY, Step, read_step
from kanon_duck.errors import KanonError
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.database import Database, StatementError

EXACT_STEPS = 2**62
"""Domains of fewer steps are coded by the step itself; wider ones by rank among the values that occur."""

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
    domain : tuple of int
        Codes of the domain's ends.
    """

    table: str
    positions: NDArray[np.float64]
    domain: tuple[int, int]


class NumericPlan(NamedTuple):
    """How the codes of one numeric quasi-identifier are read.

    Attributes
    ----------
    step : Step
    domain : tuple of int
        Its ends in steps.
    selected, joins : list of str
        SQL that reads ``low_<place>``, ``missing_<place>`` and, where it differs, ``high_<place>``.
    ranks : Ranks or None
        Where codes are ranks.
    """

    step: Step
    domain: tuple[int, int]
    selected: list[str]
    joins: list[str]
    ranks: Ranks | None


def plan_numeric(
    database: Database,
    snapshot: str,
    place: int,
    quasi_identifier: QuasiIdentifier,
    members: str | None,
    warnings: list[str],
) -> NumericPlan:
    """Step, domain and the SQL that reads the codes of one numeric quasi-identifier."""
    name, column_type = quasi_identifier.name, quasi_identifier.column_type
    column = f"snapshot.quasi_identifier_{place}"
    _refuse_endless(database, snapshot, name, column_type, column)
    if members is None:
        _refuse_unrounded(database, snapshot, quasi_identifier, column)
    step = read_step(database, name, column_type, quasi_identifier.step)
    if column_type in FLOATS:
        largest = database.value(f"SELECT max(abs({column})) FROM {snapshot} AS snapshot")
        if largest is not None and largest / float(step.size) > LARGEST_FLOAT_STEPS:
            raise KanonError(
                f"quasi_identifiers.{name}.step is too small for {column_type} values as large as {largest}: "
                "name a coarser step"
            )
    low, high = step.low(column), step.high(column)
    observed = _observed_steps(database, snapshot, quasi_identifier, step, low, high)
    domain = _given_domain(database, quasi_identifier, step) or observed or (0, 0)
    observed = observed or domain
    if observed[0] < domain[0] or observed[1] > domain[1]:
        outside = database.value(
            f"SELECT count(*) FROM {snapshot} AS snapshot WHERE {low} < {domain[0]} OR {high} > {domain[1]}"
        )
        warnings.append(f"{outside} rows of {name} lie outside its domain: their information loss counts at most 1")

    span = (min(observed[0], domain[0]), max(observed[1], domain[1]))
    ranks, joins = None, []
    if _coded_by_rank(database, place, name, span, members):
        ranks = _rank_steps(database, snapshot, place, (low, high), domain, members)
        joins = [
            f"LEFT JOIN {ranks.table} AS {end}_{place} ON {end}_{place}.step = {steps}"
            for end, steps in (("low", low), ("high", high))
        ]
        codes = [f"coalesce({end}_{place}.code, 0)" for end in ("low", "high")]
    else:
        codes = [f"coalesce(CAST({steps} - ({domain[0]}) AS BIGINT), 0)" for steps in (low, high)]
    selected = [f"{codes[0]} AS low_{place}", f"{column} IS NULL AS missing_{place}"]
    if low != high:
        selected.append(f"{codes[1]} AS high_{place}")
    return NumericPlan(step, domain, selected, joins, ranks)


def _rank_steps(
    database: Database,
    snapshot: str,
    place: int,
    steps: tuple[str, str],
    domain: tuple[int, int],
    members: str | None,
) -> Ranks:
    """Number the low and high steps that occur, or that members have, with the ends of the domain, in their order."""
    table = f"temp.kanon_ranks_{place}"
    values = f"FROM {snapshot} AS snapshot WHERE snapshot.quasi_identifier_{place} IS NOT NULL"
    parts = [f"SELECT CAST({domain[0]} AS HUGEINT) AS step", f"SELECT CAST({domain[1]} AS HUGEINT)"]
    if members is not None:
        stored = ("low", "high") if steps[0] != steps[1] else ("low",)
        parts += [f"SELECT {end}_{place} FROM {members}" for end in stored]
    parts += [f"SELECT {each_step} {values}" for each_step in steps]
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {table} AS SELECT row_number() OVER (ORDER BY step) - 1 AS code, step "
        f"FROM ({' UNION '.join(parts)}) WHERE step IS NOT NULL"
    )
    width = domain[1] // 2 - domain[0] // 2  # halves, because the difference of two HUGEINTs may be none
    positions = database.numpy(
        f"SELECT CAST(step // 2 - ({domain[0] // 2}) AS DOUBLE) / {float(width)!r} AS position FROM {table} "
        "ORDER BY code"
    )["position"]
    [ends] = database.rows(
        f"SELECT min(code) FILTER (step = {domain[0]}), min(code) FILTER (step = {domain[1]}) FROM {table}"
    )
    return Ranks(table, positions, ends)


def _coded_by_rank(database: Database, place: int, name: str, span: tuple[int, int], members: str | None) -> bool:
    """Whether codes are ranks: where steps are too many, from the first release on."""
    wide = span[1] - span[0] >= EXACT_STEPS
    if members is None:
        return wide
    stored = database.value(f"SELECT typeof(low_{place}) FROM {members} LIMIT 1")
    if wide and stored != RANKED_TYPE:
        raise KanonError(
            f"{name} has values so far outside its domain that they cannot be counted in steps of it: "
            "CALL kanon.rebuild to give it a new domain"
        )
    return bool(stored == RANKED_TYPE)


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


def numeric_attribute(name: str, place: int, plan: NumericPlan, data: dict[str, Any]) -> NumericAttribute:
    """The encoded column of one numeric quasi-identifier, from what the plan's SQL has read."""
    low, missing = data[f"low_{place}"], data[f"missing_{place}"]
    high = data.get(f"high_{place}", low)
    if plan.ranks is None:
        first, last = plan.domain
        return NumericAttribute(name, plan.step, low, high, missing, (0, last - first), first)
    ranks = plan.ranks
    return NumericAttribute(name, plan.step, low, high, missing, ranks.domain, 0, ranks.table, ranks.positions)

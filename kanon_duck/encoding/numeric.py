"""Converts values of any ordered type to exact whole numbers of steps, and back.

A value v with step s lies between the multiples floor(v / s) and ceil(v / s) of s, counted from 0 (or
1970-01-01). These two numbers, the *low* and the *high step* of v, are all that the search, the measures
and the released bounds are made of, so that a bound is exact wherever the type is: nothing but floats
themselves ever goes through a float.

The functions build SQL text from names that kanon_duck gives (``quasi_identifier_0``), whole numbers and
DuckDB's own names of numeric types; nothing a user typed takes part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from kanon_duck.errors import KanonError
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.database import Database, StatementError

INTEGERS = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)
FLOATS = frozenset(["FLOAT", "DOUBLE"])
TIMESTAMPS = {
    "TIMESTAMP": "make_timestamp({})",
    "TIMESTAMP_S": "CAST(make_timestamp({}) AS TIMESTAMP_S)",
    "TIMESTAMP_MS": "CAST(make_timestamp({}) AS TIMESTAMP_MS)",
    "TIMESTAMP_NS": "make_timestamp_ns({})",
    "TIMESTAMP WITH TIME ZONE": "(to_timestamp(0) + to_microseconds({}))",
}
UNITS_PER_DAY = dict.fromkeys(TIMESTAMPS, 86400 * 1000000) | {
    "TIMESTAMP_NS": 86_400 * 10**9,
    "DATE": 1,
}

LARGEST_STEP, LARGEST_DECIMAL_STEP = 2**62, 2**126
"""A step has fewer units than this, so that its multiples around any 64-bit value fit a HUGEINT, and around most values
of a DECIMAL, which may have more digits. A step of floats is no number of units."""

LARGEST_FLOAT_STEPS = 2**53
"""Beyond this many steps from 0 a DOUBLE can no longer tell neighbours apart."""


def decimal_type(column_type: str) -> tuple[int, int] | None:
    """Width and scale of a DECIMAL type, None for any other type."""
    match = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", column_type)
    return (int(match[1]), int(match[2])) if match else None


def is_numeric(column_type: str) -> bool:
    """Whether a column of this DuckDB type can be a numeric quasi-identifier."""
    return (
        column_type in INTEGERS
        or column_type in FLOATS
        or column_type in UNITS_PER_DAY
        or column_type == "BOOLEAN"
        or decimal_type(column_type) is not None
    )


@dataclass(frozen=True)
class Step:
    """The grid that released bounds lie on.

    Attributes
    ----------
    column_type : str
        DuckDB's name of the source column's type.
    size : Fraction
        Distance of two neighbouring grid points, in units of the type (1 for integers and decimals, a day
        for dates, a microsecond or nanosecond for timestamps).
    """

    column_type: str
    size: Fraction

    def _units(self, value: str) -> str:
        """SQL for a value as a whole number of the type's smallest units."""
        scale = decimal_type(self.column_type)
        if scale is not None:
            width, places = scale
            if width + places <= 38:
                factor = f"CAST({10**places} AS DECIMAL({places + 1}, 0))"
                return f"CAST(CAST({value} AS DECIMAL(38, {places})) * {factor} AS HUGEINT)"
            return f"CAST(replace(CAST({value} AS VARCHAR), '.', '') AS HUGEINT)"
        if self.column_type == "DATE":
            return f"CAST({value} - DATE '1970-01-01' AS HUGEINT)"
        if self.column_type == "TIMESTAMP_NS":
            return f"CAST(epoch_ns({value}) AS HUGEINT)"
        if self.column_type in TIMESTAMPS:
            return f"CAST(epoch_us({value}) AS HUGEINT)"
        return f"CAST({value} AS HUGEINT)"

    def _step_units(self) -> int:
        """The step as a whole number of the type's smallest units."""
        scale = decimal_type(self.column_type)
        return int(self.size * 10 ** scale[1]) if scale else int(self.size)

    def low(self, value: str) -> str:
        """SQL (HUGEINT) for the low step of a value; NULL for NULL."""
        if self.column_type in FLOATS:
            nearest = self._nearest(value)
            return f"({nearest} - CASE WHEN {self.bound(nearest)} > {value} THEN 1 ELSE 0 END)"
        units, step = self._units(value), self._step_units()
        if step == 1:
            return units
        remainder = f"({units} % {step} + {step}) % {step}"
        return f"({units} - {remainder}) // {step}"

    def high(self, value: str) -> str:
        """SQL (HUGEINT) for the high step of a value; NULL for NULL."""
        if self.column_type in FLOATS:
            nearest = self._nearest(value)
            return f"({nearest} + CASE WHEN {self.bound(nearest)} < {value} THEN 1 ELSE 0 END)"
        if self._step_units() == 1:
            return self.low(value)
        on_grid = f"{self._units(value)} % {self._step_units()} = 0"
        return f"({self.low(value)} + CASE WHEN {on_grid} THEN 0 ELSE 1 END)"

    def _nearest(self, value: str) -> str:
        """SQL (HUGEINT) for the grid point of a float column nearest to a value; it may lie on either side."""
        return f"CAST(round({value} / {float(self.size)!r}) AS HUGEINT)"

    def bound(self, steps: str) -> str:
        """SQL for the grid point at a number of steps (HUGEINT), in the source column's type."""
        if self.column_type in FLOATS:
            point = f"CAST({steps} AS DOUBLE) * {self.size.numerator} / {self.size.denominator}"  # rounded once
            return f"CAST({point} AS {self.column_type})"
        units = f"({steps} * {self._step_units()})"
        scale = decimal_type(self.column_type)
        if scale is not None and scale[1] > 0:
            one = 10 ** scale[1]
            sign = f"CASE WHEN {units} < 0 THEN '-' ELSE '' END"
            fraction = f"lpad(CAST(abs({units}) % {one} AS VARCHAR), {scale[1]}, '0')"
            text = f"{sign} || CAST(abs({units}) // {one} AS VARCHAR) || '.' || {fraction}"
            return f"CAST({text} AS {self.column_type})"
        if self.column_type == "DATE":
            return f"(DATE '1970-01-01' + CAST({units} AS INTEGER))"
        if self.column_type in TIMESTAMPS:
            return TIMESTAMPS[self.column_type].format(f"CAST({units} AS BIGINT)")
        return f"CAST({units} AS {self.column_type})"

    def fits(self, value: str) -> str:
        """SQL for whether a value has a place in an interval whose ends the type can hold; NULL needs none."""
        conditions = []
        if self.column_type in FLOATS:
            conditions.append(f"abs({value}) / {float(self.size)!r} <= {LARGEST_FLOAT_STEPS}")
        if self.column_type in FLOATS or self.column_type in UNITS_PER_DAY:
            conditions.append(f"isfinite({value})")
        ends = [self.bound(end) for end in (self.low(value), self.high(value))]
        if self.column_type in FLOATS:
            conditions += [f"coalesce(TRY(isfinite({end})), false)" for end in ends]
        else:
            conditions += [f"TRY({self.text(end)}) IS NOT NULL" for end in ends]
        return f"({value} IS NULL OR ({' AND '.join(conditions)}))"

    def text(self, value: str) -> str:
        """SQL for the text of a bound as readers see it; a moment with a time zone is shown in UTC."""
        if self.column_type == "TIMESTAMP WITH TIME ZONE":
            return f"(CAST({value} AT TIME ZONE 'UTC' AS VARCHAR) || '+00')"
        return f"CAST({value} AS VARCHAR)"


def read_step(database: Database, attribute: str, column_type: str, given: Any) -> Step:
    """The step of a numeric quasi-identifier, given or by default.

    The default is 1 for integers and booleans, one last-place unit for decimals, a day for dates and
    timestamps; floats must name one, for they have no last place.

    Raises
    ------
    KanonError
        When the step is missing, not positive, finer than the type, or not a fixed length of time.
    """
    argument = f"quasi_identifiers.{attribute}.step"
    scale = decimal_type(column_type)
    if given is None:
        if column_type in FLOATS:
            raise KanonError(
                f"{argument} is missing: {attribute} is {column_type}, so bounds would show whole originals; "
                f"name a step, for example {{'type': 'numeric', 'step': 0.1}}"
            )
        return Step(column_type, Fraction(1, 10 ** scale[1]) if scale else Fraction(UNITS_PER_DAY.get(column_type, 1)))
    size = _time_units(database, argument, column_type, given) if column_type in UNITS_PER_DAY else None
    if size is None:
        size = _number(argument, given) * UNITS_PER_DAY.get(column_type, 1)
    if size <= 0:
        raise KanonError(f"{argument} is {shown(given)}: name a step above 0")
    smallest = Fraction(1, 10 ** scale[1]) if scale else Fraction(1)
    largest = LARGEST_STEP if scale is None else LARGEST_DECIMAL_STEP
    if column_type not in FLOATS and size / smallest >= largest:
        raise KanonError(
            f"{argument} is {shown(given)}, which is wider than any interval worth showing: name a finer one"
        )
    if column_type not in FLOATS and (size / smallest).denominator != 1:
        raise KanonError(
            f"{argument} is {shown(given)}, which is no whole multiple of the smallest difference that "
            f"{column_type} can hold: name a coarser step"
        )
    if column_type == "BOOLEAN" and size != 1:
        raise KanonError(f"{argument} is {shown(given)}: the step of a BOOLEAN is 1")
    return Step(column_type, size)


def written_step(column_type: str, given: Any) -> str:
    """The step of a numeric quasi-identifier as it was typed, or the default as one would type it."""
    if given is not None:
        return str(given)
    scale = decimal_type(column_type)
    return f"{Decimal(1).scaleb(-scale[1]):f}" if scale else "1 day" if column_type in UNITS_PER_DAY else "1"


def _number(argument: str, given: Any) -> Fraction:
    """A number typed as a number or as text."""
    try:
        if isinstance(given, bool):
            raise InvalidOperation
        return Fraction(Decimal(str(given)))
    except (InvalidOperation, ValueError, OverflowError):
        raise KanonError(f"{argument} is {shown(given)}: name a number") from None


def _time_units(database: Database, argument: str, column_type: str, given: Any) -> Fraction | None:
    """A length of time typed as an interval ('7 days'), in units of the type; None for a plain number."""
    if not isinstance(given, str) or re.fullmatch(r"\s*[-+.\deE]+\s*", given):
        return None
    try:
        row = database.row(
            "SELECT datepart('year', i) * 12 + datepart('month', i), epoch_us(i) "
            "FROM (SELECT CAST(? AS INTERVAL) AS i)",
            [given],
        )
    except StatementError:
        row = None
    if row is None or row[0]:
        raise KanonError(
            f"{argument} is {shown(given)}: name a number of days or an interval of fixed length such as '7 days' "
            "(months and years differ in length)"
        )
    return Fraction(row[1] * UNITS_PER_DAY[column_type], UNITS_PER_DAY["TIMESTAMP"])

"""Steps of numeric quasi-identifiers: exact, outward, and back in the column's own type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.encoding.numeric import is_numeric, read_step
from kanon_duck.errors import KanonError
from kanon_duck.runtime.database import Database

pytestmark = pytest.mark.surface

SHARED = Database(duckdb.connect())


@pytest.fixture(scope="module")
def database() -> Database:
    return SHARED


def steps_and_bounds(database: Database, column_type: str, step: Any, value: Any) -> tuple[int, int, str, str]:
    """Low and high step of a value, and the texts of the bounds there."""
    grid = read_step(database, "x", column_type, step)
    database.execute(f"CREATE OR REPLACE TEMP TABLE one AS SELECT CAST(? AS {column_type}) AS x", [value])
    low, high = database.rows(f"SELECT CAST({grid.low('x')} AS VARCHAR), CAST({grid.high('x')} AS VARCHAR) FROM one")[0]
    bounds = [grid.bound(f"CAST({steps} AS HUGEINT)") for steps in (low, high)]
    first, last = database.rows(f"SELECT {grid.text(bounds[0])}, {grid.text(bounds[1])}")[0]
    kinds = database.rows(f"SELECT typeof({bounds[0]}), typeof({bounds[1]})")[0]
    assert set(kinds) == {column_type}
    return int(low), int(high), first, last


@pytest.mark.parametrize(
    ("column_type", "step", "value", "first", "last"),
    [
        ("INTEGER", None, 35, "35", "35"),
        ("INTEGER", 1000, 1500, "1000", "2000"),
        ("INTEGER", 1000, -1, "-1000", "0"),
        ("INTEGER", 1000, 2000, "2000", "2000"),
        ("BIGINT", None, 2**63 - 1, str(2**63 - 1), str(2**63 - 1)),
        ("BIGINT", None, -(2**63), str(-(2**63)), str(-(2**63))),
        ("BIGINT", 10, 2**63 - 9, "9223372036854775790", "9223372036854775800"),
        ("UBIGINT", None, 2**64 - 1, str(2**64 - 1), str(2**64 - 1)),
        ("HUGEINT", None, 2**126 + 1, str(2**126 + 1), str(2**126 + 1)),
        ("DECIMAL(10,2)", None, "12.34", "12.34", "12.34"),
        ("DECIMAL(10,2)", "0.05", "12.34", "12.30", "12.35"),
        ("DECIMAL(10,2)", 1, "-0.01", "-1.00", "0.00"),
        ("DECIMAL(38,10)", None, "1234567890123456789012345678.0123456789",
         "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"),
        ("DECIMAL(38,10)", None, "-0.0000000001", "-0.0000000001", "-0.0000000001"),
        ("DECIMAL(18,0)", 7, "20", "14", "21"),
        ("DOUBLE", "0.1", 0.3, "0.3", "0.3"),
        ("DOUBLE", "0.1", 0.25, "0.2", "0.3"),
        ("DOUBLE", "0.5", -0.2, "-0.5", "0.0"),
        ("FLOAT", "0.1", 0.1, "0.1", "0.1"),
        ("DOUBLE", "0.01", -50.260000000000005, "-50.27", "-50.26"),
        ("BOOLEAN", None, True, "true", "true"),
        ("DATE", None, "2021-03-31", "2021-03-31", "2021-03-31"),
        ("DATE", 7, "1970-01-09", "1970-01-08", "1970-01-15"),
        ("DATE", "7 days", "1969-12-31", "1969-12-25", "1970-01-01"),
        ("TIMESTAMP", None, "2021-03-31 12:00:00", "2021-03-31 00:00:00", "2021-04-01 00:00:00"),
        ("TIMESTAMP", "1 hour", "2021-03-31 12:30:00.5", "2021-03-31 12:00:00", "2021-03-31 13:00:00"),
        ("TIMESTAMP_NS", "1 hour", "2021-03-31 12:30:00.123456789", "2021-03-31 12:00:00", "2021-03-31 13:00:00"),
        ("TIMESTAMP WITH TIME ZONE", "1 hour", "2021-03-31 12:30:00+02", "2021-03-31 10:00:00+00", "2021-03-31 11:00:00+00"),
    ],
)  # fmt: skip
def test_bounds_are_exact_and_snapped_outward(
    database: Database, column_type: str, step: Any, value: Any, first: str, last: str
) -> None:
    assert steps_and_bounds(database, column_type, step, value)[2:] == (first, last)


@settings(max_examples=60, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 10**12))
def test_integers_match_exact_arithmetic(value: int, step: int) -> None:
    database = SHARED
    low, high = floor(Fraction(value, step)), ceil(Fraction(value, step))
    found = steps_and_bounds(database, "HUGEINT", step, value)
    assert found == (low, high, str(low * step), str(high * step))


@settings(max_examples=60, deadline=None)
@given(
    st.decimals(Decimal(-(10**27)), Decimal(10**27), places=10, allow_nan=False, allow_infinity=False),
    st.integers(1, 10**9),
)
def test_decimals_match_exact_arithmetic(value: Decimal, units: int) -> None:
    database = SHARED
    step = Fraction(units, 10**10)
    low, high, first, last = steps_and_bounds(
        database, "DECIMAL(38,10)", format(Decimal(units).scaleb(-10), "f"), format(value, "f")
    )
    assert (low, high) == (floor(Fraction(value) / step), ceil(Fraction(value) / step))
    assert (Fraction(Decimal(first)), Fraction(Decimal(last))) == (low * step, high * step)


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e6, 1e6), st.sampled_from(["0.1", "0.25", "3", "1000"]))
def test_float_bounds_enclose_the_value(value: float, step: str) -> None:
    database = SHARED
    _, _, first, last = steps_and_bounds(database, "DOUBLE", step, value)
    assert float(first) <= value <= float(last)
    assert float(last) - float(first) <= float(step) + 1e-9 * max(1.0, abs(value))


@pytest.mark.parametrize(
    ("column_type", "step", "words"),
    [
        ("DOUBLE", None, "x.step is missing"),
        ("INTEGER", 0, "above 0"),
        ("INTEGER", "a lot", "name a number"),
        ("INTEGER", "0.5", "coarser"),
        ("DECIMAL(10,2)", "0.001", "coarser"),
        ("DATE", "1 month", "fixed length"),
        ("DATE", "1 hour", "coarser"),
        ("BOOLEAN", 2, "step of a BOOLEAN is 1"),
        ("TIMESTAMP", "1e20", "finer"),
        ("HUGEINT", 10**40, "finer"),
    ],
)
def test_a_wrong_step_is_refused(database: Database, column_type: str, step: Any, words: str) -> None:
    with pytest.raises(KanonError, match=words):
        read_step(database, "x", column_type, step)


def test_types() -> None:
    assert all(map(is_numeric, ["TINYINT", "DECIMAL(5,1)", "DATE", "TIMESTAMP", "BOOLEAN", "DOUBLE"]))
    assert not any(map(is_numeric, ["VARCHAR", "UUID", "INTEGER[]", "INTERVAL", "TIME"]))


def test_dates_before_the_epoch_count_backwards(database: Database) -> None:
    day = datetime.date(1969, 12, 31)
    assert steps_and_bounds(database, "DATE", None, day)[:2] == (-1, -1)

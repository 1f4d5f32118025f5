"""Numbers far outside the rest, and values that have no place in an interval."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tests.people import one

pytestmark = pytest.mark.surface

COLUMNS = {
    "date": ("DATE", "DATE '2024-01-01' + CAST(hash(i) % 365 AS INTEGER)", "DATE '9999-12-31'"),
    "income": ("BIGINT", "20000 + CAST(hash(i) % 70000 AS BIGINT)", "999999999"),
    "age": ("INTEGER", "18 + CAST(hash(i) % 73 AS INTEGER)", "999"),
    "low": ("INTEGER", "18 + CAST(hash(i) % 73 AS INTEGER)", "-2147483648"),
    "wide": ("BIGINT", "CAST(hash(i) % 1000 AS BIGINT)", "9223372036854775807"),
    "amount": ("DECIMAL(12,2)", "CAST(hash(i) % 90000 AS DECIMAL(12,2)) / 100", "999999999.99"),
}
"""Type, usual values, and a value that stands for something else."""

STEPS = {"amount": 1}


def people(connection: duckdb.DuckDBPyConnection, name: str, rows: int = 600, every: int = 5) -> None:
    """A table of usual values and, in every fifth row, of the one that stands for something else."""
    column_type, usual, other = COLUMNS[name]
    connection.execute(
        f"CREATE OR REPLACE TABLE people AS SELECT i AS id, CAST(CASE WHEN i % {every} = 0 THEN {other} ELSE {usual} END "
        f"AS {column_type}) AS x, CAST(hash(i, 1) % 30 AS VARCHAR) AS city, hash(i, 2) % 40 AS room, "
        f"i % {every} = 0 AS other FROM range({rows}) AS r(i)"
    )


def mask(connection: duckdb.DuckDBPyConnection, view: str, source: str, x: str, more: str = "") -> dict[str, Any]:
    return one(
        connection,
        f"CALL kanon.create_masked_view('{view}', source => '{source}', key => 'id', k => 3, secure => false, "
        f"independent => true, keep => ['other'], allow_unsafe_keep => ['other'], quasi_identifiers => {{'x': {x}{more}}})",
    )


def mean_width(connection: duckdb.DuckDBPyConnection, view: str) -> float:
    """Of the intervals of usual values; an interval that is wider than these spread tells as little as the root."""
    kind = connection.execute(f"SELECT typeof(x_min) FROM {view}").fetchall()[0][0]
    number = "epoch({}) / 86400" if kind == "DATE" else "CAST({} AS DOUBLE)"
    width = f"{number.format('x_max')} - {number.format('x_min')}"
    spread = f"(SELECT {number.format('max(x)')} - {number.format('min(x)')} FROM people WHERE NOT other)"
    query = f"SELECT avg(least(coalesce({width}, 1e30), {spread})) FROM {view} WHERE NOT other"
    return float(connection.execute(query).fetchall()[0][0])


@pytest.mark.parametrize("more", ["", ", 'city': 'flat', 'room': 'numeric'"])
@pytest.mark.parametrize("name", COLUMNS)
def test_intervals_of_the_rest_are_as_tight_as_without(
    connection: duckdb.DuckDBPyConnection, name: str, more: str
) -> None:
    people(connection, name)
    x = f"{{'type': 'numeric', 'step': {STEPS.get(name, 1)}}}"
    answer = mask(connection, "masked", "people", x, more)
    mask(connection, "usual", "SELECT * FROM people WHERE NOT other", x, more)
    assert mean_width(connection, "masked") <= 1.1 * mean_width(connection, "usual")
    [warning] = [warning for warning in answer["warnings"] if "far outside the rest" in warning]
    assert warning.startswith("120 rows of x hold values far outside the rest: ")
    assert "or name a domain without them: 'domain': [" in warning


def test_the_warning_names_values_and_a_domain(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE people AS SELECT i AS id, true AS other, CASE WHEN i < 48 THEN DATE '2024-01-01' + i::INTEGER "
        "WHEN i < 55 THEN DATE '9999-12-31' ELSE DATE '1900-01-01' + i::INTEGER END AS x FROM range(60) AS r(i)"
    )
    [warning] = [each for each in mask(connection, "masked", "people", "'numeric'")["warnings"] if "rows of x" in each]
    assert warning == (
        "12 rows of x hold values far outside the rest: 1900-02-25, 1900-02-26, 1900-02-27 and 3 others; if they stand "
        "for something else make them NULL, or name a domain without them: 'domain': ['2024-01-01', '2024-02-17']"
    )


def test_a_declared_domain_leaves_far_values_apart(connection: duckdb.DuckDBPyConnection) -> None:
    people(connection, "age")
    answer = mask(connection, "masked", "people", "{'type': 'numeric', 'domain': [18, 90]}")
    assert any(each.startswith("120 rows of x lie outside its domain") for each in answer["warnings"])
    mask(connection, "usual", "SELECT * FROM people WHERE NOT other", "'numeric'")
    assert mean_width(connection, "masked") <= 1.1 * mean_width(connection, "usual")


@pytest.mark.parametrize(
    "values", ["{20, 21, 45, 70, 71}", "{1, 2, 3}", "{0, 1, 999}", "{5}", "{22, 23, 24, 33, 36, 38}"]
)
def test_what_is_not_far_is_not_warned_of(connection: duckdb.DuckDBPyConnection, values: str) -> None:
    connection.execute(
        f"CREATE TABLE people AS SELECT row_number() OVER () AS id, true AS other, x FROM (SELECT unnest([{values[1:-1]}]) AS x), range(3)"
    )
    assert not any("far outside" in each for each in mask(connection, "masked", "people", "'numeric'")["warnings"])


def test_crowded_values_are_told_apart(connection: duckdb.DuckDBPyConnection) -> None:
    """Most of 3,000 values lie in a ten-thousandth of the range, and none is far from its neighbours."""
    connection.execute(
        "CREATE TABLE people AS SELECT i AS id, true AS other, (i % 40)::INTEGER AS room, "
        "CAST(1000 * exp(12.0 * i * i / 9e6) AS BIGINT) + i AS x FROM range(3000) AS r(i)"
    )
    mask(connection, "masked", "people", "'numeric'")
    assert connection.execute("SELECT median(x_max - x_min) < 200 FROM masked").fetchone() == (True,)
    mask(connection, "two", "people", "'numeric'", ", 'room': 'numeric'")
    assert connection.execute("SELECT median(x_max - x_min) < 10000 FROM two").fetchone() == (True,)


def test_a_far_value_that_comes_later_is_told_and_changes_no_other_interval(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    people(connection, "age", every=1000)
    connection.execute("DELETE FROM people WHERE other")
    mask(connection, "masked", "people", "'numeric'")
    before = mean_width(connection, "masked")
    connection.execute("INSERT INTO people SELECT 1000 + i, 999999, 'x', 1, true FROM range(6) AS r(i)")
    answer = one(connection, "CALL kanon.refresh('masked')")
    assert any(each.startswith("6 rows of x hold values far outside the rest: 999999; ") for each in answer["warnings"])
    [(recommended,)] = connection.execute("SELECT refresh_recommended FROM kanon.masked_views").fetchall()
    assert recommended == (
        "6 rows of x lie outside its domain, 6 of them far outside the rest: name a domain, or correct them first"
    )
    assert mean_width(connection, "masked") <= 1.1 * before
    answer = one(connection, "CALL kanon.rebuild('masked')")
    assert any(
        each.startswith("the domain of x is 13889 times as wide as before, and all information loss of x is told as")
        for each in answer["warnings"]
    )
    assert mean_width(connection, "masked") <= 1.1 * before
    answer = one(connection, "CALL kanon.refresh('masked')")  # codes of members and of the batch are the same
    assert answer["cause"] == "unchanged"
    connection.execute("DELETE FROM people WHERE id % 9 = 0")
    one(connection, "CALL kanon.refresh('masked')")
    assert mean_width(connection, "masked") < 1


TYPES = {
    "TINYINT": ("-128", "127"),
    "SMALLINT": ("-32768", "32767"),
    "INTEGER": ("-2147483648", "2147483647"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "HUGEINT": ("-170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
    "UTINYINT": ("0", "255"),
    "USMALLINT": ("0", "65535"),
    "UINTEGER": ("0", "4294967295"),
    "UBIGINT": ("0", "18446744073709551615"),
    "DECIMAL(38,0)": ("-99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    "DECIMAL(18,4)": ("-99999999999998.5", "99999999999998.5"),
    "DATE": ("5877642-06-25 (BC)", "5881580-07-10"),
    "DOUBLE": ("-9e15", "9e15"),
}


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("column_type", TYPES)
def test_values_outside_a_domain_are_admitted_at_any_distance(
    connection: duckdb.DuckDBPyConnection, column_type: str, declared: bool
) -> None:
    usual = "DATE '2024-01-01' + i::INTEGER" if column_type == "DATE" else f"CAST(50 + i AS {column_type})"
    connection.execute(f"CREATE TABLE people AS SELECT i AS id, {usual} AS x, x AS other FROM range(40) AS r(i)")
    domain = (
        ", 'domain': " + ("['2024-01-01', '2024-01-20']" if column_type == "DATE" else "[50, 70]") if declared else ""
    )
    mask(connection, "masked", "people", f"{{'type': 'numeric', 'step': 1{domain}}}")
    for place, extreme in enumerate(TYPES[column_type]):
        connection.execute(
            f"INSERT INTO people SELECT {100 + place} + 10 * i, CAST('{extreme}' AS {column_type}) AS x, x FROM range(3) AS r(i)"
        )
        connection.execute(f"DELETE FROM people WHERE id IN ({5 * place}, {5 * place + 1})")
        answer = one(connection, "CALL kanon.refresh('masked')")
        [(rows,)] = connection.execute("SELECT count(*) FROM people").fetchall()
        assert (answer["rows"], answer["waiting"], answer["k_achieved"]) == (rows, 0, 3)
        assert 0 <= answer["information_loss_per_row"] <= 1
        within = "x = '*' OR other BETWEEN x_min AND x_max"
        assert connection.execute(f"SELECT bool_and({within}) FROM masked").fetchone() == (True,)
    # members that were coded in another way by then are refreshed, optimized and rebuilt as any others
    connection.execute(
        "UPDATE people SET x = y, other = y FROM (SELECT x AS y FROM people WHERE id = 20) WHERE id IN (30, 31, 100)"
    )
    assert one(connection, "CALL kanon.refresh('masked')")["rows"] == rows
    assert one(connection, "CALL kanon.optimize('masked')")["rows"] == rows
    assert one(connection, "CALL kanon.rebuild('masked')")["rows"] == rows
    outside = "x_min > x_max OR x IS NULL"
    assert connection.execute(f"SELECT count(*) FILTER ({outside}) FROM masked").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("column_type", "step", "bad", "reason"),
    [
        ("DATE", 1, "infinity", "x 'infinity' has no place in an interval"),
        ("TIMESTAMP", 1, "-infinity", "x '-infinity' has no place in an interval"),
        ("TIMESTAMP WITH TIME ZONE", 1, "infinity", "x 'infinity' has no place in an interval"),
        ("DOUBLE", 1, "nan", "x 'nan' has no place in an interval"),
        ("DOUBLE", 1, "inf", "x 'inf' has no place in an interval"),
        ("DOUBLE", 0.5, "1e300", "x '1e+300' has no place in an interval"),
        ("FLOAT", 1, "-inf", "x '-inf' has no place in an interval"),
        ("INTEGER", 1000, "2147483647", "x '2147483647' has no place in an interval"),
        ("DECIMAL(5,2)", 10, "999.99", "x '999.99' has no place in an interval"),
    ],
)
def test_a_value_without_a_place_waits_and_everything_else_goes_on(
    connection: duckdb.DuckDBPyConnection, column_type: str, step: float, bad: str, reason: str
) -> None:
    usual = "2000 + i::INTEGER"
    if column_type == "DECIMAL(5,2)":
        usual = "i * 5"
    elif column_type == "DATE" or "TIME" in column_type:
        usual = "DATE '2024-01-01' + i::INTEGER"
    connection.execute(
        f"CREATE TABLE people AS SELECT i AS id, CAST({usual} AS {column_type}) AS x, true AS other FROM range(40) AS r(i)"
    )
    mask(connection, "masked", "people", f"{{'type': 'numeric', 'step': {step}}}")
    connection.execute("DELETE FROM people WHERE id < 10")
    connection.execute(f"INSERT INTO people SELECT 77, CAST('{bad}' AS {column_type}), true")
    connection.execute(f"UPDATE people SET x = CAST('{bad}' AS {column_type}) WHERE id = 20")
    answer = one(connection, "CALL kanon.refresh('masked')")
    assert (answer["rows"], answer["waiting"]) == (29, 2)
    waiting = connection.execute("SELECT * FROM kanon.waiting('masked')").fetchall()
    assert waiting == [("20", 2, reason), ("77", 2, reason)]
    assert connection.execute("SELECT status, waiting FROM kanon.masked_views").fetchall() == [("current", 2)]
    assert one(connection, "CALL kanon.refresh('masked')")["cause"] == "unchanged"
    connection.execute("UPDATE people SET x = (SELECT x FROM people WHERE id = 30) WHERE id IN (20, 77)")
    answer = one(connection, "CALL kanon.refresh('masked')")
    assert (answer["rows"], answer["waiting"]) == (31, 0)


def test_a_secure_view_takes_in_values_at_any_distance(connection: duckdb.DuckDBPyConnection) -> None:
    """Codes that its classes once held, and that people have no more, are kept as steps too from then on."""
    connection.execute("CREATE TABLE people AS SELECT i AS id, CAST(50 + i % 30 AS BIGINT) AS x FROM range(60) AS r(i)")
    one(
        connection,
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 3, "
        "quasi_identifiers => {'x': {'type': 'numeric', 'domain': [50, 90]}})",
    )
    connection.execute("UPDATE people SET x = x + 1 WHERE id % 7 = 0")
    one(connection, "CALL kanon.refresh('masked')")
    connection.execute("INSERT INTO people SELECT 100 + i, 9223372036854775807 - i FROM range(4) AS r(i)")
    connection.execute("INSERT INTO people SELECT 200 + i, -9223372036854775807 + i FROM range(4) AS r(i)")
    for _ in range(5):
        answer = one(connection, "CALL kanon.refresh('masked')")
        assert connection.execute("SELECT bool_and(passed) FROM kanon.check('masked')").fetchone() == (True,)
        assert answer["rows"] + answer["waiting"] == 68
        connection.execute("UPDATE people SET x = x + 1 WHERE id % 11 = 0 AND x BETWEEN 0 AND 100")
    assert connection.execute("SELECT count(*) > 40 FROM masked WHERE x_min >= 50 AND x_max <= 100").fetchone() == (
        True,
    )
    assert connection.execute("SELECT status, reason FROM kanon.masked_views").fetchall() == [("current", None)]

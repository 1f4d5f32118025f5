"""The reader functions: plain SQL that works in a client without Python functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.procedures import create_hierarchy
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database, script

HOSTILE = 'it\'s; "DROP" TABLE t --é'


def clinic(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A database with one hierarchy of each kind; ``work`` is unbalanced, ``any`` has a root of its own."""
    connection = duckdb.connect(path)
    for name in ("catalog.sql", "hierarchies.sql", "readers.sql"):
        connection.execute(script(name))
    connection.execute("CREATE TABLE hostile AS SELECT $1, 'p' || $1, '*'", [HOSTILE])
    cursor = connection.cursor()
    (catalog,) = cursor.execute("SELECT current_database()").fetchone() or ()
    for options in (
        {"hierarchy": "Zip", "prefix": 5},
        {"hierarchy": "amount", "intervals": [5, 10, 20]},
        {"hierarchy": "share", "intervals": [0.5]},
        {"hierarchy": "income", "intervals": [1000]},
        {"hierarchy": "visit", "dates": ["month", "quarter", "year", "decade"]},
        {
            "hierarchy": "work",
            "levels": "FROM (VALUES ('private', '*', NULL), ('state', 'public', '*'), ('local', 'public', '*'))",
        },
        {"hierarchy": "any", "edges": "FROM (VALUES (34, 30), (35, 30), (30, 0), (40, 0))"},
        {"hierarchy": HOSTILE, "levels": "hostile"},
    ):
        create_hierarchy.run(Call(Database(cursor), options, catalog=catalog))
    cursor.close()
    return connection


@pytest.fixture(scope="module")
def readers() -> duckdb.DuckDBPyConnection:
    return clinic()


def value(connection: duckdb.DuckDBPyConnection, expression: str, *parameters: object) -> object:
    (answer,) = connection.execute(f"SELECT {expression}", list(parameters)).fetchone() or ()
    return answer


# --- generalize


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        ("'zip', '41076', 0", "41076"),
        ("'ZIP', '41076', 2", "410**"),
        ("'zip', 41076, 2", "410**"),
        ("'zip', '41076', 5", "*"),
        ("'zip', '41076', 99", "*"),
        ("'zip', '41', 1", "41  *"),
        ("'zip', '41', 4", "4****"),
        ("'zip', 'Zoë', 3", "Zo***"),
        ("'zip', '41   ', 0", "41"),
        ("'zip', NULL, 2", None),
        ("'zip', '41076', NULL", None),
        ("'amount', 7, 1", "[5, 10)"),
        ("'amount', 5, 1", "[5, 10)"),
        ("'amount', -3, 1", "[-5, 0)"),
        ("'amount', -5, 1", "[-5, 0)"),
        ("'amount', -3.5, 2", "[-10, 0)"),
        ("'amount', 4.9999999999999999, 1", "[0, 5)"),
        ("'amount', 7, 0", "7"),
        ("'amount', 7.0::DOUBLE, 0", "7"),
        ("'amount', '7', 3", "[0, 20)"),
        ("'amount', 7, 4", "*"),
        ("'amount', 1e17::DOUBLE, 1", "[100000000000000000, 100000000000000005)"),
        ("'income', -10, 1", "[-1000, 0)"),
        ("'share', 3.25, 1", "[3, 3.5)"),
        ("'share', -0.1, 1", "[-0.5, 0)"),
        ("'visit', DATE '2021-03-31', 0", "2021-03-31"),
        ("'visit', '2021-03-31', 1", "2021-03"),
        ("'visit', TIMESTAMP '2021-03-31 23:59:59.5', 2", "2021-Q1"),
        ("'visit', DATE '2021-03-31', 3", "2021"),
        ("'visit', DATE '2021-03-31', 4", "2020s"),
        ("'visit', DATE '0987-03-31', 4", "0980s"),
        ("'visit', DATE '2021-03-31', 5", "*"),
        ("'visit', '2021-01-01 00:00:00+02', 1", "2020-12"),
        ("'visit', TIMESTAMPTZ '2021-01-01 00:00:00+02', 1", "2020-12"),
        ("'visit', '2020-12-31T23:00:00-02:30', 0", "2021-01-01"),
        ("'work', 'private', 0", "private"),
        ("'work', 'private', 1", "*"),
        ("'work', 'local', 1", "public"),
        ("'any', 34, 1", "30"),
        ("'any', '34', 1", "30"),
        ("'any', 34.0::DOUBLE, 1", "30"),
        ("'any', 34.0, 2", "0"),
        ("'any', 34, 9", "0"),
        ("'flat', 'x', 0", "x"),
        ("'FLAT', 7, 1", "*"),
        ("'flat', true, 0", "true"),
    ],
)
def test_generalize(readers: duckdb.DuckDBPyConnection, arguments: str, label: str | None) -> None:
    for zone in ("UTC", "America/New_York"):
        readers.execute(f"SET TimeZone = '{zone}'")
        assert value(readers, f"kanon.generalize({arguments})") == label


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'zip', '410765', 1", "hierarchy 'zip' has no leaf '410765'"),
        ("'zip', '4107*', 1", r"has no leaf '4107\*'"),
        ("'zip', '410765', 9", "has no leaf '410765'"),
        ("'amount', 'x', 1", "has no leaf 'x'"),
        ("'amount', 'nan'::DOUBLE, 1", "has no leaf 'nan'"),
        ("'visit', '2021', 1", "has no leaf '2021'"),
        ("'work', 'public', 1", "has no leaf 'public'"),
        ("'any', 36, 1", "has no leaf '36'"),
        ("'flat', '*', 1", r"hierarchy 'flat' has no leaf '\*'"),
        ("'nope', 'x', 1", "there is no hierarchy 'nope'"),
        ("'zip', '41076', -1", "level -1 is negative"),
    ],
)
def test_generalize_refuses(readers: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=f"kanon.generalize: .*{message}"):
        value(readers, f"kanon.generalize({arguments})")


def test_arguments_may_be_columns_of_any_name(readers: duckdb.DuckDBPyConnection) -> None:
    names = (
        "hierarchy",
        "leaf",
        "level",
        "path",
        "asked",
        "stored",
        "leaves",
        "kind",
        "value",
        "label",
        "units",
    )
    for name in names:
        query = f"SELECT kanon.generalize('work', \"{name}\", 1) FROM (SELECT 'state' AS \"{name}\", 9 AS height)"
        assert readers.execute(query).fetchall() == [("public",)], name
        query = f"SELECT kanon.covers('work', 'public', \"{name}\") FROM (SELECT 'state' AS \"{name}\")"
        assert readers.execute(query).fetchall() == [(True,)], name
        query = f"SELECT kanon.common_ancestor('zip', \"{name}\") FROM (SELECT ['10', '11'] AS \"{name}\")"
        assert readers.execute(query).fetchall() == [("1****",)], name
        query = f'SELECT kanon.overlap("{name}", 10, 5, 7) FROM (SELECT 0 AS "{name}")'
        assert readers.execute(query).fetchall() == [(0.2,)], name
    assert readers.execute(
        "SELECT kanon.generalize(h, v, l) "
        "FROM (VALUES ('work', 'state', 1), ('zip', '10', 4), ('flat', 'x', 0)) AS t(h, v, l)"
    ).fetchall() == [("public",), ("1****",), ("x",)]


def test_hostile_names_and_labels(readers: duckdb.DuckDBPyConnection) -> None:
    assert value(readers, "kanon.generalize($1, $1, 1)", HOSTILE) == "p" + HOSTILE
    assert value(readers, "kanon.covers($1, 'p' || $1, $1)", HOSTILE) is True
    assert value(readers, "kanon.common_ancestor($1, [$1, $1])", HOSTILE) == HOSTILE
    with pytest.raises(duckdb.Error, match="has no leaf 'x''y"):
        value(readers, "kanon.generalize($1, $2, 1)", HOSTILE, "x''y")


def test_generalize_in_a_persistent_view_of_another_process(tmp_path: Path) -> None:
    file = tmp_path / "clinic.duckdb"
    with clinic(str(file)) as connection:
        connection.execute("CREATE VIEW shown AS SELECT kanon.generalize('work', x, 1) AS x FROM (SELECT 'state' AS x)")
    reading = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1], read_only=True)
for query in (
    "FROM shown",
    "SELECT kanon.generalize('zip', '41076', 2)",
    "SELECT kanon.common_ancestor('work', ['state', 'local'])",
    "SELECT kanon.covers('work', 'public', 'state')",
    "SELECT kanon.overlap(0, 10, 5, 7)",
):
    print(connection.execute(query).fetchone()[0])
print('kanon_duck' in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", reading, str(file)], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["public", "410**", "public", "True", "0.2", "False"]


# --- common_ancestor


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        ("'zip', ['41076', '41099']", "410**"),
        ("'zip', ['41076', '41076']", "41076"),
        ("'zip', ['41076', '51076', '41077']", "*"),
        ("'zip', []", None),
        ("'zip', NULL", None),
        ("'zip', [NULL, NULL]", None),
        ("'zip', ['41076', NULL]", "*"),
        ("'work', ['state', 'local', 'state']", "public"),
        ("'work', ['state', 'private']", "*"),
        ("'work', ['private']", "private"),
        ("'any', [34, 35]", "30"),
        ("'any', [34.0, 40]", "0"),
        ("'any', [34, NULL]", "*"),
        ("'amount', [1, 7]", "[0, 10)"),
        ("'amount', [-1, 1]", "*"),
        ("'visit', [DATE '2021-01-01', DATE '2021-03-01']", "2021-Q1"),
        ("'flat', ['a', 'a']", "a"),
        ("'flat', ['a', 'b']", "*"),
    ],
)
def test_common_ancestor(readers: duckdb.DuckDBPyConnection, arguments: str, label: str | None) -> None:
    assert value(readers, f"kanon.common_ancestor({arguments})") == label


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'zip', ['41076', '410765']", "has no leaf"),
        ("'work', ['state', 'x']", "has no leaf"),
        ("'nope', ['state']", "there is no hierarchy 'nope'"),
    ],
)
def test_common_ancestor_refuses(readers: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=f"kanon.common_ancestor: .*{message}"):
        value(readers, f"kanon.common_ancestor({arguments})")


@settings(max_examples=30, deadline=None)
@given(numbers=st.lists(st.integers(-60, 60), min_size=1, max_size=4))
def test_common_ancestor_of_intervals(readers: duckdb.DuckDBPyConnection, numbers: list[int]) -> None:
    """The narrowest interval that holds all, by definition."""
    expected = "*"
    for width in (20, 10, 5):
        (low, *others) = {number // width * width for number in numbers}
        if not others:
            expected = f"[{low}, {low + width})"
    if len(set(numbers)) == 1:
        expected = str(numbers[0])
    assert value(readers, "kanon.common_ancestor('amount', ?)", numbers) == expected


# --- covers


@pytest.mark.parametrize(
    ("arguments", "covered"),
    [
        ("'zip', '*', '41076'", True),
        ("'zip', '410**', '41076'", True),
        ("'zip', '410**', '41176'", False),
        ("'zip', '41076', '41076'", True),
        ("'zip', '41076', 41076", True),
        ("'zip', '410**', NULL", False),
        ("'zip', '*', NULL", True),
        ("'zip', NULL, NULL", True),
        ("'zip', NULL, '41076'", False),
        ("'work', 'public', 'state'", True),
        ("'work', 'public', 'private'", False),
        ("'work', '*', 'unknown'", True),
        ("'work', 'public', 'unknown'", False),
        ("'any', '0', 34", True),
        ("'any', '0', NULL", True),
        ("'any', '30', 34.0", True),
        ("'any', '30', 40", False),
        ("'amount', '[0, 10)', 7", True),
        ("'amount', '[0, 10)', 10", False),
        ("'amount', '7', 7.0", True),
        ("'visit', '2021-Q1', DATE '2021-03-31'", True),
        ("'visit', '2021-03-31', TIMESTAMP '2021-03-31 10:00:00'", True),
        ("'visit', '2021-Q1', DATE '2021-04-01'", False),
        ("'flat', 'a', 'a'", True),
        ("'flat', 'a', 'b'", False),
        ("'flat', '*', 'b'", True),
        ("'flat', 7, 7", True),
    ],
)
def test_covers(readers: duckdb.DuckDBPyConnection, arguments: str, covered: bool) -> None:
    assert value(readers, f"kanon.covers({arguments})") is covered


def test_covers_refuses_an_unknown_hierarchy(readers: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="kanon.covers: there is no hierarchy 'nope'"):
        value(readers, "kanon.covers('nope', 'a', 'a')")


# --- overlap


@pytest.mark.parametrize(
    ("arguments", "share"),
    [
        ("0, 10, 5, 7", 0.2),
        ("0, 10, -5, 50", 1.0),
        ("0, 10, 11, 50", 0.0),
        ("0, 10, 10, 50", 0.0),
        ("0, 10, 7, 5", 0.0),
        ("5, 5, 5, 7", 1.0),
        ("5, 5, 7, 5", 0.0),
        ("5, 5, 6, 7", 0.0),
        ("NULL::INTEGER, 10, 5, 7", None),
        ("0, NULL::INTEGER, 5, 7", None),
        ("0, 10, 2.5, 5", 0.25),
        ("0.0::DOUBLE, 1.0::DOUBLE, 0.5, 0.75", 0.25),
        ("-1.7e308::DOUBLE, 1.7e308::DOUBLE, 0.0, 1.7e308", 0.5),
        ("1.50::DECIMAL(10, 2), 3.50::DECIMAL(10, 2), 2, 3", 0.5),
        ("-1.50::DECIMAL(10, 2), 0.50::DECIMAL(10, 2), -0.5, 0", 0.25),
        ("9223372036854775803, 9223372036854775807, 9223372036854775805, 9223372036854775807", 0.5),
        ("(-9223372036854775808)::BIGINT, 9223372036854775807, 0, 9223372036854775807", 0.5),
        ("0::UBIGINT, 18446744073709551615::UBIGINT, 0, 9223372036854775807", 0.5),
        (
            "'-170141183460469231731687303715884105728'::HUGEINT, "
            "170141183460469231731687303715884105727::HUGEINT, "
            "0, 170141183460469231731687303715884105727::HUGEINT",
            0.5,
        ),
        (
            "170141183460469231731687303715884105723::HUGEINT, "
            "170141183460469231731687303715884105727::HUGEINT, "
            "170141183460469231731687303715884105725::HUGEINT, "
            "170141183460469231731687303715884105727::HUGEINT",
            0.5,
        ),
        (
            ", ".join(f"1234567890123456789012345678.000000000{last}::DECIMAL(38, 10)" for last in (1, 5, 2, 3)),
            0.25,
        ),
        ("DATE '2021-01-01', DATE '2021-01-11', '2021-01-06', '2022-01-01'", 0.5),
        ("DATE '2021-01-01', DATE '2021-01-11', DATE '2021-01-06', TIMESTAMP '2021-01-08 12:00:00'", 0.25),
        (
            "TIMESTAMP '2021-01-01', TIMESTAMP '2021-01-02', '2021-01-01 06:00:00', '2021-01-01 12:00:00'",
            0.25,
        ),
        (
            "TIMESTAMPTZ '2021-01-01 00:00:00+00', TIMESTAMPTZ '2021-01-02 00:00:00+00', "
            "TIMESTAMPTZ '2021-01-01 12:00:00+00', TIMESTAMPTZ '2021-01-01 18:00:00+00'",
            0.25,
        ),
        (
            "TIMESTAMP_NS '2021-01-01', TIMESTAMP_NS '2021-01-02', "
            "TIMESTAMP_NS '2021-01-01', TIMESTAMP_NS '2021-01-01 12:00:00'",
            0.5,
        ),
        ("false, true, false, true", 1.0),
        ("false, true, true, true", 0.0),
        ("true, true, true, true", 1.0),
    ],
)
def test_overlap(readers: duckdb.DuckDBPyConnection, arguments: str, share: float | None) -> None:
    answer = value(readers, f"kanon.overlap({arguments})")
    assert answer == (share if share is None else pytest.approx(share, rel=1e-6, abs=1e-12))
    assert value(readers, f"typeof(kanon.overlap({arguments}))") == "DOUBLE"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2).map(sorted),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
)
def test_overlap_of_integers(readers: duckdb.DuckDBPyConnection, bounds: list[int], begin: int, end: int) -> None:
    low, high = bounds
    inside = max(0, min(high, end) - max(low, begin))
    expected = inside / (high - low) if high > low else float(begin <= low <= end)
    answer = value(readers, "kanon.overlap(?::BIGINT, ?::BIGINT, ?::BIGINT, ?::BIGINT)", low, high, begin, end)
    assert answer == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert 0 <= answer <= 1

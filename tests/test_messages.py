"""What is said of typed values that are not what they should be, and how settings show what was typed."""

from __future__ import annotations

import json

import duckdb
import pytest

import kanon_duck
from tests.people import one

pytestmark = pytest.mark.surface

TABLE = """
SET TimeZone = 'America/New_York';
CREATE TABLE people AS
SELECT i AS id, i % 10 AS age, CAST(i / 10.0 AS DECIMAL(38, 37)) AS share, CAST(i / 4.0 AS DECIMAL(9, 2)) AS price,
       i * 1e300 AS far, DATE '2024-01-01' + CAST(i AS INTEGER) AS day, i % 3 AS d,
       TIMESTAMPTZ '2024-01-01 00:30:00+00' + to_hours(i) AS seen
FROM range(9) AS r(i)
"""


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(TABLE)
    return connection


def mask(quasi_identifiers: str, more: str = "") -> str:
    return (
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 3, secure => false, "
        f"independent => true, quasi_identifiers => {quasi_identifiers}{more})"
    )


def declared(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, object]]:
    [(text,)] = connection.execute("SELECT quasi_identifiers FROM kanon.masked_views").fetchall()
    return dict(json.loads(text))


def test_labels_of_moments_with_a_time_zone_say_which(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(mask("{'seen': {'type': 'numeric', 'step': '1 hour', 'domain': ['2023-12-31', '2024-01-02']}}"))
    labels = people.execute("SELECT DISTINCT seen FROM masked ORDER BY seen LIMIT 1").fetchall()
    assert labels == [("[2024-01-01 00:00:00+00, 2024-01-01 03:00:00+00]",)]
    assert people.execute(
        "SELECT bool_and(starts_with(seen, '[' || strftime(seen_min AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S+00'))) FROM masked"
    ).fetchall() == [(True,)]
    assert declared(people)["seen"]["domain"] == ["2023-12-31 00:00:00+00", "2024-01-02 00:00:00+00"]
    people.execute("DELETE FROM people WHERE id = 0; INSERT INTO people SELECT 20, * EXCLUDE (id) FROM people LIMIT 1")
    people.execute("CALL kanon.refresh('masked'); CALL kanon.rebuild('masked', k => 4)")
    assert declared(people)["seen"]["domain"][0].endswith("+00")


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("{'seen': {'type': 'numeric', 'step': '1 hour'}}", "1 hour"),
        ("{'day': {'type': 'numeric', 'step': '7 days'}}", "7 days"),
        ("{'day': {'type': 'numeric', 'step': 7}}", "7"),
        ("{'day': 'numeric'}", "1 day"),
        ("{'price': {'type': 'numeric', 'step': 0.25}}", "0.25"),
        ("{'age': 'numeric'}", "1"),
        ("{'far': {'type': 'numeric', 'step': 1e299}}", "1E+299"),
        ("{'share': {'type': 'numeric', 'step': 0.1}}", "0.1"),
        ("{'share': {'type': 'numeric', 'step': 0.0000000000000000000000000000000000001}}", "1E-37"),
    ],
)
def test_settings_show_a_step_as_it_was_typed(people: duckdb.DuckDBPyConnection, typed: str, shown: str) -> None:
    people.execute(mask(typed))
    [attribute] = declared(people).values()
    assert attribute["step"] == shown
    people.execute("DELETE FROM people WHERE id = 8")
    assert one(people, "CALL kanon.refresh('masked')")["rows"] == 8
    [attribute] = declared(people).values()
    assert attribute["step"] == shown


def test_steps_of_wide_decimals_and_of_huge_floats_are_exact_multiples(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(mask("{'share': {'type': 'numeric', 'step': 0.5}, 'far': {'type': 'numeric', 'step': 2e300}}"))
    [(wide, far)] = people.execute(
        "SELECT bool_and(share_min IN (0, 0.5, 1) AND share_max IN (0, 0.5, 1)), "
        "bool_and(far_min / 2e300 = round(far_min / 2e300)) FROM masked WHERE share_min IS NOT NULL"
    ).fetchall()
    assert wide in (True, None)
    assert far in (True, None)


CASES = [
    # steps
    (mask("{'share': {'type': 'numeric', 'step': 9}}"), "share.step is 9, which is wider than any interval worth showing"),
    (mask("{'far': {'type': 'numeric', 'step': 1e308}}"), None),
    (mask("{'age': {'type': 'numeric', 'step': '0'}}"), "age.step is '0': name a step above 0"),
    # names that are missing
    ("CALL kanon.create_hierarchy(NULL, prefix => 3)", "hierarchy: NULL is not a name"),
    ("CALL kanon.drop_hierarchy(NULL)", "hierarchy: NULL is not a name"),
    ("CALL kanon.extend_hierarchy(NULL, edges => 'x')", "hierarchy: NULL is not a name"),
    ("CALL kanon.create_hierarchy(true, prefix => 3)", "hierarchy: true is not a name"),
    ("CALL kanon.create_hierarchy('x', intervals => [NULL, 3])", "intervals: NULL is not a positive number"),
    ("CALL kanon.create_hierarchy('x', dates => [NULL])", "dates: NULL is not a period"),
    ("FROM kanon.check(NULL)", "view_name is missing"),
    # columns that are named twice
    (mask("['age']", ", sensitive => ['d', 'd'], l => 2"), "sensitive names d twice"),
    (mask("['age']", ", sensitive => ['d', 'D'], l => 2"), "sensitive names d twice"),
    (mask("['age']", ", sensitive => MAP {'d': NULL, 'D': NULL}, l => 2"), "sensitive names d twice"),
    (mask("['age']", ", keep => ['d', 'd']"), "keep names d twice"),
    (mask("['age']", ", keep => ['d'], allow_unsafe_keep => ['d', 'd']"), "allow_unsafe_keep names d twice"),
    (mask("['age']").replace("'id'", "['id', 'ID']"), "key names id twice"),
    ("FROM kanon.check('other', quasi_identifiers => ['age', 'AGE'])", "quasi_identifiers names age twice"),
    # a victim
    ("FROM kanon.attack('other', victim => {'age': 'x'})", "victim.age is 'x', which is no number: the column is BIGINT"),
    ("FROM kanon.attack('other', victim => {'id': 1.5})", "victim.id is 1.5, which is no BIGINT"),
    ("FROM kanon.attack('other', victim => {'day': 'yesterday'})", "victim.day is 'yesterday', which is no DATE"),
    ("FROM kanon.attack('other', victim => {'day': '2024-01-03'})", None),
    ("FROM kanon.attack('other', victim => {'id': '3'})", None),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "words"), CASES, ids=[statement[:60] for statement, _ in CASES])
def test_a_wrong_value_is_told_as_sql_writes_it(
    people: duckdb.DuckDBPyConnection, statement: str, words: str | None
) -> None:
    people.execute(mask("['age', 'day']").replace("'masked'", "'other'"))
    if words is None:
        people.execute(statement).fetchall()
        return
    with pytest.raises(duckdb.Error) as raised:
        people.execute(statement).fetchall()
    assert words in str(raised.value)
    assert "None" not in str(raised.value)


def test_a_schema_of_ours_that_somebody_has_dropped_is_told(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(mask("['age']"))
    people.execute("DROP SCHEMA kanon CASCADE")
    kanon_duck.install(people)  # the interface holds nothing that could be lost
    assert one(people, "CALL kanon.refresh('masked')")["cause"] == "unchanged"
    people.execute("DROP SCHEMA kanon_private CASCADE")
    with pytest.raises(kanon_duck.KanonError, match="somebody has dropped kanon_private .*: bring back a copy"):
        kanon_duck.install(people)
    assert people.execute("SELECT count(*) FROM masked").fetchall() == [(9,)]
    for schema in ("kanon", "kanon_released", "kanon_history", "kanon_history_classes"):
        people.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    people.execute("CREATE SCHEMA kanon")
    with pytest.raises(kanon_duck.KanonError, match="a schema kanon that kanon_duck did not make"):
        kanon_duck.install(people)


def test_a_class_of_missing_moments_shows_nothing(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("UPDATE people SET seen = NULL WHERE id < 3")
    people.execute(mask("{'seen': {'type': 'numeric', 'step': '1 hour'}}"))
    missing = people.execute("SELECT DISTINCT seen, seen_max FROM masked WHERE seen_min IS NULL").fetchall()
    assert missing == [(None, None)]

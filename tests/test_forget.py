"""Erasure: of one person from the private history, and what is said of everything that stays."""

from __future__ import annotations

import duckdb
import pytest

import kanon_duck
from tests.extreme_people import MASK, PEOPLE, refresh, statistics
from tests.people import one

pytestmark = pytest.mark.surface


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A database with people."""
    connection.execute(PEOPLE)
    return connection


def kept_of(connection: duckdb.DuckDBPyConnection, text: str) -> list[str]:
    """Tables of the database that hold a text."""
    tables = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name LIKE 'kanon%'"
    ).fetchall()
    return [
        f"{schema}.{table}"
        for schema, table in tables
        if text in str(connection.execute(f'FROM "{schema}"."{table}"').fetchall())
    ]


def test_one_person_is_erased_from_the_private_history(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("UPDATE people SET disease = 'unheard of' WHERE id = 77")
    people.execute(MASK)
    people.execute("DELETE FROM people WHERE id = 77")
    refresh(people)
    assert "kanon_private.stays_1" in kept_of(people, "unheard of")
    told = one(people, "CALL kanon.forget('v', before_release => 2)")["note"]
    assert "the private history still holds who was in which class" in told
    assert "nothing is left" not in told
    assert kept_of(people, "unheard of") == ["kanon_private.stays_1"]
    before = people.execute("SELECT count(*), count(DISTINCT person) FROM kanon_private.stays_1").fetchall()
    channels = people.execute("SELECT kind, victims, candidates FROM kanon.inference_channels('v')").fetchall()

    answer = one(people, "CALL kanon.forget('v', key => 77)")
    assert answer["forgotten_rows"] == 1
    assert "(releases 1 to 1)" in answer["note"]
    assert "kanon.inference_channels" in answer["note"]
    assert kept_of(people, "unheard of") == []
    assert people.execute("SELECT count(*), count(DISTINCT person) FROM kanon_private.stays_1").fetchall() == before
    assert "unheard" not in statistics(people, "kanon_private.stays_1")["sensitive_0"]
    found = people.execute("SELECT kind, victims, candidates FROM kanon.inference_channels('v')").fetchall()
    assert sorted(found) == sorted(channels)  # as many rows are compared as were released
    again = one(people, "CALL kanon.forget('v', key => 77)")
    assert again["forgotten_rows"] == 0
    assert "holds nobody with this key" in again["note"]
    people.execute("DELETE FROM people WHERE id < 20")
    refresh(people)
    assert people.execute("SELECT bool_and(passed) FROM kanon.check('v')").fetchall() == [(True,)]


def test_whom_forget_cannot_erase(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(MASK)
    for call, message in (
        ("key => 77", r"key is 77, whom v still knows: delete the row from the source and CALL kanon.refresh\('v'\)"),
        ("key => 'x'", r"key is 'x', which is no BIGINT as id is"),
        ("key => {'it': 1}", "its columns are id"),
        ("key => NULL", "before_release is missing"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            people.execute(f"CALL kanon.forget('v', {call})")


def test_a_composite_key_is_a_struct(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("CREATE TABLE visits AS SELECT DATE '2020-01-01' + CAST(id % 9 AS INTEGER) AS day, * FROM people")
    people.execute(MASK.replace("'people'", "'visits'").replace("'id'", "['id', 'day']"))
    people.execute("UPDATE visits SET disease = 'unheard of' WHERE id = 10")
    refresh(people)
    people.execute("DELETE FROM visits WHERE id = 10")
    refresh(people)
    rows = one(people, "CALL kanon.forget('v', before_release => 3, key => {'id': 10, 'day': DATE '2020-01-03'})")
    assert rows["forgotten_releases"] == 2
    assert kept_of(people, "unheard of") == ["kanon_private.stays_1"]
    erased = one(people, "CALL kanon.forget('v', key => {'id': 10, 'day': DATE '2020-01-02'})")
    assert erased["forgotten_rows"] == 2  # with either value
    assert kept_of(people, "unheard of") == []


def test_numbers_of_people_are_others_in_each_database() -> None:
    numbers = []
    for _ in range(2):
        with kanon_duck.connect(":memory:") as connection:
            connection.execute(
                "CREATE TABLE people AS SELECT i AS id, i AS income, 'c' AS city, 'd' AS disease, 'n' AS note FROM range(60) AS r(i)"
            )
            connection.execute(MASK)
            connection.execute("DELETE FROM people WHERE id % 7 = 0")
            connection.execute("CALL kanon.refresh('v')")
            numbers.append(set(connection.execute("SELECT person FROM kanon_private.stays_1").fetchall()))
    assert numbers[0]
    assert not numbers[0] & numbers[1]


def test_one_person_is_erased_from_a_secure_history(people: duckdb.DuckDBPyConnection) -> None:
    """Nothing of the private history belongs to the person any more; the others' certificates hold."""
    people.execute(MASK.replace("secure => false,", ""))
    [(number,)] = people.execute(
        "SELECT person FROM kanon_private.people_1 JOIN kanon_private.members_1 USING (row) WHERE key_0 = 77"
    ).fetchall()
    people.execute("DELETE FROM people WHERE id = 77")
    refresh(people)
    assert kept_of(people, str(number))
    answer = one(people, "CALL kanon.forget('v', key => 77)")
    assert answer["forgotten_rows"] >= 1
    assert "certificates" in answer["note"]
    assert kept_of(people, str(number)) == []
    people.execute("DELETE FROM people WHERE id % 40 = 3")
    refresh(people)
    assert people.execute("SELECT bool_and(passed) FROM kanon.check('v')").fetchall() == [(True,)]

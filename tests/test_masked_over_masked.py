"""Masked views whose sources read other masked views."""

from __future__ import annotations

import duckdb
import pytest

pytestmark = pytest.mark.surface

MASK = """
CALL kanon.create_masked_view('{}', source => '{}', k => 3, secure => false, quasi_identifiers => {},
     key => {}, keep => ['id'], allow_unsafe_keep => ['id'])
"""
OVER = ["team", "plain", "SELECT * FROM plain WHERE id >= 0", "FROM query(''FROM team'')"]


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute("CREATE TABLE people AS SELECT i AS id, i % 40 AS age FROM range(60) AS r(i)")
    connection.execute(MASK.format("team", "people", "{'age': 'numeric'}", "NULL"))
    connection.execute("CREATE VIEW plain AS SELECT * FROM main.team")
    return connection


def mask_team(connection: duckdb.DuckDBPyConnection, name: str, source: str, column: str = "age_min") -> None:
    connection.execute(MASK.format(name, source, f"{{'{column}': 'numeric'}}", "NULL"))


@pytest.mark.parametrize("source", OVER)
def test_a_source_is_refreshed_before_its_readers(people: duckdb.DuckDBPyConnection, source: str) -> None:
    mask_team(people, "board", source)  # before team by name
    mask_team(people, "all_of_them", "board", "age_min_min")
    people.execute("DELETE FROM people WHERE id < 10")
    answers = people.execute("SELECT view_name, cause, rows FROM kanon.refresh_all()").fetchall()
    assert answers == [(name, "refresh", 50) for name in ("team", "board", "all_of_them")]
    for name in ("team", "board", "all_of_them"):
        assert people.execute(f"SELECT count(*), min(id) FROM {name}").fetchall() == [(50, 10)]


@pytest.mark.parametrize("source", OVER)
def test_what_others_read_is_not_dropped(people: duckdb.DuckDBPyConnection, source: str) -> None:
    mask_team(people, "board", source)
    with pytest.raises(duckdb.Error, match="masked view team is read by board: drop that first"):
        people.execute("CALL kanon.drop_masked_view('team')").fetchall()
    assert people.execute("SELECT count(*) FROM team").fetchall() == [(60,)]
    people.execute("CALL kanon.drop_masked_view('board')").fetchall()
    people.execute("CALL kanon.drop_masked_view('team')").fetchall()


def test_a_source_that_is_gone_reads_nothing(people: duckdb.DuckDBPyConnection) -> None:
    mask_team(people, "board", "plain")
    people.execute("DROP VIEW plain")
    answers = people.execute("SELECT view_name, cause FROM kanon.refresh_all()").fetchall()
    assert answers == [("board", "failed"), ("team", "unchanged")]


def test_views_that_read_each_other_are_all_refreshed(people: duckdb.DuckDBPyConnection) -> None:
    mask_team(people, "board", "team")
    people.execute("CREATE VIEW as_people AS SELECT id, age_min_min AS age FROM board")
    people.execute("CALL kanon.rebuild('team', source => 'as_people')").fetchall()
    answers = people.execute("SELECT view_name FROM kanon.refresh_all() ORDER BY ALL").fetchall()
    assert answers == [("board",), ("team",)]

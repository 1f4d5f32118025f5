"""What the storage of released rows tells: nothing of earlier releases, in any statistic, order or copy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import kanon_duck
from kanon_duck.release import make_current
from tests.extreme_people import MASK, PEOPLE, refresh, statistics
from tests.people import one

pytestmark = pytest.mark.surface

FEW = 0
"""Limit of cells by which every release is too large to be written anew."""


@pytest.fixture(params=["memory", "file"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with people, in memory and in a file."""
    with kanon_duck.connect(":memory:" if request.param == "memory" else str(tmp_path / "people.duckdb")) as opened:
        opened.execute(PEOPLE)
        yield opened


def new_copy(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, str]:
    """The statistics of the same rows in a table that has never held others."""
    connection.execute(f"CREATE OR REPLACE TABLE copied AS {query}")
    return statistics(connection, "copied")


def test_statistics_are_those_of_the_present_release(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(MASK)
    assert "900002" in statistics(people, "v")["income_max"]
    people.execute("DELETE FROM people WHERE id >= 900")
    refresh(people)
    assert statistics(people, "v") == new_copy(people, "FROM v")
    told = str(people.execute("FROM pragma_storage_info('kanon_released.v')").fetchall()) + str(
        people.execute("EXPLAIN ANALYZE FROM v").fetchall()
    )
    assert not [text for text in ("900000", "900002", "zürich", "zzz very") if text in told]
    assert people.execute("SELECT passed FROM kanon.check('v')").fetchall() == [(True,)]


def test_secure_releases_of_any_size_are_written_anew(
    people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_current, "MOST_CELLS", FEW)
    people.execute(MASK.replace("secure => false,", ""))
    for change in ("DELETE FROM people WHERE id >= 900", "DELETE FROM people WHERE id % 50 = 1"):
        people.execute(change)
        assert make_current.IN_PLACE not in refresh(people)
        people.execute("INSERT INTO people SELECT 5000 + id, income, city, disease, note FROM people WHERE id % 50 = 2")
        refresh(people)
        assert statistics(people, "v") == new_copy(people, "FROM v")
        rows = people.execute("FROM v").fetchall()
        assert rows == people.execute("FROM v ORDER BY income, income_min, income_max, city, disease, note").fetchall()
        people.execute("DELETE FROM people WHERE id >= 5000")


def test_an_extreme_that_leaves_a_large_release_leaves_the_statistics(
    people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where releases are too large to be written anew each time, they are when an extreme leaves, and told else."""
    monkeypatch.setattr(make_current, "MOST_CELLS", FEW)
    people.execute(MASK)
    people.execute("DELETE FROM people WHERE id = 7")
    assert make_current.IN_PLACE in refresh(people)
    people.execute("DELETE FROM people WHERE id >= 900")
    assert make_current.IN_PLACE not in refresh(people)
    assert statistics(people, "v") == new_copy(people, "FROM v")
    people.execute("UPDATE people SET note = NULL WHERE id = 3")
    refresh(people)
    people.execute("UPDATE people SET note = 'n1' WHERE id = 3")
    assert make_current.IN_PLACE not in refresh(people)  # the only NULL has left
    assert statistics(people, "v") == new_copy(people, "FROM v")


def test_the_order_of_rows_tells_nothing_of_what_has_changed(people: duckdb.DuckDBPyConnection) -> None:
    """Whichever way a release came about, its rows stand in the order of what they show, in copies too."""
    people.execute(MASK)
    places = []
    draw = random.Random(1)
    for number in range(12):
        people.execute(
            f"INSERT INTO people VALUES ({2000 + number}, {draw.randrange(1000, 6000)}, 'c{draw.randrange(5)}', 'd1', 'n1')"
        )
        refresh(people)
        rows = people.execute("FROM v").fetchall()
        assert rows == people.execute("FROM v ORDER BY income, income_min, income_max, city, disease, note").fetchall()
        people.execute("CREATE OR REPLACE TABLE copied AS FROM v")
        assert people.execute("FROM copied").fetchall() == rows
        [(last,)] = people.execute("SELECT max(kanon_from_release) FROM kanon_released.v").fetchall()
        first_releases = [
            row[0] for row in people.execute("SELECT kanon_from_release FROM kanon_released.v").fetchall()
        ]
        places.append(first_releases.index(last) / len(first_releases))
    assert min(places) < 0.4  # changed classes stand anywhere


def test_a_rebuild_and_refreshes_that_show_the_same_are_stored_the_same(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(MASK)
    stored, shown = people.execute("FROM v").fetchall(), statistics(people, "v")
    people.execute("CREATE TABLE kept AS FROM people WHERE id % 5 = 0")
    people.execute("DELETE FROM people WHERE id % 5 = 0")
    refresh(people)
    people.execute("INSERT INTO people FROM kept")
    refresh(people)
    people.execute("CALL kanon.rebuild('v')")
    assert people.execute("FROM v").fetchall() == stored
    assert statistics(people, "v") == shown


def test_forget_leaves_nothing_in_statistics_of_earlier_releases(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(MASK)
    people.execute("DELETE FROM people WHERE id >= 900")
    refresh(people)
    people.execute("DELETE FROM people WHERE id = 5")
    refresh(people)
    people.execute("CALL kanon.forget('v', before_release => 2)")
    for schema in ("kanon_history", "kanon_history_classes"):
        assert statistics(people, f"{schema}.v") == new_copy(people, f"FROM {schema}.v")
    assert people.execute("SELECT count(*) FROM kanon.as_of('v', 2)").fetchall() == [(600,)]


def test_views_over_a_masked_view_survive_a_rebuild_where_dependencies_are_enforced(
    people: duckdb.DuckDBPyConnection,
) -> None:
    people.execute("SET enable_view_dependencies = true")
    people.execute(MASK)
    people.execute("CREATE VIEW counted AS SELECT city, count(*) AS rows FROM v GROUP BY ALL")
    people.execute("DELETE FROM people WHERE id >= 900")
    assert "views depend on" in str(refresh(people))
    rebuilt = one(people, "CALL kanon.rebuild('v', k => 4)")
    assert rebuilt["release"] == 3
    assert "views depend on" in str(rebuilt["warnings"])
    assert people.execute("SELECT sum(rows) FROM counted").fetchall() == [(600,)]
    assert people.execute("FROM v").fetchall() == people.execute("FROM v ORDER BY ALL").fetchall()
    people.execute("DROP VIEW counted")
    people.execute("CALL kanon.drop_masked_view('v')")

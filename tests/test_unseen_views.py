"""Masked views that somebody has dropped, renamed or replaced: what is said of them, and how they come back."""

from __future__ import annotations

import duckdb
import pytest

from tests.extreme_people import MASK, PEOPLE, refresh
from tests.people import one

pytestmark = pytest.mark.surface


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A database with people."""
    connection.execute(PEOPLE)
    return connection


def state(connection: duckdb.DuckDBPyConnection) -> tuple[str, str | None]:
    """Status of the masked view, and why."""
    return connection.execute("SELECT status, reason FROM kanon.masked_views").fetchall()[0]


@pytest.mark.parametrize("fault", ["DROP VIEW v", "ALTER VIEW v RENAME TO w"])
def test_a_masked_view_that_was_dropped_or_renamed_is_put_back(people: duckdb.DuckDBPyConnection, fault: str) -> None:
    people.execute(MASK)
    shown = people.execute("FROM v").fetchall()
    assert state(people) == ("current", None)
    people.execute(fault)
    status, reason = state(people)
    assert status == "broken"
    assert "dropped, renamed or replaced" in str(reason)
    with pytest.raises(duckdb.Error, match=r"readers do not see its release; CALL kanon.refresh\('v'\) puts it back"):
        people.execute("FROM kanon.check('v')")
    answer = one(people, "CALL kanon.refresh('v', dry_run => true)")
    assert state(people)[0] == "broken"
    answer = one(people, "CALL kanon.refresh('v')")
    assert answer["cause"] == "unchanged"
    assert "was put back" in answer["warnings"][0]
    assert state(people) == ("current", None)
    assert people.execute("FROM v").fetchall() == shown
    assert "put back" not in str(refresh(people))


def test_a_masked_view_is_put_back_although_its_source_is_gone(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(MASK)
    people.execute("DROP VIEW v; ALTER TABLE people RENAME TO humans")
    with pytest.raises(duckdb.Error, match="people"):
        people.execute("CALL kanon.refresh('v')")
    assert people.execute("SELECT count(*) FROM v").fetchall() == [(603,)]
    people.execute("ALTER TABLE humans RENAME TO people; DROP VIEW v")
    for verb in ("refresh_all()", "optimize('v')", "rebuild('v')"):
        answer = one(people, f"CALL kanon.{verb}")
        assert "was put back" in answer["warnings"][0]
        people.execute("DROP VIEW v")


@pytest.mark.parametrize("thing", ["VIEW v AS SELECT 1 AS x", "TABLE v AS FROM people"])
def test_a_masked_view_that_was_replaced_is_broken_until_its_name_is_free(
    people: duckdb.DuckDBPyConnection, thing: str
) -> None:
    people.execute(MASK)
    people.execute(f"DROP VIEW v; CREATE {thing}")
    kind = thing.split()[0].lower()
    for verb in ("refresh('v')", "rebuild('v')", "optimize('v')"):
        with pytest.raises(duckdb.Error, match=f"v was replaced by a {kind} of somebody's"):
            people.execute(f"CALL kanon.{verb}")
    assert "replaced by" in str(one(people, "CALL kanon.refresh_all()")["warnings"])
    assert state(people)[0] == "broken"
    people.execute(f"DROP {kind} v")
    assert "was put back" in refresh(people)[0]
    assert state(people) == ("current", None)
    assert people.execute("SELECT count(*) FROM v").fetchall() == [(603,)]

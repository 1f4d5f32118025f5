"""What a refresh and a rebuild make of a source whose columns have changed: wider types go on, others are told."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tests.people import one

pytestmark = pytest.mark.surface

STAFF = """
CREATE TYPE grade AS ENUM ('junior', 'senior');
CREATE TABLE staff AS
SELECT CAST(i - 30 AS INTEGER) AS id, CAST(20 + i % 20 AS INTEGER) AS age,
       CAST(if(i % 3 = 0, 'senior', 'junior') AS grade) AS grade,
       CAST(if(i % 2 = 0, 'flu', 'cold') AS ENUM ('flu', 'cold')) AS illness,
       CAST(if(i % 4 = 0, 'x', 'y') AS ENUM ('x', 'y')) AS ward, i % 5 AS d
FROM range(60) AS r(i);
"""
MASK = """
CALL kanon.create_masked_view('masked', source => 'staff', key => 'id', k => 3, l => 2, secure => false,
    quasi_identifiers => {'age': {'type': 'numeric', 'domain': [0, 100]}, 'grade': 'flat', 'd': 'flat'},
    sensitive => ['illness'], keep => ['ward'], allow_unsafe_keep => ['ward'])
"""


@pytest.fixture
def staff(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(STAFF)
    connection.execute(MASK)
    return connection


def findings(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    """Changes that a refresh has seen."""
    row = one(connection, "CALL kanon.refresh('masked')")
    assert connection.execute("SELECT DISTINCT passed FROM kanon.check('masked')").fetchall() == [(True,)]
    return [row["cause"], row["inserted"], row["updated"], row["deleted"], row["rows"]]


@pytest.mark.parametrize("column_type", ["BIGINT", "HUGEINT"])
def test_a_wider_key_is_the_same_key(staff: duckdb.DuckDBPyConnection, column_type: str) -> None:
    staff.execute(f"ALTER TABLE staff ALTER id TYPE {column_type}")
    if column_type == "HUGEINT":  # negative ones are hashed otherwise
        with pytest.raises(duckdb.Error, match="column id was INTEGER and is HUGEINT now"):
            staff.execute("CALL kanon.refresh('masked')")
        return
    assert findings(staff) == ["unchanged", 0, 0, 0, 60]
    staff.execute("INSERT INTO staff SELECT 3000000000 + i, 25, 'junior', 'flu', 'x', 1 FROM range(2) AS r(i)")
    staff.execute("INSERT INTO staff SELECT 3000000002 + i, 25, 'junior', 'cold', 'x', 1 FROM range(2) AS r(i)")
    staff.execute("DELETE FROM staff WHERE id = -30")
    assert staff.execute("SELECT rows FROM kanon.pending('masked')").fetchall() == [(4,), (0,), (1,)]
    assert findings(staff) == ["refresh", 4, 0, 1, 63]
    assert findings(staff) == ["unchanged", 0, 0, 0, 63]
    for key in (3000000001, -29):
        assert staff.execute(f"SELECT status FROM kanon.explain('masked', key => {key})").fetchall() == [("released",)]
    assert staff.execute("SELECT count(*) FROM kanon.as_of('masked', 1)").fetchall() == [(60,)]
    staff.execute("DELETE FROM staff WHERE id = -29")
    assert findings(staff) == ["refresh", 0, 0, 1, 62]
    staff.execute("FROM kanon.attack('masked', victim => {'id': 3000000001})").fetchall()
    assert one(staff, "CALL kanon.rebuild('masked', k => 4)")["rows"] == 62


def test_an_enum_that_has_gained_a_value_is_the_same_column(staff: duckdb.DuckDBPyConnection) -> None:
    before = staff.execute("FROM masked ORDER BY ALL").fetchall()
    staff.execute("ALTER TABLE staff ALTER grade TYPE ENUM ('chief', 'junior', 'senior')")
    staff.execute("ALTER TABLE staff ALTER illness TYPE ENUM ('flu', 'burnout', 'cold')")
    staff.execute("ALTER TABLE staff ALTER ward TYPE ENUM ('z', 'y', 'x')")
    staff.execute("ALTER TABLE staff ALTER d TYPE BIGINT")
    assert findings(staff) == ["unchanged", 0, 0, 0, 60]
    assert staff.execute("FROM masked ORDER BY ALL").fetchall() == before
    staff.execute("INSERT INTO staff SELECT 100 + i, 25, 'chief', 'burnout', 'z', 1 FROM range(3) AS r(i)")
    staff.execute("INSERT INTO staff SELECT 103 + i, 25, 'chief', 'flu', 'z', 1 FROM range(3) AS r(i)")
    assert findings(staff) == ["refresh", 6, 0, 0, 66]
    [(burnt_out, kind)] = staff.execute(
        "SELECT count(*), any_value(typeof(illness)) FROM masked WHERE illness = 'burnout' AND ward = 'z'"
    ).fetchall()
    assert burnt_out == 3
    assert "burnout" in kind
    first = staff.execute("FROM kanon.as_of('masked', 1)").fetchall()
    assert sorted(map(str, first)) == sorted(map(str, before))
    staff.execute("ALTER TABLE staff ALTER illness TYPE ENUM ('cold', 'burnout', 'flu', 'other')")
    staff.execute("UPDATE staff SET illness = 'other' WHERE id = 101")
    assert findings(staff) == ["refresh", 0, 1, 0, 66]
    assert staff.execute("SELECT count(*) FROM kanon.as_of('masked', 2) WHERE illness = 'burnout'").fetchall() == [(3,)]
    assert one(staff, "CALL kanon.rebuild('masked', k => 4)")["rows"] == 66


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE staff ALTER age TYPE BIGINT", "column age was INTEGER and is BIGINT now: give it its type back"),
        ("ALTER TABLE staff ALTER id TYPE SMALLINT", "column id was INTEGER and is SMALLINT now"),
        ("ALTER TABLE staff ALTER illness TYPE VARCHAR", "column illness was ENUM('flu', 'cold') and is VARCHAR now"),
        ("CREATE OR REPLACE TABLE staff AS SELECT * REPLACE (CAST('junior' AS ENUM ('junior')) AS grade) FROM staff", "is ENUM('junior') now"),
        ("ALTER TABLE staff DROP COLUMN d", "column d, which the view was made with, is gone from the source: put back"),
        ("ALTER TABLE staff DROP COLUMN d; ALTER TABLE staff DROP COLUMN illness", "columns illness, d, which the view was made with, are gone"),
        ("ALTER TABLE staff RENAME COLUMN id TO idd", "column id, which the view was made with, is gone"),
    ],
)  # fmt: skip
def test_what_has_become_of_a_column_is_told_by_its_name(
    staff: duckdb.DuckDBPyConnection, change: str, words: str
) -> None:
    staff.execute(change)
    for call in ("refresh", "rebuild"):
        with pytest.raises(duckdb.Error) as raised:
            staff.execute(f"CALL kanon.{call}('masked')")
        assert words.split(":")[0] in str(raised.value)
        assert "did you mean" not in str(raised.value)
    [(status, reason)] = staff.execute("SELECT status, reason FROM kanon.masked_views").fetchall()
    assert status == "broken"
    assert words in reason
    assert staff.execute("SELECT count(*) FROM masked").fetchall() == [(60,)]

"""A table of people, how it is masked, and what its masked view must show: recomputed from the source by plain SQL."""

from __future__ import annotations

from typing import Any

import duckdb

PEOPLE = """
CREATE TABLE people AS
SELECT i AS id, CAST(hash(i) % 70 AS INTEGER) AS age, CAST(hash(i, 1) % 500 AS INTEGER) AS income,
       CAST(hash(i, 2) % 40 AS VARCHAR) AS city, CAST(hash(i, 3) % 9 AS VARCHAR) AS disease
FROM range({}) AS r(i)
"""

# The domains are wider than the values, so no interval is ever shown as the root. Secure views refuse to refresh.
MASK = """
CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, secure => false,
     sensitive => ['disease'], quasi_identifiers => {'age': {'type': 'numeric', 'domain': [-10, 200]},
     'income': {'type': 'numeric', 'domain': [-10, 2000]}, 'city': 'flat'})
"""

REFRESH = "CALL kanon.refresh('masked')"

CHANGE = [
    "DELETE FROM people WHERE hash(id, {0}) % 50 = 0",
    "UPDATE people SET age = (age + 7) % 70 WHERE hash(id, {0}) % 40 = 1",
    "UPDATE people SET disease = 'other' WHERE hash(id, {0}) % 60 = 2",
    """INSERT INTO people SELECT {0}::BIGINT * 100000 + i, CAST(hash(i, {0}) % 70 AS INTEGER), CAST(i % 500 AS INTEGER),
       CAST(hash(i, {0}) % 41 AS VARCHAR), 'new' FROM range(20) AS r(i)""",
]
"""All that can happen to people; {0} is a number that each round of changes has for itself."""


def change(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    """One round of changes, as one transaction."""
    connection.execute("BEGIN")
    for statement in CHANGE:
        connection.execute(statement.format(number))
    connection.execute("COMMIT")


def one(connection: duckdb.DuckDBPyConnection, call: str) -> dict[str, Any]:
    """The one row of a call."""
    result = connection.execute(call)
    names = [column[0] for column in result.description]
    [row] = result.fetchall()
    return dict(zip(names, row, strict=True))


def status(connection: duckdb.DuckDBPyConnection) -> tuple[str, str | None]:
    """Status of the view ``masked``, and the reason."""
    return connection.execute("SELECT status, reason FROM kanon.masked_views WHERE name = 'masked'").fetchall()[0]


def assert_current(connection: duckdb.DuckDBPyConnection) -> None:
    """Everybody of the source is in the release, with the cells that the members of the class give.

    So where nobody waits and nobody was left out.
    """
    bounds = ", ".join(
        f"CASE WHEN min({name}) = max({name}) THEN CAST(min({name}) AS VARCHAR) "
        f"ELSE '[' || min({name}) || ', ' || max({name}) || ']' END AS {name}, "
        f"min({name}) AS {name}_min, max({name}) AS {name}_max"
        for name in ("age", "income")
    )
    connection.execute(f"""
        CREATE OR REPLACE TEMPORARY VIEW recomputed AS
        WITH placed AS (SELECT people.*, class FROM people LEFT JOIN kanon_private.members_1 ON key_0 = id),
        cells AS (
            SELECT class, {bounds}, CASE WHEN min(city) = max(city) THEN min(city) ELSE '*' END AS city
            FROM placed GROUP BY class
        )
        SELECT cells.* EXCLUDE (class), placed.disease FROM placed JOIN cells USING (class)
    """)
    for one_way in ("FROM masked EXCEPT ALL FROM recomputed", "FROM recomputed EXCEPT ALL FROM masked"):
        assert connection.execute(one_way).fetchall() == []
    [(released, members)] = connection.execute(
        "SELECT (SELECT count(*) FROM masked), (SELECT count(*) FROM kanon_private.members_1)"
    ).fetchall()
    assert connection.execute("SELECT count(*) FROM people").fetchall() == [(released,)] == [(members,)]
    assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
    assert connection.execute("SELECT sum(rows) FROM kanon.pending('masked')").fetchall() == [(0,)]
    assert status(connection) == ("current", None)

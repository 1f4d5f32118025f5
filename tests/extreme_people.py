"""A table of people, some of whom are extreme in everything, its masked view, and what its storage tells."""

from __future__ import annotations

import duckdb

from tests.people import one

PEOPLE = """
CREATE TABLE people AS
SELECT i AS id, 1000 + CAST(hash(i) % 5000 AS INTEGER) AS income, 'c' || hash(i, 1) % 5 AS city,
       'd' || hash(i, 2) % 7 AS disease, 'n' || i % 3 AS note FROM range(600) AS r(i);
INSERT INTO people SELECT 900 + i, 900000 + i, 'zürich', 'zzz very rare', NULL FROM range(3) AS r(i);
"""
"""603 people, three of whom are alike and extreme in everything."""

MASK = """
CALL kanon.create_masked_view('v', source => 'people', key => 'id', k => 3, secure => false,
     sensitive => ['disease'], keep => ['note'], allow_unsafe_keep => ['note'],
     quasi_identifiers => {'income': {'type': 'numeric', 'domain': [0, 1000000]}, 'city': 'flat'})
"""


def statistics(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """What DuckDB's statistics say of each column of a relation."""
    columns = [row[0] for row in connection.execute(f"DESCRIBE {relation}").fetchall()]
    return {
        name: str(connection.execute(f'SELECT stats("{name}") FROM {relation} LIMIT 1').fetchall()[0][0])
        for name in columns
    }


def refresh(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Refresh the view ``v``, and return the warnings."""
    warnings: list[str] = one(connection, "CALL kanon.refresh('v')")["warnings"]
    return warnings

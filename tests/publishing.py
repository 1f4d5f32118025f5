"""A small clinic that is published, with texts that must never reach readers."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

import duckdb

import kanon_duck

SECRET = "SENTINEL"
"""Part of every text of the clinic that readers must not see."""

CLINIC = f"""
CREATE TABLE levels AS FROM (VALUES ('private', '*', NULL), ('state', 'public', '*'), ('local', 'public', '*'))
    AS t(leaf, parent, root);
CREATE TABLE patients AS
SELECT '{SECRET}-key-' || i AS id, 20 + (hash(i) % 50)::INTEGER AS age, 4100000 + i AS income,
       '{SECRET}-street-' || i AS address, '752' || lpad((hash(i, 5) % 40)::VARCHAR, 2, '0') AS zip,
       ['private', 'state', 'local'][1 + (hash(i, 2) % 3)::INTEGER] AS work,
       ['Flu', 'Cancer', 'Gout', 'Asthma', NULL][1 + (hash(i, 1) % 5)::INTEGER] AS disease, '{SECRET}-name-' || i AS name
FROM range(300) AS r(i);
COMMENT ON TABLE patients IS '{SECRET}-comment';
COMMENT ON COLUMN patients.age IS '{SECRET}-column-comment';
CALL kanon.create_hierarchy('zip', prefix => 5);
CALL kanon.create_hierarchy('work', levels => 'levels');
"""

MASK = """
CALL kanon.create_masked_view('patients_masked', source => 'patients', key => 'id', k => 5, l => 2,
    quasi_identifiers => {'age': 'numeric', 'income': {'type': 'numeric', 'step': 100}, 'address': 'flat', 'zip': 'zip',
                          'work': 'work'}, sensitive => ['disease'])
"""


_made = tempfile.TemporaryDirectory(prefix="kanon-clinic-")


@cache
def _clinic() -> Path:
    """The file of the clinic, made once."""
    file = Path(_made.name) / "owner.duckdb"
    with kanon_duck.connect(file) as connection:
        for statement in (*CLINIC.strip().split(";\n"), MASK):
            connection.execute(statement.removesuffix(";"))
    return file


def clinic(folder: Path) -> duckdb.DuckDBPyConnection:
    """The owner's database, with a masked view."""
    return kanon_duck.connect(shutil.copy(_clinic(), folder))


def change(connection: duckdb.DuckDBPyConnection, number: int = 1) -> None:
    """Some patients leave and others come."""
    connection.execute(f"DELETE FROM patients WHERE hash(id, {number}) % 20 = 0")
    connection.execute(
        f"INSERT INTO patients SELECT * REPLACE ('{SECRET}-new-{number}-' || id AS id) FROM patients WHERE age < 30"
    )


def same_rows(one: duckdb.DuckDBPyConnection, query: str, other: duckdb.DuckDBPyConnection, its_query: str) -> bool:
    """Whether two queries on two databases have the same rows, in any order."""
    ordered = "SELECT * FROM ({}) ORDER BY ALL"
    return one.execute(ordered.format(query)).fetchall() == other.execute(ordered.format(its_query)).fetchall()

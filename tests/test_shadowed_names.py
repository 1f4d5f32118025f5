"""Macros of the caller's that are named like functions of DuckDB change nothing that is ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck
from kanon_duck.runtime.runner import FUNCTION

pytestmark = pytest.mark.surface

PEOPLE = """
CREATE TABLE people AS
SELECT i AS id, CAST((hash(i) % 60) / 4 AS DECIMAL(6, 2)) AS age, (hash(i, 1) % 40)::VARCHAR AS city,
       TIMESTAMP '2020-01-01' + to_days(CAST(hash(i, 2) % 900 AS INTEGER)) AS seen,
       (hash(i, 3) % 500) / 7.0::DOUBLE AS weight, (hash(i, 4) % 6)::VARCHAR AS disease
FROM range(400) AS r(i);
CREATE TABLE cities AS SELECT range::VARCHAR AS city, 'region ' || range % 5 AS region, '*' AS root FROM range(40);
CREATE SCHEMA clinic;
CREATE TABLE clinic.people AS FROM people;
CREATE TABLE clinic.cities AS FROM cities;
CREATE VIEW clinic.patients AS SELECT lower(disease) AS sickness, * FROM clinic.people;
"""

CREATE = """
CALL kanon.create_hierarchy('regions', levels => 'SELECT city, region, root FROM cities');
CALL kanon.create_masked_view('masked', source => '{source}', key => 'id', k => 5, sensitive => ['disease'],
    max_suppression => 0.05, independent => true, quasi_identifiers => {{'city': 'regions',
        'age': {{'type': 'numeric', 'step': '0.5'}}, 'seen': {{'type': 'numeric', 'step': '30 days'}},
        'weight': {{'type': 'numeric', 'step': '2.5'}}}});
"""

READ = """
FROM masked ORDER BY ALL;
FROM kanon.check('masked');
SELECT * EXCLUDE (view_name, seconds, released_at) FROM kanon.releases;
SELECT * EXCLUDE (released_at, checked_at) FROM kanon.masked_views;
FROM kanon.quality('masked');
FROM kanon.explain('masked', key => 7);
FROM kanon.hierarchy_nodes ORDER BY ALL;
CALL kanon.drop_masked_view('masked');
CALL kanon.drop_hierarchy('regions');
"""


OF_LITERALS = ["struct_pack", "list_value"]
"""What the caller's own {...} and [...] are short for."""


def functions(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Every function of DuckDB's that is a name, and its kind."""
    found: list[tuple[str, str]] = connection.execute(
        "SELECT DISTINCT function_name, function_type FROM duckdb_functions() WHERE internal AND function_name <> ? "
        "AND regexp_full_match(function_name, '[a-z_0-9]+') AND function_name NOT IN (SELECT unnest(?)) ORDER BY ALL",
        [FUNCTION, OF_LITERALS],
    ).fetchall()
    return found


def shadow(connection: duckdb.DuckDBPyConnection, schema: str, hidden_functions: list[tuple[str, str]]) -> int:
    """Hide functions of DuckDB's behind macros with nonsense in them; returns how many that worked for."""
    hidden = 0
    for name, kind in hidden_functions:
        table = kind in ("table", "table_macro")
        arguments = [f"({', '.join('abcd'[:count])})" for count in range(5)]
        bodies = ", ".join(f"{each} AS {'TABLE (SELECT 13 AS thirteen)' if table else 13}" for each in arguments)
        try:
            connection.execute(f'CREATE OR REPLACE MACRO {schema}."{name}"{bodies}')
            hidden += 1
        except duckdb.Error:  # some words of the grammar cannot be macros
            continue
    return hidden


def results(connection: duckdb.DuckDBPyConnection, source: str) -> list[list[tuple[Any, ...]]]:
    """What everybody sees of a masked view, from its creation to its end."""
    for statement in connection.extract_statements(CREATE.format(source=source)):
        connection.execute(statement)
    return [connection.execute(each).fetchall() for each in connection.extract_statements(READ)]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with kanon_duck.connect(str(tmp_path / 'a "b",c.db')) as connection:
        connection.execute(PEOPLE)
        yield connection


@pytest.mark.parametrize(
    "names",
    [["floor", "min", "max", "count", "hash", "lower", "query", "error", "json_object", "read_csv"], None],
)
@pytest.mark.parametrize("current", ["main", "clinic"])
def test_macros_named_like_functions_change_nothing(
    people: duckdb.DuckDBPyConnection, names: list[str] | None, current: str
) -> None:
    people.execute(f"USE {current}")
    expected = results(people, "people")
    hidden_functions = [each for each in functions(people) if names is None or each[0] in names]
    for schema in {"main", current}:
        assert shadow(people, schema, hidden_functions) >= (len(names) if names else 500)
    assert results(people, "people") == expected
    assert results(people, "SELECT * FROM people")[:2] == expected[:2]


def test_the_callers_own_query_keeps_the_callers_macros(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("CREATE MACRO main.least(a, b) AS greatest(a, b); USE clinic")
    people.execute("CREATE MACRO clinic.lower(a) AS 'as the clinic has it'")
    for number, source in enumerate(["patients", "SELECT lower(disease) AS sickness, * FROM people"]):
        people.execute(
            "CALL kanon.create_masked_view(?, source => ?, key => 'id', k => 5, sensitive => 'sickness', "
            "independent => true, quasi_identifiers => {'city': 'flat'})",
            [f"masked_{number}", source],
        )
        found = people.execute(f"SELECT DISTINCT sickness FROM masked_{number}").fetchall()
        assert found == [("as the clinic has it",)]

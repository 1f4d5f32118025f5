"""What a source may be: a table, a view or a query that gives the same rows each time it is read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.people import one

pytestmark = pytest.mark.surface

TABLES = """
CREATE TABLE people AS SELECT i AS id, 20 + i % 40 AS age, DATE '1980-01-01' + CAST(i AS INTEGER) AS born
FROM range(60) AS r(i);
CREATE TABLE "row ids" AS SELECT i AS rowid, i AS age FROM range(12) AS r(i);
CREATE SCHEMA other;
CREATE TABLE other.persons AS FROM people;
"""


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(TABLES)
    return connection


def mask(source: str, key: str = "id") -> str:
    written = source.replace("'", "''")
    return (
        f"CALL kanon.create_masked_view('masked', source => '{written}', key => '{key}', k => 3, secure => false, "
        "quasi_identifiers => ['age'])"
    )


UNSTABLE = [
    ("SELECT row_number() OVER () AS id, age FROM people", "the query uses row_number() OVER a window without ORDER"),
    ("SELECT id, lag(age) OVER (PARTITION BY id % 2) AS age FROM people", "lag() OVER"),
    ("SELECT id, age, sum(age) OVER (ROWS 2 PRECEDING) FROM people", "sum() OVER a window without ORDER BY"),
    ("FROM people QUALIFY row_number() OVER (PARTITION BY age) = 1", "row_number() OVER"),
    ("FROM people LIMIT 30", "the query uses LIMIT without ORDER BY"),
    ("FROM people LIMIT 50%", "LIMIT without"),
    ("FROM people OFFSET 3", "LIMIT without"),
    ("WITH a_few AS (FROM people LIMIT 30) FROM a_few", "LIMIT without"),
    ("FROM people WHERE age IN (SELECT age FROM people LIMIT 5)", "LIMIT without"),
    ("SELECT DISTINCT ON (age) id, age FROM people", "DISTINCT ON without ORDER BY"),
    ("SELECT p.* FROM people AS p POSITIONAL JOIN people AS q", "a POSITIONAL JOIN"),
    ("FROM people USING SAMPLE 30", "a sample"),
    ("SELECT rowid AS id, age FROM people", "the query uses rowid"),
    ("SELECT id, age, random() AS r FROM people", "random()"),
    ("FROM query('FROM people LIMIT 3')", "LIMIT without"),
    ("FROM query_table('few')", "view few uses LIMIT without ORDER BY"),
    ("few", "source: view few uses LIMIT without ORDER BY, which may give another result each time"),
    ("FROM main.few", "view main.few uses LIMIT"),
    ("over_few", "view few uses LIMIT"),
    ("over_over_few", "view few uses LIMIT"),
    ("other.mine", "view persons_in_part uses a sample"),
    ("FROM pick(30)", "macro pick uses LIMIT"),
    ("SELECT id, age, number() AS r FROM people", "macro number uses random()"),
    ("picked", "macro pick uses LIMIT"),
]
VIEWS = """
CREATE VIEW few AS FROM people LIMIT 30;
CREATE VIEW over_few AS SELECT * FROM few WHERE age > 0;
CREATE VIEW over_over_few(id, age) AS SELECT id, age FROM main.over_few AS "a AS b";
CREATE VIEW other.persons_in_part AS FROM people USING SAMPLE 30;
CREATE VIEW other.mine AS FROM persons_in_part;
CREATE MACRO pick(number_of_rows) AS TABLE FROM people LIMIT number_of_rows;
CREATE MACRO number() AS random();
CREATE VIEW picked AS FROM pick(30);
"""


@pytest.mark.parametrize(("source", "words"), UNSTABLE, ids=[source for source, _ in UNSTABLE])
def test_a_source_whose_rows_or_keys_may_be_others_each_time_is_refused(
    people: duckdb.DuckDBPyConnection, source: str, words: str
) -> None:
    people.execute(VIEWS)
    with pytest.raises(duckdb.Error) as raised:
        people.execute(mask(source))
    assert words in str(raised.value)


STABLE = [
    "people",
    "(SELECT * FROM people)",
    " ( ( FROM people ) ) ",
    "/* all */ (FROM people)",
    "FROM people ORDER BY id LIMIT 30",
    "SELECT DISTINCT ON (age) id, age FROM people ORDER BY age, id",
    "SELECT id, age, sum(age) OVER (PARTITION BY age) AS total, rank() OVER () AS first FROM people",
    "FROM people QUALIFY row_number() OVER (PARTITION BY age ORDER BY id) = 1",
    "SELECT row_number() OVER (ORDER BY id) AS id, age FROM people",
    'SELECT rowid AS id, age FROM "row ids"',
    "SELECT rowid AS id, age FROM (SELECT id AS rowid, age FROM people)",
    "WITH few AS (FROM people) FROM few",
    "FROM other.persons",
    "SELECT id, age, (SELECT max(age) FROM people) AS oldest FROM people",
]


@pytest.mark.parametrize("source", STABLE)
def test_a_source_that_always_gives_the_same_rows_is_accepted_without_a_warning(
    people: duckdb.DuckDBPyConnection, source: str
) -> None:
    people.execute(VIEWS)
    assert one(people, mask(source))["warnings"] == []


MOVING = [
    ("SELECT id, CAST(date_diff('year', born, current_date) AS INTEGER) AS age FROM people", "the query uses current_date: rows change"),
    ("SELECT id, age FROM people WHERE born < now()", "the query uses now:"),
    ("SELECT id, age FROM people WHERE born < today()", "the query uses today:"),
    ("SELECT id, age FROM people WHERE born < CURRENT_TIMESTAMP", "the query uses current_timestamp:"),
    ("SELECT id, age FROM people WHERE age(born) > INTERVAL 0 DAY", "the query uses age:"),
    ("grown_up", "view adults uses current_date:"),
    ("SELECT any_value(id) AS id, age FROM people GROUP BY age HAVING count(*) > 0", "any_value() without ORDER BY"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "words"), MOVING, ids=[source for source, _ in MOVING])
def test_a_source_that_moves_with_time_is_told_at_every_release(
    people: duckdb.DuckDBPyConnection, source: str, words: str
) -> None:
    people.execute("CREATE VIEW adults AS FROM people WHERE born < current_date; CREATE VIEW grown_up AS FROM adults")
    [warning] = one(people, mask(source))["warnings"]
    assert words in warning
    people.execute("INSERT INTO people SELECT i, i % 7 + 20, '1990-01-01' FROM range(100, 110) AS r(i)")
    if "any_value" not in source:
        assert warning in one(people, "CALL kanon.refresh('masked')")["warnings"]


def test_a_source_that_has_become_unstable_breaks_the_view_until_it_is_mended(
    people: duckdb.DuckDBPyConnection,
) -> None:
    people.execute("CREATE VIEW named AS FROM people")
    people.execute(mask("named"))
    people.execute("CREATE OR REPLACE VIEW named AS FROM people LIMIT 40")
    with pytest.raises(duckdb.Error, match="view named uses LIMIT without ORDER BY"):
        people.execute("CALL kanon.refresh('masked')")
    people.execute("CREATE OR REPLACE VIEW named AS FROM people WHERE id < 40")
    assert one(people, "CALL kanon.refresh('masked')")["deleted"] == 20


def test_the_reason_that_duckdb_gives_is_told_without_lines_of_data(
    people: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / "latin.csv").write_bytes("id,age\n1,Müller is ill\n".encode("latin-1"))
    (tmp_path / "wrong.csv").write_text("id,age\n1,20\n2,3,Smith is ill\n")
    wrong = f"FROM read_csv('{tmp_path}/wrong.csv', header = true, auto_detect = false, columns = {{id: 'INT', age: 'INT'}})"
    for source, words in [
        ("SELECT id id id FROM people", 'syntax error at or near "id"'),
        ("(SELECT * FROM people", "none that DuckDB can read: syntax error"),
        ("SELECT aeg FROM people", 'Candidate bindings: "age"'),
        (f"FROM '{tmp_path}/latin.csv'", "This file is not utf-8 encoded"),
        (wrong, "Expected Number of Columns: 2 Found: 3"),
    ]:
        with pytest.raises(duckdb.Error) as raised:
            people.execute(mask(source))
        assert words in str(raised.value)
        assert "is ill" not in str(raised.value)
        assert len(str(raised.value).splitlines()) == 1

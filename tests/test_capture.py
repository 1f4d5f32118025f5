"""How a refresh finds what has changed: both kinds of capture, under every kind of write, and what triggers miss."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import kanon_duck
from tests.people import PEOPLE, one

CAPTURE = ["diff", "trigger"] if duckdb.__version__ >= "2" else ["diff"]
needs_triggers = pytest.mark.skipif("trigger" not in CAPTURE, reason="DuckDB has triggers from 2.0 on")

WRITES = [
    "INSERT INTO people SELECT 1000 + i, i % 70, i, 'x', 'new' FROM range(30) AS r(i)",
    "INSERT INTO people BY NAME SELECT 'named' AS disease, 2000 AS id, 30 AS age, 5 AS income, 'x' AS city",
    "INSERT INTO people SELECT * REPLACE (id + 5000 AS id) FROM people WHERE id < 20 RETURNING id",
    "UPDATE people SET age = age + 1 WHERE id % 7 = 0",
    "UPDATE people SET disease = 'other' WHERE id % 9 = 0",
    "UPDATE people SET age = age WHERE id % 3 = 0",
    "UPDATE people SET city = other.city FROM (SELECT 10 AS id, 'y' AS city) AS other WHERE people.id = other.id",
    "UPDATE people SET id = id + 100000 WHERE id % 11 = 0",
    "DELETE FROM people WHERE id % 13 = 0",
    "DELETE FROM people USING (SELECT 17 AS id) AS other WHERE people.id = other.id",
    "COPY people FROM '{file}'",
    "CREATE OR REPLACE TABLE people AS SELECT * REPLACE (income + 1 AS income) FROM people WHERE id % 5 > 0",
    "BEGIN; DELETE FROM people; ROLLBACK",
    "BEGIN; DELETE FROM people WHERE id = 1; INSERT INTO people VALUES (1, 50, 60, 'z', 'back'); COMMIT",
    "TRUNCATE people; INSERT INTO people SELECT i, i % 50, i, 'w', 'all new' FROM range(100) AS r(i)",
]
"""Statements that DuckDB allows on a table with triggers."""

UPSERTS = [
    "INSERT OR REPLACE INTO people SELECT id, age + 1, income, city, disease FROM people WHERE id % 6 = 0",
    "INSERT INTO people SELECT id, age, 7, city, disease FROM people WHERE id % 6 = 1 ON CONFLICT DO UPDATE SET income = 7",
    "MERGE INTO people USING (SELECT 3 AS id) AS other USING (id) WHEN MATCHED THEN DELETE",
]
"""Statements that it refuses there."""


def mask(connection: duckdb.DuckDBPyConnection, capture: str, more: str = "key => 'id'") -> dict[str, Any]:
    return one(
        connection,
        f"CALL kanon.create_masked_view('masked', source => 'people', {more}, k => 5, capture => '{capture}', "
        "secure => false, sensitive => ['disease'], quasi_identifiers => {'age': 'numeric', 'income': 'numeric', 'city': 'flat'})",
    )


def pending(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    return dict(connection.execute("SELECT change, rows FROM kanon.pending('masked')").fetchall())


def assert_in_step(connection: duckdb.DuckDBPyConnection) -> None:
    """The masked view has the source's people and no others."""
    assert pending(connection) == {"insert": 0, "update": 0, "delete": 0}
    shown, there = (
        Counter(connection.execute(f"SELECT disease FROM {table}").fetchall()) for table in ("masked", "people")
    )
    assert shown == there
    assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
    uncovered = (
        "SELECT count(*) FROM people ANTI JOIN masked ON people.disease = masked.disease "
        "AND (masked.age = '*' OR people.age BETWEEN age_min AND age_max) "
        "AND (masked.income = '*' OR people.income BETWEEN income_min AND income_max) "
        "AND masked.city IN ('*', people.city)"
    )
    assert connection.execute(uncovered).fetchall() == [(0,)]


def differences(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, int]:
    """What pandas finds changed, by key."""
    both = before.merge(after, on="id", how="outer", indicator=True, suffixes=("", "_new"))
    same = both["_merge"] == "both"
    names = [name for name in before.columns if name != "id"]
    changed = (both[names].to_numpy() != both[[f"{name}_new" for name in names]].to_numpy()).any(axis=1)
    return {
        "insert": int((both["_merge"] == "right_only").sum()),
        "update": int((same & changed).sum()),
        "delete": int((both["_merge"] == "left_only").sum()),
    }


@pytest.mark.surface
@pytest.mark.parametrize("capture", CAPTURE)
def test_every_kind_of_write_is_found(connection: duckdb.DuckDBPyConnection, tmp_path: Path, capture: str) -> None:
    """Both kinds of capture find what pandas finds, and readers see it after a refresh."""
    file = tmp_path / "more.csv"
    connection.execute(PEOPLE.format(400))
    connection.execute(
        f"COPY (SELECT 7000 + i AS id, i AS age, i AS income, 'v', 'copied' FROM range(9) AS r(i)) TO '{file}'"
    )
    mask(connection, capture)
    assert one(connection, "CALL kanon.refresh('masked')")["cause"] == "unchanged"
    for write in WRITES:
        before = connection.execute("FROM people").df()
        connection.execute(write.format(file=file))
        expected = differences(before, connection.execute("FROM people").df())
        assert pending(connection) == expected, write
        answer = one(connection, "CALL kanon.refresh('masked')")
        assert (answer["cause"] == "refresh") == any(expected.values()), write
        assert_in_step(connection)
    connection.append("people", connection.execute("SELECT * REPLACE (id + 300 AS id) FROM people LIMIT 8").df())
    assert pending(connection) == {"insert": 8, "update": 0, "delete": 0}


@pytest.mark.surface
def test_upserts_and_merges_are_found_by_comparing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(400))
    connection.execute("ALTER TABLE people ADD PRIMARY KEY (id)")
    mask(connection, "diff")
    for write in UPSERTS:
        before = connection.execute("FROM people").df()
        connection.execute(write)
        assert pending(connection) == differences(before, connection.execute("FROM people").df())
        connection.execute("CALL kanon.refresh('masked')")
        assert_in_step(connection)


@pytest.mark.surface
def test_without_a_key_every_write_is_deletions_and_insertions(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    file = tmp_path / "more.csv"
    connection.execute(PEOPLE.format(400))
    connection.execute(
        f"COPY (SELECT 7000 + i AS id, i AS age, i AS income, 'v', 'copied' FROM range(9) AS r(i)) TO '{file}'"
    )
    mask(connection, "diff", "keep => []")
    for write in WRITES:
        before = Counter(connection.execute("SELECT * EXCLUDE (id) FROM people").fetchall())
        connection.execute(write.format(file=file))
        after = Counter(connection.execute("SELECT * EXCLUDE (id) FROM people").fetchall())
        expected = {"insert": (after - before).total(), "update": 0, "delete": (before - after).total()}
        assert pending(connection) == expected, write
        connection.execute("CALL kanon.refresh('masked')")
        assert_in_step(connection)


@pytest.mark.surface
@pytest.mark.parametrize("capture", CAPTURE)
@pytest.mark.parametrize("ids", ["(1), (1001), (1001)", "(1001), (1001)", "(1)", "(1001), (NULL)"])
def test_keys_that_identify_nobody_are_refused_until_they_are_gone(
    connection: duckdb.DuckDBPyConnection, capture: str, ids: str
) -> None:
    connection.execute(PEOPLE.format(400))
    mask(connection, capture)
    connection.execute("CALL kanon.refresh('masked')")
    connection.execute("CREATE TABLE before AS FROM people")
    connection.execute(
        f"INSERT INTO people BY NAME SELECT id, 30 AS age, 40 AS income, 'x' AS city FROM (VALUES {ids}) AS t(id)"
    )
    told = "key id is (not unique|NULL in 1 rows)"
    for call in ("FROM kanon.pending('masked')", "CALL kanon.refresh('masked')"):
        with pytest.raises(duckdb.Error, match=told):
            connection.execute(call).fetchall()
    assert connection.execute("SELECT status FROM kanon.masked_views").fetchall() == [("broken",)]
    connection.execute("DELETE FROM people; INSERT INTO people FROM before WHERE id > 0")
    assert one(connection, "CALL kanon.refresh('masked')")["deleted"] == 1
    assert_in_step(connection)


@needs_triggers
def test_what_a_table_with_triggers_refuses_is_told_at_once(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(100))
    connection.execute("ALTER TABLE people ADD PRIMARY KEY (id)")
    [told] = [each for each in mask(connection, "trigger")["warnings"] if "triggers" in each]
    assert "ON CONFLICT DO UPDATE" in told
    assert "MERGE" in told
    for write in [*UPSERTS, "ALTER TABLE people RENAME TO persons", "ALTER TABLE people RENAME COLUMN age TO years"]:
        with pytest.raises(duckdb.Error):
            connection.execute(write)
    connection.execute("CALL kanon.rebuild('masked', capture => 'diff')")
    for write in UPSERTS:
        connection.execute(write)


@pytest.mark.surface
@pytest.mark.parametrize(
    ("source", "key", "reason"),
    [
        ("'seen'", "key => 'id', ", "the source seen is not a table"),
        ("'FROM people'", "key => 'id', ", "the source FROM people is not a table"),
        ("'other.people'", "key => 'id', ", "the source is in database other, and a trigger cannot write into memory"),
        ("'people'", "", "the source has no key by which to note a row"),
    ],
)
def test_sources_that_cannot_have_triggers(
    connection: duckdb.DuckDBPyConnection, source: str, key: str, reason: str
) -> None:
    connection.execute(PEOPLE.format(100))
    connection.execute(
        "CREATE VIEW seen AS FROM people; ATTACH ':memory:' AS other; CREATE TABLE other.people AS FROM people"
    )
    if "trigger" not in CAPTURE:
        reason = "this DuckDB has no triggers: they come with DuckDB 2.0"
    with pytest.raises(duckdb.Error, match=f"capture is 'trigger', but {reason}: use capture => 'diff'"):
        connection.execute(
            f"CALL kanon.create_masked_view('masked', source => {source}, {key}quasi_identifiers => ['age'], k => 5, capture => 'trigger', secure => false)"
        )


@needs_triggers
def test_lost_triggers_are_told_and_made_again(connection: duckdb.DuckDBPyConnection) -> None:
    """Also where the table that came in the place of the source has the same rows."""
    connection.execute(PEOPLE.format(400))
    mask(connection, "trigger")
    told = "what the triggers noted is not complete: source and members were compared row by row"
    for condition, cause in (("true", "unchanged"), ("id > 50", "refresh")):
        connection.execute(f"CREATE OR REPLACE TABLE people AS FROM people WHERE {condition}")
        answer = one(connection, "CALL kanon.refresh('masked')")
        assert answer["cause"] == cause
        assert told in answer["warnings"]
        for _ in range(2):  # the first looks at everything, too
            connection.execute("DELETE FROM people WHERE id = (SELECT max(id) FROM people)")
            answer = one(connection, "CALL kanon.refresh('masked')")
            assert answer["deleted"] == 1
            assert told not in answer["warnings"]
        assert_in_step(connection)


@needs_triggers
def test_triggers_of_another_database_are_none_of_ours(tmp_path: Path) -> None:
    """A copy that is attached beside the database has triggers of the same names."""
    file, copy = tmp_path / "a.db", tmp_path / "b.db"
    with kanon_duck.connect(str(file)) as connection:
        connection.execute(PEOPLE.format(400))
        mask(connection, "trigger")
        connection.execute("CALL kanon.refresh('masked'); CHECKPOINT")
    copy.write_bytes(file.read_bytes())
    with kanon_duck.connect(str(file)) as connection:
        connection.execute(f"ATTACH '{copy}' AS copy")
        connection.execute("CREATE OR REPLACE TABLE people AS SELECT * REPLACE (age + 1 AS age) FROM people")
        assert one(connection, "CALL kanon.refresh('masked')")["updated"] == 400
        assert_in_step(connection)
        connection.execute("CALL kanon.rebuild('masked', capture => 'diff')")
        triggers = "SELECT DISTINCT database_name FROM duckdb_triggers()"
        assert connection.execute(triggers).fetchall() == [("copy",)]


@needs_triggers
@pytest.mark.parametrize("made", ["create", "rebuild", "again"])
def test_a_transaction_that_is_open_while_triggers_are_made(connection: duckdb.DuckDBPyConnection, made: str) -> None:
    """It does not see the triggers; what it commits before the next refresh is found."""
    connection.execute(PEOPLE.format(400))
    if made == "rebuild":
        mask(connection, "diff")
    if made == "again":
        mask(connection, "trigger")
        connection.execute("CREATE OR REPLACE TABLE people AS FROM people")
    writer = connection.cursor()
    writer.execute("BEGIN; UPDATE people SET disease = 'late' WHERE id < 20")
    if made == "create":
        mask(connection, "trigger")
    elif made == "rebuild":
        connection.execute("CALL kanon.rebuild('masked', capture => 'trigger')")
    else:
        connection.execute("CALL kanon.refresh('masked')")
    writer.execute("COMMIT")
    assert pending(connection)["update"] == 20
    assert one(connection, "CALL kanon.refresh('masked')")["updated"] == 20
    assert_in_step(connection)


@needs_triggers
@pytest.mark.parametrize(
    "verb", ["CALL kanon.refresh('masked')", "FROM kanon.pending('masked')", "FROM kanon.compare('people')"]
)
def test_triggers_of_a_file_with_another_name_are_made_again_by_any_verb(tmp_path: Path, verb: str) -> None:
    with kanon_duck.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute(PEOPLE.format(300))
        mask(connection, "trigger")
    (tmp_path / "old.duckdb").rename(tmp_path / "new name.duckdb")
    with kanon_duck.connect(str(tmp_path / "new name.duckdb")) as connection:
        with pytest.raises(duckdb.Error, match="does not exist"):
            connection.execute("DELETE FROM people WHERE id < 10")
        try:
            answer = connection.execute(verb).fetchall()
        except duckdb.Error as error:  # of the verb's own
            answer = str(error)
        told = "were made when this database had another name than new name"
        assert "refresh" not in verb or told in str(answer)
        [(reason,)] = connection.execute("SELECT reason FROM kanon.masked_views").fetchall()
        assert "refresh" in verb or told in reason
        connection.execute("DELETE FROM people WHERE id < 10")
        assert one(connection, "CALL kanon.refresh('masked')")["deleted"] == 10
        assert_in_step(connection)
        assert connection.execute("SELECT status, reason FROM kanon.masked_views").fetchall() == [("current", None)]
        connection.execute("DELETE FROM people WHERE id < 20")
        answer = one(connection, "CALL kanon.refresh('masked')")
        assert (answer["deleted"], told in str(answer["warnings"])) == (10, False)

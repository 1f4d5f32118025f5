"""What a refresh promises, as plain examples: its answers, sources that break and are mended, and what stays readable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck
from tests.people import MASK, PEOPLE, REFRESH, assert_current, change, one, status

COUNTS = ("cause", "release", "rows", "inserted", "updated", "deleted", "moved", "waiting", "suppressed")


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Masked, in one release."""
    connection.execute(PEOPLE.format(60))
    connection.execute(MASK)
    return connection


def counts(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in COUNTS)


def shown(connection: duckdb.DuckDBPyConnection, relation: str = "masked") -> list[tuple[Any, ...]]:
    return sorted(connection.execute(f"FROM {relation}").fetchall(), key=str)


# --- what a refresh does


@pytest.mark.surface
def test_inserts_deletes_and_updates_become_the_next_release(people: duckdb.DuckDBPyConnection) -> None:
    first = shown(people)
    people.execute("INSERT INTO people VALUES (100, 30, 250, '7', 'flu'), (101, 31, 260, '7', 'flu')")
    people.execute("DELETE FROM people WHERE id IN (1, 2, 3)")
    people.execute("UPDATE people SET age = age + 20 WHERE id = 4")
    pending = people.execute("FROM kanon.pending('masked')").fetchall()
    assert pending == [("insert", 2), ("update", 1), ("delete", 3)]
    row = one(people, REFRESH)
    assert counts(row)[:6] == ("refresh", 2, 59, 2, 1, 3)
    assert row == one(people, "FROM kanon.releases WHERE release = 2")
    assert_current(people)
    assert shown(people, "kanon.as_of('masked', 1)") == first
    assert shown(people, "kanon.as_of('masked', 2)") == shown(people)


@pytest.mark.surface
def test_an_unchanged_source_makes_no_release(people: duckdb.DuckDBPyConnection) -> None:
    row = one(people, REFRESH)
    assert counts(row)[:6] == ("unchanged", 1, 60, 0, 0, 0)
    people.execute("CREATE OR REPLACE TABLE people AS FROM people ORDER BY hash(id)")  # the same rows
    assert one(people, REFRESH)["cause"] == "unchanged"
    assert people.execute("SELECT count(*) FROM kanon.releases").fetchall() == [(1,)]
    assert_current(people)


@pytest.mark.surface
def test_a_dry_run_tells_and_changes_nothing(people: duckdb.DuckDBPyConnection) -> None:
    first = shown(people)
    change(people, 1)
    dry = one(people, "CALL kanon.refresh('masked', dry_run => true)")
    assert dry["cause"] == "dry run: refresh"
    assert "a dry run: nothing was changed" in dry["warnings"]
    assert shown(people) == first
    assert people.execute("SELECT count(*) FROM kanon.releases").fetchall() == [(1,)]
    assert counts(one(people, REFRESH))[1:] == counts(dry)[1:]
    assert_current(people)


@pytest.mark.surface
def test_other_sensitive_values_move_nobody(people: duckdb.DuckDBPyConnection) -> None:
    cells = "(SELECT * EXCLUDE (disease) FROM masked)"
    first = shown(people, cells)
    people.execute("UPDATE people SET disease = 'flu' WHERE id < 10")
    assert counts(one(people, REFRESH))[:7] == ("refresh", 2, 60, 0, 10, 0, 0)
    assert shown(people, cells) == first
    assert_current(people)


@pytest.mark.surface
@pytest.mark.parametrize("maintenance", ["incremental", "static", "append"])
def test_every_way_of_maintenance_stays_in_step(connection: duckdb.DuckDBPyConnection, maintenance: str) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute(MASK.replace("k => 5", f"k => 5, maintenance => '{maintenance}'"))
    for number in (1, 2):
        change(connection, number)
        assert one(connection, REFRESH)["release"] == number + 1
        assert_current(connection)


@pytest.mark.surface
@pytest.mark.parametrize("key", ["key => 'id', ", ""])
@pytest.mark.parametrize("role", ["sensitive => ['held'], ", "keep => ['held'], ", ""])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INTEGER[]", ["[]", "[NULL]", "NULL"]),
        ("INTEGER[][]", ["[[1], [2]]", "[[1, 2]]"]),
        ("STRUCT(a INTEGER)", ["{'a': NULL}", "NULL"]),
        ("MAP(VARCHAR, INTEGER)", ["MAP {}", "NULL"]),
        ("UNION(number INTEGER, text VARCHAR)", ["union_value(number := 1)", "union_value(text := '1')"]),
    ],
)
def test_values_that_duckdb_gives_the_same_hash(
    connection: duckdb.DuckDBPyConnection, kind: str, values: list[str], role: str, key: str
) -> None:
    """A refresh sees any change of a list or a struct: where it is released as it is, and where it is generalized."""
    connection.execute(
        f"CREATE TABLE t AS SELECT i AS id, i AS age, CAST(NULL AS {kind}) AS held FROM range(20) AS r(i)"
    )
    quasi = "['age']" if role else "{'age': 'numeric', 'held': 'flat'}"
    connection.execute(
        f"CALL kanon.create_masked_view('v', source => 't', {key}{role}quasi_identifiers => {quasi}, k => 2, secure => false)"
    )
    for value in values:
        connection.execute(f"UPDATE t SET held = CAST({value} AS {kind})")
        connection.execute("CALL kanon.refresh('v')")
        shown = connection.execute("SELECT DISTINCT CAST(held AS VARCHAR) FROM v").fetchall()
        assert shown == connection.execute("SELECT DISTINCT CAST(held AS VARCHAR) FROM t").fetchall()


def test_without_a_key_equal_rows_are_interchangeable(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute("INSERT INTO people FROM people WHERE id < 10")
    connection.execute(MASK.replace("key => 'id', ", ""))
    connection.execute("DELETE FROM people WHERE rowid = 0")
    connection.execute("INSERT INTO people FROM people WHERE id = 5")
    assert counts(one(connection, REFRESH))[:6] == ("refresh", 2, 71, 2, 0, 1)
    ill = "SELECT disease, count(*) FROM {} GROUP BY disease ORDER BY ALL"
    assert connection.execute(ill.format("masked")).fetchall() == connection.execute(ill.format("people")).fetchall()


@pytest.mark.surface
def test_unknown_values_wait_until_the_hierarchy_knows_them(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE codes AS SELECT CAST(i AS VARCHAR) AS child, 'low' AS parent FROM range(6) AS r(i)"
    )
    connection.execute("INSERT INTO codes VALUES ('low', '*'), ('high', '*')")
    connection.execute("INSERT INTO codes SELECT i, 'high' FROM range(6, 10) AS r(i)")
    connection.execute("CALL kanon.create_hierarchy('code', edges => 'FROM codes')")
    connection.execute("DROP TABLE codes")  # the hierarchy is stored: what it came from is no longer needed
    connection.execute("CREATE TABLE people AS SELECT i AS id, CAST(i % 10 AS VARCHAR) AS code FROM range(40) AS r(i)")
    connection.execute(
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 3, secure => false, "
        "quasi_identifiers => {'code': 'code'})"
    )
    connection.execute("INSERT INTO people VALUES (100, '17'), (101, '3')")
    connection.execute("UPDATE people SET code = '18' WHERE id = 0")
    row = one(connection, REFRESH)
    assert counts(row)[:6] == ("refresh", 2, 40, 1, 0, 1)
    assert row["waiting"] == 2
    waiting = connection.execute("FROM kanon.waiting('masked')").fetchall()
    assert waiting == [
        ("0", 2, "code '18' has no leaf in hierarchy code"),
        ("100", 2, "code '17' has no leaf in hierarchy code"),
    ]
    assert connection.execute("SELECT status, waiting FROM kanon.masked_views").fetchall() == [("current", 2)]
    again = one(connection, REFRESH)
    assert counts(again)[:3] == ("unchanged", 2, 40)
    connection.execute("CALL kanon.extend_hierarchy('code', edges => 'SELECT ''17'', ''high''')")
    assert counts(one(connection, REFRESH))[:6] == ("refresh", 3, 41, 1, 0, 0)
    assert connection.execute("SELECT key FROM kanon.waiting('masked')").fetchall() == [("0",)]
    connection.execute("UPDATE people SET code = '4' WHERE id = 0")
    assert counts(one(connection, REFRESH))[:6] == ("refresh", 4, 42, 1, 0, 0)
    assert connection.execute("FROM kanon.waiting('masked')").fetchall() == []


@pytest.mark.surface
def test_fewer_than_k_rows_hold_the_release(people: duckdb.DuckDBPyConnection) -> None:
    first = shown(people)
    people.execute("CREATE TABLE everybody AS FROM people")
    for left in (4, 0):
        people.execute(f"DELETE FROM people WHERE id >= {left}")
        row = one(people, REFRESH)
        reason = "fewer than 5 rows are left that can be shown: release 1 stays until there are more"
        assert counts(row)[:6] == ("held", 1, 60, 0, 0, 0)
        assert row["warnings"] == [reason]
        assert status(people) == ("held", reason)
        assert shown(people) == first
    people.execute("INSERT INTO people FROM everybody WHERE id BETWEEN 10 AND 20")
    assert counts(one(people, REFRESH))[:6] == ("refresh", 2, 11, 0, 0, 49)
    assert_current(people)


@pytest.mark.surface
def test_a_secure_view_gives_up_its_safety_only_by_a_rebuild(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute(MASK.replace("secure => false,", "on_delete => 'retire',"))
    assert one(connection, REFRESH)["cause"] == "unchanged"
    change(connection, 1)
    row = one(connection, REFRESH)
    assert (row["cause"], row["vulnerable_rows"]) == ("refresh", 0)
    row = one(connection, "CALL kanon.rebuild('masked', secure => false)")
    assert any("whoever has several releases can compare them" in warning for warning in row["warnings"])
    assert_current(connection)
    change(connection, 2)
    assert one(connection, REFRESH)["release"] == 4
    assert_current(connection)


def test_every_release_stays_readable_until_it_is_forgotten(people: duckdb.DuckDBPyConnection) -> None:
    releases = [shown(people)]
    for number in range(1, 5):
        change(people, number)
        one(people, REFRESH)
        releases.append(shown(people))
    for number, rows in enumerate(releases, 1):
        assert shown(people, f"kanon.as_of('masked', {number})") == rows
        assert people.execute(f"SELECT passed FROM kanon.check('masked', release => {number})").fetchall() == [(True,)]
    assert one(people, "CALL kanon.forget('masked', before_release => 4)")["forgotten_releases"] == 3
    for number, rows in enumerate(releases, 1):
        if number < 4:
            with pytest.raises(duckdb.Error, match=f"has no release {number} to read"):
                people.execute(f"FROM kanon.as_of('masked', {number})").fetchall()
        else:
            assert shown(people, f"kanon.as_of('masked', {number})") == rows
    assert people.execute("SELECT count(*) FROM kanon.releases").fetchall() == [(5,)]


def test_optimize_and_rebuild_never_lose_anybody(people: duckdb.DuckDBPyConnection) -> None:
    for number in (1, 2):
        change(people, number)
        one(people, REFRESH)
    last = one(people, "FROM kanon.releases ORDER BY release DESC LIMIT 1")
    optimized = one(people, "CALL kanon.optimize('masked')")
    assert optimized["cause"] in ("optimize", "unchanged")
    assert optimized["information_loss"] <= last["information_loss"]
    assert_current(people)
    assert one(people, "CALL kanon.rebuild('masked')")["settings_version"] == 1
    rebuilt = one(people, "CALL kanon.rebuild('masked', k => 7)")
    assert (rebuilt["cause"], rebuilt["settings_version"]) == ("rebuild", 2)
    assert rebuilt["k_achieved"] >= 7
    assert_current(people)
    with pytest.raises(duckdb.Error, match="keeps the columns that readers know"):
        people.execute("CALL kanon.rebuild('masked', quasi_identifiers => ['age'])")


def test_values_outside_the_domain_recommend_a_rebuild(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("UPDATE people SET age = 300 WHERE id = 1")
    row = one(people, REFRESH)
    assert "1 rows of age lie outside its domain: their information loss counts at most 1" in row["warnings"]
    assert row["warnings"][0] == "disease is released without l, p, alpha or t"
    [(reason,)] = people.execute("SELECT refresh_recommended FROM kanon.masked_views").fetchall()
    assert "1 rows of age lie outside its domain" in reason


@pytest.mark.parametrize("hierarchy", ["flat", "city"])
def test_a_new_process_goes_on_where_the_old_one_ended(tmp_path: Path, hierarchy: str) -> None:
    """What a process remembers of the members, and what it reads of them, is the same; new values come each time."""
    releases = []
    for name, starts_anew in (("one", False), ("many", True)):
        path = str(tmp_path / f"{name}.duckdb")
        connection = kanon_duck.connect(path)
        connection.execute(PEOPLE.format(200))
        connection.execute("CALL kanon.create_hierarchy('city', prefix => 2)")
        connection.execute(MASK.replace("'city': 'flat'", f"'city': '{hierarchy}'"))
        for number in range(1, 5):
            if starts_anew:
                connection.close()
                connection = kanon_duck.connect(path)
            change(connection, number)
            connection.execute(f"UPDATE people SET city = '{number}a' WHERE id % 7 = {number}")
            one(connection, REFRESH)
        releases.append([shown(connection, f"kanon.as_of('masked', {number})") for number in range(1, 6)])
        if hierarchy == "flat":
            assert_current(connection)
        connection.close()
    assert releases[0] == releases[1]


# --- sources that break

BROKEN = {
    "dropped": ("DROP TABLE people", "there is no table or view people"),
    "other columns": ("CREATE OR REPLACE TABLE people AS SELECT 1 AS other", "columns id, age, income, city, disease, which the view was made with"),
    "key dropped": ("ALTER TABLE people DROP id", "column id, which the view was made with, is gone"),
    "column dropped": ("ALTER TABLE people DROP income", "column income, which the view was made with, is gone"),
    "column renamed": ("ALTER TABLE people RENAME disease TO illness", "column disease, which the view was made with, is gone"),
    "other type": ("ALTER TABLE people ALTER age TYPE BIGINT", "column age was INTEGER and is BIGINT now"),
    "other type of the key": ("ALTER TABLE people ALTER id TYPE VARCHAR", "column id was BIGINT and is VARCHAR now"),
    "numbers as text": ("ALTER TABLE people ALTER age TYPE VARCHAR", "age is numeric, but column age is VARCHAR"),
    "key repeated": ("INSERT INTO people FROM people WHERE id < 2", "key id is not unique: 2 of its values"),
    "new key repeated": (
        "INSERT INTO people SELECT * REPLACE (1000 AS id) FROM people WHERE id < 2", "key id is not unique: 1 of its",
    ),
    "key of another": ("UPDATE people SET id = 1 WHERE id = 2", "key id is not unique: 1 of its values"),
    "key NULL": ("UPDATE people SET id = NULL WHERE id < 3", "key id is NULL in 3 rows"),
}  # fmt: skip
"""What is done to the source, and what is said of it."""


def assert_broken_and_mended(connection: duckdb.DuckDBPyConnection, statement: str, told: str, mend: str) -> None:
    """A broken source is told by an error and by the status, releases stay, and once it is mended all is well."""
    first = shown(connection)
    connection.execute(statement)
    for _ in range(2):
        with pytest.raises(duckdb.Error, match=rf"{told}.*\(release 1 stays as it is\)"):
            connection.execute(REFRESH)
    found, reason = status(connection)
    assert found == "broken"
    assert reason is not None
    assert "internal error" not in reason
    [(cause, warnings)] = connection.execute("SELECT cause, warnings FROM kanon.refresh_all()").fetchall()
    assert (cause, warnings) == ("failed", [f"{reason} (release 1 stays as it is)"])
    assert shown(connection) == shown(connection, "kanon.as_of('masked', 1)") == first
    assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
    for part in mend.split(";"):
        connection.execute(part)
    change(connection, 1)
    assert one(connection, REFRESH)["release"] == 2
    assert status(connection) == ("current", None)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_source_is_told_and_can_be_mended(people: duckdb.DuckDBPyConnection, kind: str) -> None:
    people.execute("CREATE TABLE saved AS FROM people")
    assert_broken_and_mended(people, *BROKEN[kind], "CREATE OR REPLACE TABLE people AS FROM saved")
    assert_current(people)


@pytest.mark.surface
def test_a_float_that_is_no_number(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute("ALTER TABLE people ALTER income TYPE DOUBLE")
    connection.execute(MASK.replace("'domain': [-10, 2000]", "'step': 1"))
    for value in ("nan", "infinity"):
        connection.execute(f"UPDATE people SET income = '{value}' WHERE id = 7")
        connection.execute("DELETE FROM people WHERE id = (SELECT max(id) FROM people)")
        answer = one(connection, REFRESH)
        assert (answer["deleted"], answer["waiting"]) == (2, 1)
        [(key, reason)] = connection.execute("SELECT key, reason FROM kanon.waiting('masked')").fetchall()
        assert (key, reason) == ("7", f"income '{'nan' if value == 'nan' else 'inf'}' has no place in an interval")
        connection.execute("UPDATE people SET income = 99 WHERE id = 7")
        one(connection, REFRESH)
        assert status(connection) == ("current", None)
        assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]


def test_a_source_in_a_detached_database(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    attach = f"ATTACH '{tmp_path / 'other.duckdb'}' AS other"
    connection.execute(attach)
    connection.execute(PEOPLE.replace("TABLE people", "TABLE other.people").format(60))
    connection.execute(MASK.replace("'people'", "'other.people'"))
    connection.execute("CREATE VIEW people AS FROM other.people")
    first = shown(connection)
    connection.execute("DETACH other")
    with pytest.raises(duckdb.Error, match=r"there is no table or view other\.people"):
        connection.execute(REFRESH)
    assert status(connection)[0] == "broken"
    assert shown(connection) == first
    connection.execute(attach)
    connection.execute("DELETE FROM other.people WHERE id < 5")
    assert one(connection, REFRESH)["deleted"] == 5
    assert_current(connection)


def test_a_query_or_view_whose_table_or_file_is_gone(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    connection.execute(PEOPLE.replace("TABLE people", "TABLE everybody").format(60))
    connection.execute("CREATE VIEW people AS FROM everybody")
    connection.execute(f"COPY everybody TO '{file}'")
    connection.execute(MASK)
    connection.execute(MASK.replace("'people'", f"'FROM ''{file}'''").replace("'masked'", "'of_file'"))
    connection.execute("ALTER TABLE everybody RENAME TO elsewhere")
    file.rename(tmp_path / "elsewhere")
    for view, name in (("masked", "everybody"), ("of_file", "people.parquet")):
        with pytest.raises(duckdb.Error, match=rf"{name}.*\(release 1 stays as it is\)"):
            connection.execute(f"CALL kanon.refresh('{view}')")
        assert len(shown(connection, view)) == 60
    assert connection.execute("SELECT DISTINCT status FROM kanon.masked_views").fetchall() == [("broken",)]
    connection.execute("ALTER TABLE elsewhere RENAME TO everybody")
    connection.execute("DELETE FROM everybody WHERE id < 5")
    connection.execute(f"COPY everybody TO '{file}'")
    for view in ("masked", "of_file"):
        assert one(connection, f"CALL kanon.refresh('{view}')")["deleted"] == 5
    assert connection.execute("SELECT DISTINCT status FROM kanon.masked_views").fetchall() == [("current",)]
    assert_current(connection)


# --- sources that look otherwise and are the same


def test_columns_in_another_order_and_case_are_the_same(people: duckdb.DuckDBPyConnection) -> None:
    first = shown(people)
    people.execute("""
        CREATE OR REPLACE TABLE people AS
        SELECT disease AS DISEASE, city, 'more' AS added, income AS Income, age AS AGE, id FROM people
    """)
    assert one(people, REFRESH)["cause"] == "unchanged"
    people.execute("DELETE FROM people WHERE id < 5")
    assert one(people, REFRESH)["deleted"] == 5
    people.execute("CREATE OR REPLACE TABLE people AS SELECT id, age, income, city, disease FROM people")
    assert_current(people)
    people.execute("CREATE OR REPLACE TABLE people AS SELECT city, disease, income, age, id FROM people")
    row = one(people, "CALL kanon.rebuild('masked')")
    assert (row["updated"], row["settings_version"]) == (0, 1)
    assert_current(people)
    assert shown(people, "kanon.as_of('masked', 1)") == first
    assert shown(people, "kanon.as_of('masked', 3)") == shown(people)
    assert [column[0] for column in people.execute("FROM masked").description] == [
        "age", "age_min", "age_max", "income", "income_min", "income_max", "city", "disease",
    ]  # fmt: skip


def test_a_later_hierarchy_of_a_column_s_name_changes_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute(
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, secure => false, "
        "quasi_identifiers => ['age', 'city'])"
    )
    connection.execute("CALL kanon.create_hierarchy('age', intervals => [10])")
    connection.execute("CALL kanon.create_hierarchy('city', prefix => 2)")
    change(connection, 1)
    for call in (REFRESH, "CALL kanon.rebuild('masked')"):
        one(connection, call)
        [(declared,)] = connection.execute("SELECT quasi_identifiers FROM kanon.masked_views").fetchall()
        assert '"city": {"type": "flat"}' in declared
        assert status(connection) == ("current", None)


def test_names_that_need_quoting(connection: duckdb.DuckDBPyConnection) -> None:
    name = 'x"; DROP TABLE t; --'
    quoted = '"' + name.replace('"', '""') + '"'
    connection.execute(
        f'CREATE TABLE "my table" AS SELECT i AS "order", i AS {quoted}, i % 2 AS s FROM range(30) AS r(i)'
    )
    connection.execute(
        f"CALL kanon.create_masked_view('{name}', source => '\"my table\"', key => 'order', k => 3, secure => false, "
        f"quasi_identifiers => {{{quoted}: 'numeric'}}, sensitive => 's')"
    )
    connection.execute('DELETE FROM "my table" WHERE "order" < 4')
    [(listed,)] = connection.execute("SELECT name FROM kanon.masked_views").fetchall()
    assert one(connection, f"CALL kanon.refresh('{name}')")["deleted"] == 4
    assert len(shown(connection, quoted)) == 26
    assert len(shown(connection, f"kanon.as_of('{listed}', 1)")) == 30
    connection.execute('ALTER TABLE "my table" RENAME TO "select"')
    with pytest.raises(duckdb.Error, match="there is no table or view"):
        connection.execute(f"CALL kanon.refresh('{name}')")
    assert connection.execute("SELECT status FROM kanon.masked_views").fetchall() == [("broken",)]


def test_kept_cells_are_the_source_s_after_every_refresh(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute("ALTER TABLE people ADD COLUMN ward INTEGER")
    connection.execute("UPDATE people SET ward = hash(id, 7) % 3")
    connection.execute(MASK.replace("sensitive =>", "keep => ['ward'], allow_unsafe_keep => ['ward'], sensitive =>"))
    kept = "SELECT ward, disease, count(*) FROM {} GROUP BY ALL ORDER BY ALL"
    connection.execute("UPDATE people SET ward = 9, disease = 'flu' WHERE id < 5")
    connection.execute("DELETE FROM people WHERE id = 6")
    connection.execute("UPDATE people SET age = 65, ward = 8 WHERE id = 7")
    one(connection, REFRESH)
    assert connection.execute(kept.format("masked")).fetchall() == connection.execute(kept.format("people")).fetchall()


# --- refresh_all


def test_refresh_all_goes_on_after_views_that_fail(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute("CREATE TABLE others AS FROM people")
    connection.execute(MASK)
    connection.execute(MASK.replace("'masked'", "'a_broken'").replace("'people'", "'others'"))
    connection.execute(MASK.replace("'masked'", "'b_secure'").replace("secure => false,", "independent => true,"))
    connection.execute(MASK.replace("'masked'", "'z_few'").replace("k => 5", "k => 59, independent => true"))
    change(connection, 1)
    connection.execute("DELETE FROM people WHERE id > 40")
    connection.execute("DROP TABLE others")
    found = connection.execute("SELECT view_name, cause, release FROM kanon.refresh_all()").fetchall()
    assert sorted(found) == [
        ("a_broken", "failed", 1),
        ("b_secure", "refresh", 2),
        ("masked", "refresh", 2),
        ("z_few", "held", 1),
    ]
    told = dict(connection.execute("SELECT name, status FROM kanon.masked_views").fetchall())
    assert told == {"a_broken": "broken", "b_secure": "current", "masked": "current", "z_few": "held"}
    reasons = connection.execute("SELECT reason FROM kanon.masked_views ORDER BY name").fetchall()
    assert "others" in reasons[0][0]
    for view in ("a_broken", "z_few"):
        assert len(shown(connection, view)) == 60
    assert_current(connection)


@pytest.mark.surface
def test_a_new_class_that_looks_like_one_that_stands_leaves_the_earlier_release_readable(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute("CREATE TABLE people AS SELECT i AS id, ['x', 'y'][1 + i % 2] AS town FROM range(6) AS r(i)")
    connection.execute(
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 3, secure => false, "
        "quasi_identifiers => {'town': 'flat'}, maintenance => 'append')"
    )
    connection.execute("INSERT INTO people SELECT i, 'x' FROM range(10, 13) AS r(i)")
    row = one(connection, REFRESH)
    assert (row["rows"], row["classes"], row["inserted"], row["moved"]) == (9, 2, 3, 0)
    counted = "SELECT town, count(*) FROM {} GROUP BY town ORDER BY town"
    assert connection.execute(counted.format("kanon.as_of('masked', 1)")).fetchall() == [("x", 3), ("y", 3)]
    assert connection.execute(counted.format("kanon.as_of('masked', 2)")).fetchall() == [("x", 6), ("y", 3)]


@pytest.mark.surface
def test_a_dry_run_of_a_rebuild_tells_what_it_would_be(people: duckdb.DuckDBPyConnection) -> None:
    foretold = one(people, "CALL kanon.rebuild('masked', k => 6, dry_run => true)")
    assert (foretold["cause"], foretold["release"], foretold["k_achieved"]) == ("dry run: rebuild", 2, 6)
    assert people.execute("SELECT k, release FROM kanon.masked_views").fetchall() == [(5, 1)]
    made = one(people, "CALL kanon.rebuild('masked', k => 6)")
    same = ("release", "rows", "classes", "moved", "information_loss")
    assert [made[name] for name in same] == [foretold[name] for name in same]


@pytest.mark.surface
def test_a_release_that_is_not_there_is_told_with_those_that_are(people: duckdb.DuckDBPyConnection) -> None:
    for release in (2, 3):
        people.execute(f"DELETE FROM people WHERE id = {release}")
        one(people, REFRESH)
    people.execute("CALL kanon.forget('masked', before_release => 2)")
    for release in (1, 4):
        with pytest.raises(duckdb.Error, match=f"no release {release} to read: there are releases 2 to 3"):
            people.execute(f"FROM kanon.as_of('masked', {release})").fetchall()


@pytest.mark.surface
@pytest.mark.parametrize("maintenance", ["incremental", "static", "append"])
def test_classes_may_leave_whole(connection: duckdb.DuckDBPyConnection, maintenance: str) -> None:
    connection.execute("CREATE TABLE people AS SELECT i AS id, i // 3 AS age FROM range(9) AS r(i)")
    connection.execute(
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 3, secure => false, "
        f"quasi_identifiers => ['age'], maintenance => '{maintenance}')"
    )
    connection.execute("DELETE FROM people WHERE age = 0")
    row = one(connection, REFRESH)
    assert (row["cause"], row["rows"], row["classes"], row["deleted"]) == ("refresh", 6, 2, 3)
    assert connection.execute("SELECT count(*) FROM kanon.as_of('masked', 1)").fetchall() == [(9,)]
    connection.execute("CALL kanon.drop_masked_view('masked')")
    with pytest.raises(duckdb.Error, match="there is no masked view masked"):
        connection.execute("SELECT count(*) FROM kanon.as_of('masked', 1)").fetchall()


def test_who_is_held_back_now_is_told_also_without_a_release(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE people AS SELECT i AS id, i // 3 AS age FROM range(9) AS r(i)")
    connection.execute("INSERT INTO people VALUES (100, 90)")
    created = one(
        connection,
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 3, secure => false, "
        "quasi_identifiers => ['age'], maintenance => 'append', max_suppression => 0.1)",
    )
    assert (created["rows"], created["suppressed"]) == (9, 1)
    [left_out] = [
        number
        for number in (*range(9), 100)
        if one(connection, f"FROM kanon.explain('masked', key => {number})")["status"] == "suppressed"
    ]
    connection.execute(f"DELETE FROM people WHERE id = {left_out}")
    connection.execute("INSERT INTO people VALUES (101, 1)")
    row = one(connection, REFRESH)
    assert (row["cause"], row["rows"], row["suppressed"], row["waiting"]) == ("unchanged", 9, 0, 1)

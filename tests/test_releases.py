"""What readers see, against the members recomputed by plain means; and faults users met elsewhere."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.surface

TREE = {
    "a": ["a", "x", "*"],
    "b": ["b", "x", "*"],
    "c": ["c", "y", "z", "*"],
    "d": ["d", "z", "*"],
    "e": ["e", "*"],
}


def mask(connection: duckdb.DuckDBPyConnection, quasi_identifiers: str, more: str = "", k: int = 2) -> dict[str, Any]:
    """Mask the table t by its column id; returns the release."""
    result = connection.execute(
        f"CALL kanon.create_masked_view('v', source => 't', key => 'id', k => {k}, new_series => true, "
        f"quasi_identifiers => {quasi_identifiers} {more})"
    )
    names = [column[0] for column in result.description]
    return dict(zip(names, result.fetchall()[0], strict=True))


def height(node: str) -> int:
    """Height of the subtree below a node of TREE."""
    return max(path.index(node) for path in TREE.values() if node in path)


def expected_cells(members: list[dict[str, Any]], domain: tuple[int, int]) -> tuple[tuple[Any, ...], float]:
    """Released cells of one class by the rules, one by one, and its information loss."""
    ages = [member["age"] for member in members]
    loss = 0.0
    if all(age is None for age in ages):
        age_cells: tuple[Any, ...] = (None, None, None)
    elif None in ages or (min(ages) <= domain[0] < domain[1] <= max(ages)):
        age_cells, loss = ("*", None, None), 1.0
    else:
        low, high = min(ages), max(ages)
        age_cells = (str(low) if low == high else f"[{low}, {high}]", low, high)
        loss = (high - low) / (domain[1] - domain[0]) if domain[1] > domain[0] else 0.0
    cities = {member["city"] for member in members}
    if cities == {None}:
        return (*age_cells, None), loss * len(members)
    if None in cities:
        return (*age_cells, "*"), (loss + 1) * len(members)
    common = [node for node in TREE[next(iter(cities))] if all(node in TREE[city] for city in cities)]
    return (*age_cells, common[0]), (loss + height(common[0]) / 3) * len(members)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-5, 30),
            st.none() | st.sampled_from(sorted(TREE)),
            st.none() | st.integers(0, 3),
        ),
        min_size=2,
        max_size=60,
    ),
    k=st.integers(2, 5),
    method=st.sampled_from(["k_member", "oka"]),
    seed=st.integers(0, 3),
)
def test_release_against_its_members(
    connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], k: int, method: str, seed: int
) -> None:
    """Every class has at least k rows, every cell covers exactly its members, every sensitive cell is the source's."""
    if len(rows) < k:
        return
    paths = ", ".join(str(tuple(path + [None] * (4 - len(path)))).replace("None", "NULL") for path in TREE.values())
    known = connection.execute("SELECT count(*) FROM kanon.hierarchies").fetchall()
    if known == [(0,)]:
        literal = f"SELECT * FROM (VALUES {paths})".replace("'", "''")
        connection.execute(f"CALL kanon.create_hierarchy('city', levels => '{literal}')")
    connection.execute("CREATE OR REPLACE TABLE t (id INTEGER, age INTEGER, city VARCHAR, illness INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(rows)])
    release = mask(
        connection,
        "{'age': 'numeric', 'city': 'city'}",
        f", sensitive => ['illness'], method => '{method}', seed => {seed}, independent => true",
        k,
    )
    number = connection.execute("SELECT max(view_number) FROM kanon_private.masked_views").fetchall()[0][0]
    classes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for identity, label in connection.execute(f"SELECT key_0, class FROM kanon_private.members_{number}").fetchall():
        age, city, illness = rows[identity]
        classes[label].append({"age": age, "city": city, "illness": illness})
    assert sum(map(len, classes.values())) == len(rows) == release["rows"]
    assert min(map(len, classes.values())) >= k

    ages = [age for age, _, _ in rows if age is not None]
    domain = (min(ages), max(ages)) if ages else (0, 0)
    expected: Counter[tuple[Any, ...]] = Counter()
    loss = 0.0
    for members in classes.values():
        cells, class_loss = expected_cells(members, domain)
        loss += class_loss
        expected.update((*cells, member["illness"]) for member in members)
    shown = connection.execute("SELECT age, age_min, age_max, city, illness FROM v").fetchall()
    assert Counter(shown) == expected
    assert release["information_loss"] == pytest.approx(loss)
    sizes = Counter(row[:4] for row in shown)
    assert (release["classes"], release["k_achieved"]) == (len(sizes), min(sizes.values()))
    assert release["discernibility"] == sum(size**2 for size in sizes.values())
    assert release["average_class_size"] == pytest.approx(len(rows) / len(sizes) / k)
    diversity = [len({row[4] for row in shown if row[:4] == cells}) for cells in sizes]
    assert release["l_achieved"] == min(diversity)
    check = connection.execute("SELECT achieved, violating_rows, passed FROM kanon.check('v')").fetchall()
    assert check == [(min(sizes.values()), 0, True)]
    by_city = Counter(row[3] for row in shown)
    subset = connection.execute("SELECT achieved FROM kanon.check('v', quasi_identifiers => ['city'])").fetchall()
    assert subset == [(min(by_city.values()),)]
    connection.execute("CALL kanon.drop_masked_view('v')")


def test_order_tells_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    """The released rows, in the order they are stored, do not depend on the source's order."""
    stored = []
    for order in ("id", "id DESC", "hash(id)"):
        connection.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT i AS id, i // 7 AS age, i % 5 AS s FROM range(100) AS r(i) ORDER BY {order}"
        )
        mask(connection, "['age']", ", sensitive => 's'", k=5)
        stored.append(connection.execute("FROM v").fetchall())
        connection.execute("CALL kanon.drop_masked_view('v')")
    assert stored[0] == stored[1] == stored[2]


def test_rows_are_stored_in_the_order_of_what_they_show(connection: duckdb.DuckDBPyConnection) -> None:
    """Also where joins would rather give them in another order, whatever release is the first to show them so."""
    columns = ", ".join(f"hash(i + {place}) % 50 AS q{place}" for place in range(6))
    connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT i AS id, {columns}, i % 5 AS s FROM range(6000) AS r(i)")
    mask(connection, str([f"q{place}" for place in range(6)]), ", sensitive => 's', secure => false", k=2)
    connection.execute("DELETE FROM t WHERE id % 7 = 0")
    connection.execute("CALL kanon.refresh('v')").fetchall()
    assert len(set(connection.execute("SELECT kanon_from_release FROM kanon_released.v").fetchall())) == 2
    cells = [cell for place in range(6) for cell in (f"q{place}", f"q{place}_min", f"q{place}_max")]
    order = ", ".join([*cells, "s"])
    stored = connection.execute("FROM v").fetchall()
    assert stored == connection.execute(f"FROM v ORDER BY {order}").fetchall()


def test_large_releases_are_stored_in_that_order_too(connection: duckdb.DuckDBPyConnection) -> None:
    """Threads write stretches of 122,880 rows each; the order holds where classes are more than that."""
    connection.execute(
        "CREATE OR REPLACE TABLE t AS SELECT i AS id, hash(i) % 150000 AS q, hash(i + 1) % 7 AS s FROM range(400000) AS r(i)"
    )
    mask(connection, "['q']", ", sensitive => 's', effort => 'light'", k=2)
    [(classes,)] = connection.execute("SELECT count(DISTINCT kanon_class) FROM kanon_released.v").fetchall()
    assert classes > 122_880
    stored = connection.execute("SELECT q, q_min, s FROM v").fetchnumpy()
    sorted_rows = connection.execute("SELECT q, q_min, s FROM v ORDER BY q, q_min, q_max, s").fetchnumpy()
    assert all(np.all(stored[name] == sorted_rows[name]) for name in stored)


def test_columns_of_any_type_are_released_as_they_are(connection: duckdb.DuckDBPyConnection) -> None:
    columns = {
        "huge": "(i % 3)::HUGEINT * 170141183460469231731687303715884105", "id_number": "uuid_of(i % 3)",
        "document": "('{\"a\": ' || i % 3 || '}')::JSON", "bits": "('10' || i % 2)::BIT", "raw": "('ab' || i % 3)::BLOB",
        "span": "INTERVAL (i % 3) DAY", "zoned": "TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (i % 3) DAY",
        "exact": "((i % 3) * 0.00001)::DECIMAL(38, 5)", "pair": "{'a': i % 3, 'b': [i % 2]}", "many": "[i % 3, NULL]",
        "named": "MAP{'k': i % 3}", "fixed": "[i % 3, 1]::INTEGER[2]", "grade": "('a' || i % 2)::ENUM('a0', 'a1')",
        "real": "CASE i % 4 WHEN 0 THEN 'nan'::FLOAT WHEN 1 THEN -0.0 WHEN 2 THEN 'inf'::FLOAT END", "nothing": "NULL",
    }  # fmt: skip
    connection.execute("CREATE MACRO uuid_of(i) AS ('00000000-0000-0000-0000-00000000000' || i)::UUID")
    made = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
    connection.execute(f"CREATE TABLE t AS SELECT i AS id, i * 7 % 50 AS age, {made} FROM range(300) AS r(i)")
    names = list(columns)
    mask(
        connection,
        "['age']",
        f", secure => false, sensitive => 'huge', keep => {names[1:]}, allow_unsafe_keep => {names[1:]}",
        k=4,
    )
    query = f"SELECT {', '.join(f'typeof({name}), {name}::VARCHAR AS {name}' for name in names)} FROM"
    assert connection.execute(f"{query} v EXCEPT ALL {query} t").fetchall() == []
    assert connection.execute("SELECT count(*) FROM v").fetchone() == (300,)


def test_types_of_numeric_quasi_identifiers(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE TABLE t AS SELECT i AS id, CAST(9223372036854775807 - i AS BIGINT) AS big,
            CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38, 10)) + CAST(i AS DECIMAL(38, 10)) AS exact,
            i * 0.5::DOUBLE AS real, i % 2 = 0 AS flag, DATE '2014-09-03' + CAST(i AS INTEGER) AS day,
            TIMESTAMP '2014-09-03 10:11:12.5' + to_hours(i) AS moment, TIMESTAMPTZ '2014-09-03 10:00:00+02' AS zoned,
            CAST(i * 1.25 AS DECIMAL(10, 2)) AS price
        FROM range(6) AS r(i)
    """)
    release = mask(
        connection,
        "{'big': 'numeric', 'exact': {'step': 1}, 'real': {'step': 0.5}, 'flag': 'numeric', 'day': 'numeric', "
        "'moment': {'step': '1 hour'}, 'zoned': 'numeric', 'price': {'step': 0.05}}",
        k=3,
    )
    assert release["k_achieved"] == 3
    described = dict(row[:2] for row in connection.execute("DESCRIBE v").fetchall())
    kinds = {
        "big": "BIGINT", "exact": "DECIMAL(38,10)", "real": "DOUBLE", "flag": "BOOLEAN", "day": "DATE",
        "moment": "TIMESTAMP", "zoned": "TIMESTAMP WITH TIME ZONE", "price": "DECIMAL(10,2)",
    }  # fmt: skip
    for name, kind in kinds.items():
        assert (described[name], described[f"{name}_min"], described[f"{name}_max"]) == (
            "VARCHAR",
            kind,
            kind,
        )
    rows = connection.execute(
        "SELECT DISTINCT big, big_min, big_max, exact_min, day, moment, price FROM v ORDER BY big_min"
    ).fetchall()
    assert rows[0] == (
        "[9223372036854775802, 9223372036854775804]", 9223372036854775802, 9223372036854775804,
        Decimal("1234567890123456789012345681.0000000000"), "[2014-09-06, 2014-09-08]",
        "[2014-09-03 13:00:00, 2014-09-03 16:00:00]", "[3.75, 6.25]",
    )  # fmt: skip
    assert rows[1][3] == Decimal("1234567890123456789012345678.0000000000")
    [(shown,)] = connection.execute("SELECT DISTINCT zoned FROM v").fetchall()
    assert shown == "[2014-09-03 00:00:00, 2014-09-04 00:00:00]" or shown == "*"


def test_a_domain_wider_than_64_bits_stays_exact(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t (id INTEGER, x DECIMAL(38, 10))")
    for number in range(3):
        text = f"{10**28 - 1 - number}.9999999999"
        connection.execute(f"INSERT INTO t VALUES ({number}, {text}), ({number + 3}, -{text})")
    release = mask(connection, "{'x': {'step': '0.0000000001'}}", k=3)
    rows = connection.execute("SELECT DISTINCT x_min, x_max FROM v ORDER BY x_min").fetchall()
    assert rows[0][0] == Decimal("-9999999999999999999999999999.9999999999")
    assert rows[1] == (
        Decimal("9999999999999999999999999997.9999999999"), Decimal("9999999999999999999999999999.9999999999"),
    )  # fmt: skip
    assert release["information_loss_per_row"] < 1e-9


def test_any_type_as_categorical(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE TABLE t AS SELECT i AS id, i % 3 AS number, DATE '2020-01-01' + CAST(i % 2 AS INTEGER) AS day,
            i % 2 = 0 AS flag, [i % 2] AS list, CAST(CASE i % 2 WHEN 0 THEN 'x' ELSE 'y' END AS ENUM('x', 'y')) AS word
        FROM range(12) AS r(i)
    """)
    connection.execute("CALL kanon.create_hierarchy('months', dates => ['month', 'year'])")
    connection.execute("CALL kanon.create_hierarchy('ten', intervals => [10])")
    mask(connection, "{'number': 'ten', 'day': 'months', 'flag': 'flat', 'list': 'flat', 'word': 'flat'}")
    assert {row[1] for row in connection.execute("DESCRIBE v").fetchall()} == {"VARCHAR"}
    shown = connection.execute("SELECT DISTINCT number FROM v").fetchall()
    assert all(label in {"0", "1", "2", "[0, 10)"} for (label,) in shown)


def test_bounds_snap_outward_to_the_step(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, 1000 + 700 * i AS income FROM range(4) AS r(i)")
    release = mask(connection, "{'income': {'type': 'numeric', 'step': 1000, 'domain': [0, 10000]}}")
    rows = connection.execute("SELECT DISTINCT income, income_min, income_max FROM v ORDER BY 2").fetchall()
    assert rows == [("[1000, 2000]", 1000, 2000), ("[2000, 4000]", 2000, 4000)]
    assert release["information_loss"] == pytest.approx(2 * 0.1 + 2 * 0.2)


def test_values_outside_a_given_domain_warn(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, i * 10 AS age FROM range(6) AS r(i)")
    release = mask(connection, "{'age': {'type': 'numeric', 'domain': [0, 30]}}")
    assert any("2 rows of age lie outside" in warning for warning in release["warnings"])
    assert release["information_loss_per_row"] <= 1


def test_nulls_are_a_value_of_their_own(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t (id INTEGER, age INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate([20, 21, 22, None, 40, 41, None, 43])))
    release = mask(connection, "['age']")
    assert release["rows"] == 8
    rows = Counter(connection.execute("SELECT age, age_min, age_max FROM v").fetchall())
    assert rows[(None, None, None)] == 2
    assert sum(rows.values()) == 8


def test_constant_and_empty_columns_cost_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, 7 AS same, CAST(NULL AS INTEGER) AS nothing, 'x' AS word FROM range(5) AS r(i)"
    )
    release = mask(connection, "['same', 'nothing', 'word']")
    assert release["information_loss"] == 0
    assert set(connection.execute("FROM v").fetchall()) == {("7", 7, 7, None, None, None, "x")}


def test_leaves_and_values_match_by_text(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE ages AS SELECT i AS leaf, CASE WHEN i < 35 THEN 'young' ELSE 'old' END AS parent FROM range(30, 40) AS r(i)"
    )
    connection.execute("CALL kanon.create_hierarchy('ages', levels => 'SELECT leaf, parent, ''*'' FROM ages')")
    connection.execute("CREATE TABLE t AS SELECT i AS id, CAST(30 + i AS VARCHAR) AS age FROM range(10) AS r(i)")
    mask(connection, "{'age': 'ages'}", k=5)
    assert Counter(row[0] for row in connection.execute("FROM v").fetchall()) == {"young": 5, "old": 5}


def test_values_that_share_their_lowest_label_are_shown_as_what_they_are(connection: duckdb.DuckDBPyConnection) -> None:
    """Timestamps of one day are one node of a hierarchy of dates."""
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, TIMESTAMP '2021-03-30' + i * INTERVAL 5 HOUR AS moment FROM range(40) AS r(i)"
    )
    connection.execute("CALL kanon.create_hierarchy('days', dates => ['month', 'year'])")
    mask(connection, "{'moment': 'days'}", k=4)
    expected = connection.execute("""
        WITH placed AS (SELECT class, moment FROM t JOIN kanon_private.members_1 ON key_0 = id)
        SELECT CASE WHEN count(DISTINCT CAST(moment AS DATE)) = 1 THEN strftime(any_value(moment), '%Y-%m-%d')
                    WHEN count(DISTINCT month(moment)) = 1 THEN strftime(any_value(moment), '%Y-%m')
                    ELSE '2021' END AS label, count(*) AS rows
        FROM placed GROUP BY class
    """).fetchall()
    released = Counter(label for (label,) in connection.execute("FROM v").fetchall())
    assert released == sum((Counter({label: rows}) for label, rows in expected), Counter())
    assert len({label[:7] for label in released}) > 1


def test_a_missing_value_is_named_before_any_work(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, '34'), (2, '45'), (3, '66'), (4, '99'), (5, '99'), (6, '66 ')) AS r(id, age)"
    )
    connection.execute(
        "CALL kanon.create_hierarchy('age', edges => 'SELECT * FROM (VALUES (34, ''*''), (45, ''*''), (66, ''*''))')"
    )
    with pytest.raises(
        duckdb.Error,
        match=r"2 values in 3 rows have no leaf.*'99' \(2 rows\).*'66 ' and '66' differ only by blanks",
    ):
        mask(connection, "['age']")


def test_kept_columns_stay_with_their_rows(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE TABLE t AS SELECT i AS id, CAST(hash(i) % 50 AS INTEGER) AS age, CAST(hash(i, 7) % 3 AS INTEGER) AS ward,
            [CAST(hash(i, 8) % 2 AS INTEGER)] AS list, CAST(hash(i, 9) % 4 AS VARCHAR) AS illness, 'unseen' AS secret
        FROM range(300) AS r(i)
    """)
    release = mask(connection, "['age']", ", keep => ['ward', 'list'], sensitive => ['illness']", k=5)
    assert release["not_released"] == ["id", "secret"]
    columns = [row[:2] for row in connection.execute("DESCRIBE v").fetchall()]
    assert columns == [
        ("age", "VARCHAR"), ("age_min", "INTEGER"), ("age_max", "INTEGER"), ("ward", "INTEGER"),
        ("list", "INTEGER[]"), ("illness", "VARCHAR"),
    ]  # fmt: skip
    shown = Counter(map(str, connection.execute("SELECT ward, list, illness FROM v").fetchall()))
    assert shown == Counter(map(str, connection.execute("SELECT ward, list, illness FROM t").fetchall()))
    inside = connection.execute("""
        SELECT count(*) FROM t JOIN kanon_private.members_1 ON key_0 = t.id JOIN kanon_private.classes_1 AS c USING (class)
        WHERE t.age BETWEEN c.quasi_identifier_0_min AND c.quasi_identifier_0_max
    """).fetchall()
    assert inside == [(300,)]


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ("i", "stand in fewer than 3 rows"),
        ("CASE WHEN i = 5 THEN '-0.0' ELSE '0.0' END::DOUBLE", "stand in fewer than 3 rows"),
        ("age * 2", "determines the quasi-identifier age"),
        ("age // 10", "is determined by the quasi-identifier age"),
    ],
)
def test_linkable_kept_columns_are_refused(connection: duckdb.DuckDBPyConnection, kept: str, words: str) -> None:
    connection.execute(
        f"CREATE TABLE t AS SELECT i AS id, age, {kept} AS kept FROM (SELECT i, CAST(hash(i) % 30 AS INTEGER) AS age FROM range(600) AS r(i))"
    )
    with pytest.raises(duckdb.Error, match=words):
        mask(connection, "['age']", ", keep => ['kept']", k=3)
    release = mask(connection, "['age']", ", keep => ['kept'], allow_unsafe_keep => ['kept']", k=3)
    assert any("kept is released unchanged although" in warning for warning in release["warnings"])


def test_names_that_need_quoting(connection: duckdb.DuckDBPyConnection) -> None:
    hostile = 'x"; DROP TABLE t; --'
    quoted = '"' + hostile.replace('"', '""') + '"'
    connection.execute(
        f'CREATE TABLE t AS SELECT i AS id, i AS "order", i % 3 AS {quoted}, i % 2 AS "class", i % 2 AS "größe 😀" FROM range(20) AS r(i)'
    )
    literal = hostile.replace("'", "''")
    connection.execute(
        f"CALL kanon.create_masked_view('{literal}', source => 't', key => 'id', k => 2, "
        f"quasi_identifiers => {{'order': 'numeric', {quoted}: 'flat'}}, sensitive => ['class', 'größe 😀'])"
    )
    assert len(connection.execute(f"FROM {quoted}").fetchall()) == 20
    [(name,)] = connection.execute("SELECT name FROM kanon.masked_views").fetchall()
    for verb in ("check", "quality"):
        connection.execute(f"FROM kanon.{verb}('{literal}')").fetchall()
    asked = name.replace("'", "''")
    assert len(connection.execute(f"FROM kanon.as_of('{asked}', 1)").fetchall()) == 20
    connection.execute(f"CALL kanon.drop_masked_view('{literal}')")
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(20,)]


def test_very_many_quasi_identifiers_warn(connection: duckdb.DuckDBPyConnection) -> None:
    flags = ", ".join(f"hash(i, {n}) % 2 = 0 AS f{n}" for n in range(200))
    connection.execute(f"CREATE TABLE t AS SELECT i AS id, {flags} FROM range(1000) AS r(i)")
    names = ", ".join(f"'f{n}'" for n in range(200))
    release = mask(connection, f"[{names}]", k=5)
    assert release["k_achieved"] >= 5
    assert any("200 quasi-identifiers leave little to tell" in warning for warning in release["warnings"])


def test_a_release_that_fails_its_model_is_never_visible(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method that breaks its promise of k is caught by the check of what readers would see."""
    import numpy as np

    from kanon_duck.clustering.result import Clustering
    from kanon_duck.maintenance import from_scratch

    every_row_by_itself = Clustering(np.arange(20))
    monkeypatch.setattr(from_scratch, "cluster", lambda call, settings, microdata: every_row_by_itself)
    connection.execute("CREATE TABLE t AS SELECT i AS id, i AS age FROM range(20) AS r(i)")
    with pytest.raises(duckdb.Error, match="class of 1 rows where k is 2: nothing was released"):
        mask(connection, "['age']", ", secure => false")
    with pytest.raises(duckdb.Error, match="people without a certificate.*nothing is released"):
        mask(connection, "['age']")
    assert connection.execute("FROM kanon.masked_views").fetchall() == []
    assert connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name = 'v'").fetchall() == [(0,)]


def test_age_of_a_release_is_recorded_in_utc(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, i AS age FROM range(20) AS r(i)")
    released_at = mask(connection, "['age']")["released_at"]
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    assert now - datetime.timedelta(minutes=5) < released_at <= now


def test_names_that_differ_beyond_ascii_are_different(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        'CREATE TABLE t AS SELECT i AS id, i % 5 AS q, \'secret\' || (i % 4) AS "Ä", i % 2 AS "ä" FROM range(40) AS r(i)'
    )
    release = mask(connection, "['q']", ", sensitive => ['ä']", k=5)
    assert release["not_released"] == ["id", "Ä"]
    assert "secret" not in str(connection.execute("FROM v").fetchall())


def test_check_speaks_of_what_readers_query(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, i AS age FROM range(20) AS r(i)")
    mask(connection, "['age']")
    connection.execute("CREATE OR REPLACE VIEW v AS FROM t")
    with pytest.raises(duckdb.Error, match="v was dropped or replaced: readers do not see its release"):
        connection.execute("FROM kanon.check('v')").fetchall()
    connection.execute("CALL kanon.drop_masked_view('v')")
    assert connection.execute("SELECT count(*) FROM v").fetchall() == [(20,)], "the owner's view stays"


def test_a_source_that_calls_a_procedure_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, i AS age FROM range(20) AS r(i)")
    mask(connection, "['age']")
    connection.execute("CREATE VIEW nested AS SELECT 1 AS id, 1 AS age FROM kanon.check('v')")
    with pytest.raises(duckdb.Error, match="a source cannot call a procedure"):
        connection.execute(
            "CALL kanon.create_masked_view('w', source => 'nested', key => 'id', k => 2, quasi_identifiers => ['age'])"
        )
    assert connection.execute("SELECT passed FROM kanon.check('v')").fetchall() == [(True,)]


def test_ends_of_domains(connection: duckdb.DuckDBPyConnection) -> None:
    """An end between two values moves outward, and an interval around a domain of one point shows the root."""
    connection.execute("CREATE TABLE t AS SELECT i AS id, i AS age FROM range(9) AS r(i)")
    mask(connection, "{'age': {'domain': [0.6, 8.4]}}", k=3)
    [(settings_in_force,)] = connection.execute("SELECT quasi_identifiers FROM kanon.masked_views").fetchall()
    assert '"domain": ["0", "9"]' in settings_in_force
    connection.execute("CALL kanon.drop_masked_view('v')")
    mask(connection, "{'age': {'domain': [5, 5]}}", k=9)
    assert set(connection.execute("FROM v").fetchall()) == {("*", None, None)}


def test_a_step_beyond_the_type_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, CAST(100 + i AS TINYINT) AS age FROM range(27) AS r(i)")
    with pytest.raises(duckdb.Error, match="age.step is 50: a multiple of it next to the values does not fit TINYINT"):
        mask(connection, "{'age': {'step': 50}}")


def test_quality_of_nothing_but_nulls(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS id, CAST(NULL AS INTEGER) AS q FROM range(5) AS r(i)")
    mask(connection, "['q']")
    assert connection.execute("SELECT information_loss, root_share FROM kanon.quality('v')").fetchall() == [(0, 0)]

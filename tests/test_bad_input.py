"""Every wrong argument gets one sentence with the argument, the value and what to do; nothing is changed."""

from __future__ import annotations

import duckdb
import pytest

PEOPLE = """
CREATE TABLE people (id INTEGER, age INTEGER, city VARCHAR, income DOUBLE, born DATE, note VARCHAR, age_min INTEGER);
INSERT INTO people SELECT i, 20 + i, chr(CAST(65 + i % 3 AS INTEGER)), i * 1.5, DATE '2000-01-01' + CAST(i AS INTEGER), 'n' || i, i
FROM range(12) AS r(i);
CREATE TABLE few AS FROM people LIMIT 4;
CREATE TABLE empty AS FROM people LIMIT 0;
CALL kanon.create_hierarchy('city', levels => 'SELECT * FROM (VALUES (''A'', ''AB'', ''*''), (''B'', ''AB'', ''*''))');
CALL kanon.create_hierarchy('note', prefix => 2);
CALL kanon.create_hierarchy('tens', intervals => [10]);
"""


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(PEOPLE)
    return connection


def snapshot(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """All tables and views with their sizes."""
    return connection.execute(
        "SELECT schema_name, table_name, estimated_size FROM duckdb_tables() UNION ALL "
        "SELECT schema_name, view_name, 0 FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()


def create(**changes: str | None) -> str:
    """A call of create_masked_view that works, with some options changed or left out."""
    options = {
        "source": "'people'",
        "key": "'id'",
        "k": "3",
        "quasi_identifiers": "{'age': 'numeric'}",
    } | changes
    given = ", ".join(f"{name} => {value}" for name, value in options.items() if value is not None)
    return f"CALL kanon.create_masked_view('masked', {given})"


CASES = [
    (create(), None),
    # sources
    (create(source=None), "source is missing"),
    (create(source="'nobody'"), "nobody"),
    (create(source="'SELECT * FROM people; DROP TABLE people'"), "one"),
    (create(source="'DROP TABLE people'"), "a table, a view or one SELECT"),
    (create(source="'UPDATE people SET age = 1'"), "a table, a view or one SELECT"),
    (create(source="'INSERT INTO people FROM few; FROM people'"), "a table, a view or one SELECT"),
    (create(source="'my people'"), "no table or view my people"),
    (create(source="'people.csv'"), "or a SELECT, as FROM 'people.csv' is of a file"),
    (create(source="'SELECT *, random() AS r FROM people'"), "random"),
    (create(source="'SELECT * FROM nobody'"), "nobody"),
    (create(source="'SELECT * FROM people WHERE age > getvariable(''least'')'"), "the query uses getvariable(), which"),
    (create(source="7"), "source is 7"),
    # keys
    (create(key=None), "key is missing"),
    (create(key="'city'"), "key city is not unique"),
    (create(key="'idd'"), "did you mean id"),
    (create(key="'x'", source="'SELECT *, NULL AS x FROM people'"), "key x is NULL in 12 rows"),
    # quasi-identifiers
    (create(quasi_identifiers=None), "quasi_identifiers is missing"),
    (create(quasi_identifiers="[]"), "quasi_identifiers is missing"),
    (create(quasi_identifiers="['aeg']"), "did you mean age"),
    (create(quasi_identifiers="['age', 'AGE']"), "twice"),
    (create(quasi_identifiers="{'city': 'numeric'}"), "declare it flat or with a hierarchy"),
    (create(quasi_identifiers="{'city': 'nowhere'}"), "nowhere"),
    (create(quasi_identifiers="{'age': 'number'}"), "did you mean numeric"),
    (create(quasi_identifiers="{'age': {'type': 'NUMERICAL', 'step': 5}}"), "did you mean numeric"),
    (create(quasi_identifiers="{'city': 'Flatt'}"), "did you mean flat"),
    (create(quasi_identifiers="{'city': 'ctiy'}"), "did you mean city"),
    (create(quasi_identifiers="{'city': 'xyz'}"), "there are numeric, flat, city"),
    (create(quasi_identifiers="{'city': 'city'}"), "'C' (4 rows)"),
    (create(quasi_identifiers="{'city': 'city'}"), "extend the hierarchy or"),
    (create(quasi_identifiers="['note']"), "a longer prefix, as in prefix => 3, or"),
    (create(quasi_identifiers="{'note': 'tens'}"), "levels or edges or correct the source"),
    (create(quasi_identifiers="{'age': {'type': 'numeric', 'stpe': 5}}"), "'stpe'"),
    (create(quasi_identifiers="{'age': {'type': 'numeric', 'step': 0}}"), "step is 0"),
    (create(quasi_identifiers="{'age': {'type': 'numeric', 'domain': [50, 20]}}"), "lower end first"),
    (create(quasi_identifiers="{'age': {'type': 'numeric', 'domain': [50]}}"), "two ends"),
    (create(quasi_identifiers="{'city': {'type': 'flat', 'step': 2}}"), "step is for numeric"),
    (create(quasi_identifiers="{'income': 'numeric'}"), "income.step is missing"),
    (create(quasi_identifiers="{'income': {'type': 'numeric', 'step': 1e-20}}"), "coarser"),
    (create(quasi_identifiers="{'age': 'numeric'}", source="'SELECT * REPLACE (CAST(''nan'' AS DOUBLE) AS income) FROM people'"), None),
    (create(quasi_identifiers="{'income': {'step': 1}}", source="'SELECT * REPLACE (CAST(''nan'' AS DOUBLE) AS income) FROM people'"), "NaN"),
    (create(quasi_identifiers="{'born': {'step': '1 month'}}"), "fixed length"),
    (create(quasi_identifiers="{'age': 'numeric', 'age_min': 'numeric'}"), "age_min"),
    (create(quasi_identifiers="7"), "quasi_identifiers is 7"),
    # roles
    (create(sensitive="['age']"), "a column has one role"),
    (create(sensitive="['nothing']"), "sensitive names 'nothing'"),
    (create(sensitive="{'city': 'nowhere'}"), "nowhere"),
    (create(sensitive="{'city': 'numeric'}"), "there are flat, city"),
    (create(keep="['note']"), "allow_unsafe_keep"),
    (create(keep="['note']", allow_unsafe_keep="['note']"), None),
    (create(allow_unsafe_keep="['note']"), "allow_unsafe_keep names 'note'"),
    (create(keep="['age_min']", allow_unsafe_keep="['age_min']"), "age_min"),
    # models
    (create(k=None), "k is missing"),
    (create(k="1"), "at least 2"),
    (create(k="0"), "at least 2"),
    (create(k="-3"), "at least 2"),
    (create(k="'five'"), "'five'"),
    (create(k="2.5"), "2.5"),
    (create(k="13"), "largest possible k is 12"),
    (create(source="'few'", k="10"), "largest possible k is 4"),
    (create(source="'empty'", k="2"), "only 0 rows"),
    # other options
    (create(method="'K_Member'"), None),
    (create(method="'magic'"), "one of"),
    (create(method="'greedy_pk'"), "p is missing"),
    (create(method_options="{'speed': 11}"), "'speed'"),
    (create(method_options="{'next_seed': 'nearest'}"), "next_seed"),
    (create(weights="{'age': 0}"), "weights.age"),
    (create(weights="{'age': 1e-300}"), "weights.age"),
    (create(weights="{'age': 1e-6}", effort="1e-9"), None),
    (create(effort="'hevy'"), "effort is 'hevy': it must be one of light, medium, heavy, or a number of seconds"),
    (create(source="'SELECT *, TIMESTAMP ''294247-01-10 04:00:54.775806'' AS late FROM people'", quasi_identifiers="['late']"), "quasi_identifiers.late.step is left to its default: a multiple of it"),
    (create(weights="MAP {'age': 2, 'AGE': 3}"), "weights names age twice"),
    (create(quasi_identifiers="{'city': 'flat'}", source="'SELECT * REPLACE (''*'' AS city) FROM people'"), "stands for the root"),
    (create(weights="{'city': 1}"), "quasi-identifier"),
    (create(seed="-1"), "seed is -1"),
    (create(secure="'yes'"), "true or false"),
    (create(l="3"), "sensitive names no column"),
    (create(p="2"), "sensitive names no column"),
    (create(alpha="0.5"), "sensitive names no column"),
    (create(unit="'nobody'"), "unit names"),
    (create(maintenance="'static'"), "not secure"),
    (create(derive_from="'x'"), "derive_from names 'x', but there is no such masked view"),
    (create(maintenance="'incremental'", patience="3", capture="'DIFF'", on_delete="'retire'"), None),
    (create(source="'SELECT *, age AS Kanon_Class FROM people'", quasi_identifiers="['Kanon_Class']"), "quasi_identifiers names kanon_class, which is a column of kanon_duck's own"),
    (create(source="'SELECT *, city AS kanon_from_release FROM people'", sensitive="['kanon_from_release']"), "sensitive names kanon_from_release"),
    (create(source="'SELECT *, city AS kanon_to_release FROM people'", keep="['kanon_to_release']"), "keep names kanon_to_release"),
    # names of views
    ("CALL kanon.create_masked_view('people', source => 'people', key => 'id', k => 3, quasi_identifiers => ['age'])", "is a table already"),
    ("CALL kanon.create_masked_view('no.such', source => 'people', key => 'id', k => 3, quasi_identifiers => ['age'])", "schema"),
    ("CALL kanon.create_masked_view('', source => 'people', key => 'id', k => 3, quasi_identifiers => ['age'])", "view_name is empty"),
    ("CALL kanon.create_masked_view(NULL, source => 'people', key => 'id', k => 3, quasi_identifiers => ['age'])", "view_name is missing"),
    # other verbs
    ("CALL kanon.drop_masked_view('nobody')", "nobody"),
    ("FROM kanon.check('nobody')", "nobody"),
    ("FROM kanon.quality('nobody')", "nobody"),
    ("FROM kanon.explain('nobody', key => 1)", "nobody"),
    ("FROM kanon.as_of('nobody', 1)", "no masked view nobody: FROM kanon.masked_views"),
    ("FROM kanon.as_of('it''s \"no\" view', 1)", "no masked view it's \"no\" view: FROM kanon.masked_views"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "words"), CASES, ids=[f"{n}-{words}" for n, (_, words) in enumerate(CASES)])
def test_a_wrong_argument_is_told_and_changes_nothing(
    people: duckdb.DuckDBPyConnection, statement: str, words: str | None
) -> None:
    before = snapshot(people)
    if words is None:
        people.execute(statement)
        assert snapshot(people) != before
        return
    with pytest.raises(duckdb.Error) as raised:
        people.execute(statement)
    message = str(raised.value)
    assert words.lower() in message.lower()
    assert "Traceback" not in message
    assert "in the statement" not in message
    assert "internal error" not in message
    assert len(message.splitlines()) == 1
    assert snapshot(people) == before


def test_checks_of_a_view_name_what_is_wrong(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(create())
    for statement, words in [
        ("FROM kanon.check('masked', release => 9)", "no release 9"),
        ("FROM kanon.check('masked', quasi_identifiers => ['city'])", "city"),
        ("FROM kanon.explain('masked')", "key is missing"),
        ("FROM kanon.check('maskde')", "did you mean masked"),
        (create(), "masked view already"),
    ]:
        with pytest.raises(duckdb.Error, match=words) as raised:
            people.execute(statement).fetchall()
        assert len(str(raised.value).splitlines()) == 1

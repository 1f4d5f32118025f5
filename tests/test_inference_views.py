"""Audit, inference channels, attacks and vulnerable rows through SQL."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from kanon_duck.inference import own_history

HIERARCHY = """CALL kanon.create_hierarchy('gender', levels => 'FROM (VALUES (''Male'', ''Person''), (''Female'', ''Person''))')"""

BYUN = """
CREATE TABLE patients AS FROM (VALUES
    (1, 21, 'Male', 1), (2, 23, 'Male', 1), (3, 52, 'Male', 1), (4, 57, 'Female', 1),
    (5, 27, 'Female', 2), (6, 53, 'Male', 2), (7, 59, 'Female', 2)) AS t(id, age, gender, first_release);
CREATE TABLE figure_2 AS FROM (VALUES
    ('[21 - 25]', 21, 25, 'Male', 'Asthma'), ('[21 - 25]', 21, 25, 'Male', 'Flu'),
    ('[50 - 60]', 50, 60, 'Person', 'Alzheimer'), ('[50 - 60]', 50, 60, 'Person', 'Diabetes'))
    AS t(age, age_min, age_max, gender, diagnosis);
CREATE TABLE figure_4 AS FROM (VALUES
    ('[21 - 30]', 21, 30, 'Person', 'Asthma'), ('[21 - 30]', 21, 30, 'Person', 'Flu'),
    ('[21 - 30]', 21, 30, 'Person', 'Cancer'), ('[51 - 55]', 51, 55, 'Male', 'Alzheimer'),
    ('[51 - 55]', 51, 55, 'Male', 'Heart Disease'), ('[56 - 60]', 56, 60, 'Female', 'Flu'),
    ('[56 - 60]', 56, 60, 'Female', 'Diabetes')) AS t(age, age_min, age_max, gender, diagnosis);
"""

AUDIT = """kanon.audit(releases => ['figure_2', 'figure_4'], population => 'patients', key => 'id',
    quasi_identifiers => {'age': 'numeric', 'gender': 'gender'}, sensitive => ['diagnosis'], l => 2)"""

VIEW = """CALL kanon.create_masked_view('masked', source => 'people', key => 'id', quasi_identifiers => ['age'],
    sensitive => ['disease'], k => 3, l => 2, secure => false)"""


@pytest.fixture
def byun(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Figures 1 to 4 of Byun et al. 2006."""
    connection.execute(BYUN)
    connection.execute(HIERARCHY)
    return connection


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A masked view of forty people."""
    connection.execute(
        "CREATE TABLE people AS SELECT i AS id, 20 + (i * 7) % 41 AS age, "
        "['flu', 'asthma', 'gout', 'acne'][1 + (i * 7 + i // 5) % 4] AS disease FROM range(1, 41) AS t(i)"
    )
    connection.execute(VIEW)
    return connection


def findings(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


@pytest.mark.surface
def test_the_patients_of_the_paper(byun: duckdb.DuckDBPyConnection) -> None:
    """Alice has cancer, Bob has Alzheimer, and three more records are vulnerable: those of ages 53, 57 and 59."""
    channels = findings(
        byun,
        "SELECT age, kind, candidates, required, regexp_extract(evidence, 'left: (.*)', 1) AS what, compatibility "
        f"FROM (SELECT *, unnest(keys) AS key FROM {AUDIT}) JOIN patients ON id = CAST(key AS INTEGER) ORDER BY age",
    )
    assert channels == [
        (27, "absent before", 1, 2, "Cancer", ["more general"]),
        (52, "in both", 1, 2, "Alzheimer", ["overlapping"]),
        (53, "absent before", 1, 2, "Heart Disease", ["overlapping"]),
        (57, "in both", 1, 2, "Diabetes", ["overlapping"]),
        (59, "absent before", 1, 2, "Flu", ["overlapping"]),
    ]
    assert findings(byun, f"SELECT sum(victims) FROM {AUDIT}") == [(5,)]


def test_a_class_in_pieces_tells_though_every_set_of_the_paper_is_diverse(byun: duckdb.DuckDBPyConnection) -> None:
    byun.execute(
        "CREATE TABLE three AS FROM (VALUES (0, 1, 1), (1, 2, 1), (2, 8, 1), (3, 8, 2), (4, 9, 2)) AS t(id, age, first_release)"
    )
    byun.execute(
        "CREATE TABLE before AS SELECT '*' AS age, NULL::INT AS age_min, NULL::INT AS age_max, unnest(['a', 'b', 'a']) AS value"
    )
    byun.execute(
        "CREATE TABLE after AS SELECT '[1, 2]' AS age, 1 AS age_min, 2 AS age_max, unnest(['a', 'b']) AS value "
        "UNION ALL SELECT '[8, 9]', 8, 9, unnest(['a', 'c', 'b'])"
    )
    found = findings(
        byun,
        "SELECT kind, keys, evidence FROM kanon.audit(releases => ['before', 'after'], population => 'three', key => 'id', "
        "quasi_identifiers => ['age'], sensitive => 'value', l => 2)",
    )
    assert found == [
        ("complement", ["2"], "release 1: age * holds 2 x a, b; release 2: age [8, 9] holds a, b, c; left: a")
    ]


def test_audits_that_cannot_be_made_say_why(byun: duckdb.DuckDBPyConnection) -> None:
    for change, message in {
        "releases => ['figure_2', 'figure_4']|releases => ['figure_2', 'nothing']": "no table or view nothing",
        "sensitive => ['diagnosis']|sensitive => ['disease']": "disease",
        "l => 2|l => 1": "l is 1: it must be at least 2",
        ", l => 2|": "k and l are missing",
        "key => 'id'|key => 'gender'": "Male",
        "population => 'patients'|population => 'SELECT * EXCLUDE (first_release) FROM patients'": "first_release",
        "population => 'patients'|population => 'SELECT * REPLACE (age + 40 AS age) FROM patients'": "covers the person",
    }.items():
        old, new = change.split("|")
        assert old in AUDIT
        with pytest.raises(duckdb.Error, match=message):
            findings(byun, f"FROM {AUDIT.replace(old, new)}")


@pytest.mark.surface
def test_a_refresh_counts_whom_it_gives_away(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("INSERT INTO people VALUES (100, 33, 'acne'), (101, 50, 'flu')")
    [(release, vulnerable)] = findings(people, "SELECT release, vulnerable_rows FROM kanon.refresh('masked')")
    assert release == 2
    rows = findings(people, "SELECT DISTINCT unnest(keys) AS key FROM kanon.inference_channels('masked') ORDER BY key")
    assert len(rows) == vulnerable > 0
    assert {"100", "101"} <= {key for (key,) in rows}
    assert findings(people, "SELECT release, vulnerable_rows FROM kanon.releases") == [(1, 0), (2, vulnerable)]
    people.execute("CALL kanon.forget('masked', before_release => 2)")
    assert (
        findings(people, "SELECT DISTINCT unnest(keys) AS key FROM kanon.inference_channels('masked') ORDER BY key")
        == rows
    ), "what readers can no longer read is still counted"


def test_counting_as_releases_come_is_counting_all_at_once(people: duckdb.DuckDBPyConnection) -> None:
    changes = [
        "DELETE FROM people WHERE id IN (5, 7); UPDATE people SET disease = 'flu' WHERE id = 11",
        "INSERT INTO people SELECT 200 + i, 21 + i * 9, 'acne' FROM range(4) AS t(i); UPDATE people SET age = 60 WHERE id = 3",
        "INSERT INTO people VALUES (5, 55, 'acne'), (7, 28, 'gout')",
        "DELETE FROM people WHERE id BETWEEN 20 AND 23",
    ]
    for change in changes:
        people.execute(change)
        [(counted,)] = findings(people, "SELECT vulnerable_rows FROM kanon.refresh('masked')")
        [(all_at_once,)] = findings(
            people, "SELECT count(DISTINCT key) FROM (SELECT unnest(keys) AS key FROM kanon.inference_channels('masked')) "
            "JOIN people ON id = CAST(key AS INTEGER)"
        )  # fmt: skip
        assert all_at_once >= counted > 0
        assert counted >= 0.9 * all_at_once
    [(rebuilt,)] = findings(people, "SELECT vulnerable_rows FROM kanon.rebuild('masked')")
    assert rebuilt >= counted


def test_who_leaves_takes_the_history_along_and_who_returns_is_known_again(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("DELETE FROM people WHERE age >= 50")
    people.execute("CALL kanon.refresh('masked')")
    kept = findings(people, "SELECT count(DISTINCT (reader_class, from_release)) FROM kanon_private.stays_1")[0][0]
    assert findings(people, "SELECT count(*) FROM kanon_private.versions_1") == [(kept,)]
    with_living = "SELECT count(*) FROM kanon_private.versions_1 WHERE quasi_identifier_0_min < 50"
    assert findings(people, with_living) == [(kept,)], "of classes of people above 50 nobody is left"
    number = "system.main.hash((SELECT salt FROM kanon_private.salt), system.main.hash(key_0, sensitive_0))"
    person = f"(SELECT {number} AS person FROM kanon_private.members_1 WHERE key_0 = 1)"
    [(first,)] = findings(people, person)
    for change in ("DELETE FROM people WHERE id = 1", "INSERT INTO people VALUES (1, 27, 'acne')",
                   "UPDATE people SET age = 38 WHERE id = 1", "UPDATE people SET disease = 'gout' WHERE id = 1"):  # fmt: skip
        people.execute(change)
        people.execute("CALL kanon.refresh('masked')")
        if "DELETE" not in change:
            assert (findings(people, person) == [(first,)]) == ("disease" not in change)
    assert findings(people, f"SELECT count(*) >= 3 FROM kanon_private.stays_1 WHERE person = {first}") == [(True,)]


def test_what_an_intruder_learns_of_one_person(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("INSERT INTO people VALUES (100, 33, 'acne'), (101, 50, 'flu')")
    people.execute("CALL kanon.refresh('masked')")
    for exact in ("false", "true"):
        rows = findings(people, f"FROM kanon.attack('masked', victim => {{'id': 100}}, exact => {exact})")
        assert rows == [(2, 4, "disease", ["acne"], [1.0], "release 1 and release 2 compared")]
    first, second = findings(people, "FROM kanon.attack('masked', victim => {'id': 12})")
    assert (first[0], first[5], second[0], second[5]) == (1, "the class in release 1", 2, None)
    assert sum(first[4]) == pytest.approx(1)
    with pytest.raises(duckdb.Error, match="that of 2 people"):
        findings(people, "FROM kanon.attack('masked', victim => {'age': 33})")
    with pytest.raises(duckdb.Error, match="nobody"):
        findings(people, "FROM kanon.attack('masked', victim => {'id': 999})")
    with pytest.raises(duckdb.Error, match="victim is missing"):
        findings(people, "FROM kanon.attack('masked')")


def test_several_views_over_one_source_are_one_series(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(VIEW.replace("'masked'", "'other'").replace("k => 3", "k => 4, independent => true"))
    assert findings(people, "FROM kanon.inference_channels('masked')") == []
    assert findings(people, "FROM kanon.inference_channels('other')") == []
    both = findings(people, "SELECT kind, required, evidence FROM kanon.inference_channels(['masked', 'other'])")
    assert both
    assert "masked release 1" in both[0][2]
    people.execute(
        VIEW.replace("'masked'", "'third'")
        .replace("sensitive => ['disease'], ", "")
        .replace("l => 2", "independent => true")
    )
    with pytest.raises(duckdb.Error, match="only views that agree in these are one series"):
        findings(people, "FROM kanon.inference_channels(['masked', 'third'])")


def test_people_without_a_key_are_not_followed(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(
        VIEW.replace("'masked'", "'keyless'")
        .replace("key => 'id', ", "")
        .replace("k => 3", "k => 3, independent => true")
    )
    people.execute("INSERT INTO people VALUES (100, 33, 'acne')")
    assert findings(people, "SELECT vulnerable_rows FROM kanon.refresh('keyless')") == [(None,)]
    with pytest.raises(duckdb.Error, match="keyless has no key"):
        findings(people, "FROM kanon.inference_channels('keyless')")


def test_too_many_people_are_not_counted_and_the_release_says_so(
    people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed = "SELECT vulnerable_rows, warnings FROM kanon.refresh('masked')"
    with monkeypatch.context() as limited:
        limited.setattr(own_history, "MOST_PEOPLE", 3)
        people.execute("DELETE FROM people WHERE id % 9 = 0")
        [(vulnerable, warnings)] = people.execute(refreshed).fetchall()
        assert vulnerable is None
        assert own_history.NOT_COUNTED in warnings
    people.execute("DELETE FROM people WHERE id = 1")
    [(vulnerable, warnings)] = people.execute(refreshed).fetchall()
    assert vulnerable > 0, "what the release that was not counted gave away is counted with the next"
    assert own_history.NOT_COUNTED not in warnings

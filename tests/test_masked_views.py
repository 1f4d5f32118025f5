"""Masked views through the SQL surface: the contract's example, what readers see, what is remembered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import kanon_duck

pytestmark = pytest.mark.surface

HOSPITAL = """
CREATE TABLE hospital (id INTEGER, zip VARCHAR, gender VARCHAR, age INTEGER, disease VARCHAR, expense INTEGER);
INSERT INTO hospital VALUES
    (1,'75275','Male',22,'Flu',100), (2,'75277','Male',23,'Cancer',3000), (3,'75278','Male',24,'HIV+',5000),
    (4,'75275','Male',33,'Diabetes',2500), (5,'75275','Female',38,'Diabetes',2800),
    (6,'75275','Female',36,'Diabetes',2600);
CALL kanon.create_hierarchy('zip', prefix => 5);
"""

MASK_HOSPITAL = """
CALL kanon.create_masked_view('hospital_masked', source => 'hospital', key => 'id', k => 3,
     quasi_identifiers => {'zip': 'zip', 'gender': 'flat', 'age': 'numeric'}, sensitive => ['disease'])
"""

HOSPITAL_MASKED = [
    ("7527*", "Male", "[22, 24]", 22, 24, "Cancer"),
    ("7527*", "Male", "[22, 24]", 22, 24, "Flu"),
    ("7527*", "Male", "[22, 24]", 22, 24, "HIV+"),
    ("75275", "*", "[33, 38]", 33, 38, "Diabetes"),
    ("75275", "*", "[33, 38]", 33, 38, "Diabetes"),
    ("75275", "*", "[33, 38]", 33, 38, "Diabetes"),
]


@pytest.fixture
def hospital(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(HOSPITAL)
    return connection


def record(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, object]:
    """The one row of a statement, by column name."""
    result = connection.execute(statement)
    names = [column[0] for column in result.description]
    (row,) = result.fetchall()
    return dict(zip(names, row, strict=True))


def test_the_hospital_of_lin_and_wei(hospital: duckdb.DuckDBPyConnection) -> None:
    release = record(hospital, MASK_HOSPITAL)
    expected = {
        "view_name": "hospital_masked",
        "release": 1,
        "cause": "create",
        "rows": 6,
        "classes": 2,
        "k_achieved": 3,
        "l_achieved": 1,
        "max_frequency": 1.0,
        "information_loss": pytest.approx(4.9125, rel=1e-12),
        "information_loss_per_row": pytest.approx(0.81875, rel=1e-12),
        "discernibility": 18,
        "average_class_size": 1.0,
        "vulnerable_rows": 0,
        "not_released": ["id", "expense"],
        "warnings": ["disease is released without l, p, alpha or t"],
    }
    assert {name: release[name] for name in expected} == expected
    assert hospital.execute("FROM hospital_masked ORDER BY age_min, disease").fetchall() == HOSPITAL_MASKED
    assert record(hospital, "FROM kanon.releases") == release


def test_columns_and_types(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    described = [(row[0], row[1]) for row in hospital.execute("DESCRIBE hospital_masked").fetchall()]
    assert described == [
        ("zip", "VARCHAR"), ("gender", "VARCHAR"), ("age", "VARCHAR"), ("age_min", "INTEGER"),
        ("age_max", "INTEGER"), ("disease", "VARCHAR"),
    ]  # fmt: skip


def test_check_of_all_and_of_some_quasi_identifiers(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    columns = "SELECT release, requirement, attribute, required, achieved, violating_rows, passed FROM "
    assert hospital.execute(columns + "kanon.check('hospital_masked')").fetchall() == [(1, "k", None, 3, 3, 0, True)]
    subset = "kanon.check('hospital_masked', quasi_identifiers => ['GENDER'], release => 1)"
    assert hospital.execute(columns + subset).fetchall() == [(1, "k", None, 3, 3, 0, True)]


def test_quality_and_explain(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    quality = hospital.execute("FROM kanon.quality('hospital_masked')").fetchall()
    assert quality == [
        ("zip", "zip", pytest.approx(0.6), pytest.approx(0.1), 2, 0.0),
        ("gender", "flat", pytest.approx(3.0), pytest.approx(0.5), 2, 0.5),
        ("age", "numeric", pytest.approx(1.3125), pytest.approx(0.21875), 2, 0.0),
    ]
    explained = record(hospital, "FROM kanon.explain('hospital_masked', key => 4)")
    assert explained["status"] == "released"
    assert explained["class_rows"] == 3
    assert explained["generalization"] == "zip 75275, gender *, age [33, 38]"
    assert record(hospital, "FROM kanon.explain('hospital_masked', key => 99)")["status"] == "unknown"


def test_as_of(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    assert sorted(hospital.execute("FROM kanon.as_of('hospital_masked', 1)").fetchall()) == HOSPITAL_MASKED
    with pytest.raises(duckdb.Error, match="masked view hospital_masked has no release 2"):
        hospital.execute("FROM kanon.as_of('hospital_masked', 2)").fetchall()


def test_the_masked_view_does_not_follow_the_source(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    hospital.execute("DELETE FROM hospital")
    hospital.execute("DROP TABLE hospital")
    assert len(hospital.execute("FROM hospital_masked").fetchall()) == 6


def test_masked_views_lists_settings(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    listed = record(hospital, "FROM kanon.masked_views")
    assert listed["name"] == "hospital_masked"
    assert (listed["source"], listed["key"], listed["k"], listed["secure"]) == ("hospital", ["id"], 3, True)
    assert (listed["status"], listed["release"], listed["rows"], listed["waiting"]) == ("current", 1, 6, 0)
    assert listed["quasi_identifiers"] == (
        '{"zip": {"type": "zip"}, "gender": {"type": "flat"}, '
        '"age": {"type": "numeric", "step": "1", "domain": ["22", "38"]}}'
    )


def test_drop_and_make_again(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    with pytest.raises(duckdb.Error, match="hierarchy.*hospital_masked|hospital_masked.*hierarchy"):
        hospital.execute("CALL kanon.drop_hierarchy('zip')")
    hospital.execute("CALL kanon.drop_masked_view('HOSPITAL_masked')")
    assert hospital.execute("FROM kanon.masked_views").fetchall() == []
    assert hospital.execute("FROM kanon.releases").fetchall() == []
    with pytest.raises(duckdb.CatalogException):
        hospital.execute("FROM hospital_masked")
    with pytest.raises(duckdb.Error, match="source hospital had a masked view, hospital_masked.*new_series => true"):
        hospital.execute(MASK_HOSPITAL)
    again = record(hospital, MASK_HOSPITAL.rstrip().rstrip(";").rstrip(")") + ", new_series => true)")
    assert again["release"] == 1
    assert any("whoever has releases of hospital_masked can compare them" in warning for warning in again["warnings"])
    hospital.execute("CALL kanon.drop_masked_view('hospital_masked')")
    hospital.execute("CALL kanon.drop_hierarchy('zip')")


def test_a_plain_client_in_another_process_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "hospital.db"
    with kanon_duck.connect(str(path)) as connection:
        connection.execute(HOSPITAL)
        connection.execute(MASK_HOSPITAL)
    code = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
assert "kanon_duck" not in sys.modules
print(connection.execute("FROM hospital_masked ORDER BY age_min, disease").fetchall())
print(connection.execute("FROM kanon.as_of('hospital_masked', 1) ORDER BY age_min, disease").fetchall())
print(connection.execute("SELECT kanon.generalize('zip', '41076', 2), kanon.common_ancestor('zip', ['41076', '41099'])").fetchall())
print(connection.execute("SELECT kanon.overlap(20, 29, 25, 40), kanon.covers('zip', '410**', '41076')").fetchall())
try:
    connection.execute("FROM kanon.check('hospital_masked')")
except duckdb.Error as error:
    print("kanon_duck_is_not_installed_on_this_connection" in str(error))
connection.execute("ATTACH '" + sys.argv[2] + "' AS other")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "other.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == lines[1] == str(HOSPITAL_MASKED), done.stderr
    assert lines[2] == "[('410**', '410**')]"
    assert lines[3].endswith(", True)]")
    assert lines[4] == "True"


def test_an_attached_file_under_another_name_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "hospital.db"
    with kanon_duck.connect(str(path)) as connection:
        connection.execute(HOSPITAL)
        connection.execute(MASK_HOSPITAL)
    reader = duckdb.connect()
    reader.execute(f"ATTACH '{path}' AS renamed (READ_ONLY)")
    assert reader.execute("FROM renamed.hospital_masked ORDER BY age_min, disease").fetchall() == HOSPITAL_MASKED


def test_sources_of_every_kind(hospital: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    hospital.execute("CREATE VIEW young AS SELECT * FROM hospital WHERE age < 30")
    hospital.execute(f"ATTACH '{tmp_path / 'other.db'}' AS other")
    hospital.execute("CREATE TABLE other.main.patients AS FROM hospital")
    hospital.execute("CREATE SCHEMA clinic")
    hospital.execute('CREATE TABLE clinic."my patients" AS FROM hospital')
    for number, source in enumerate(
        ["hospital", "young", "SELECT * FROM hospital WHERE age > 30", "other.main.patients", 'clinic."my patients"',
         "  -- people\n WITH h AS (FROM hospital) SELECT * FROM h", "FROM hospital"]
    ):  # fmt: skip
        literal = source.replace("'", "''")
        release = record(
            hospital,
            f"CALL kanon.create_masked_view('masked_{number}', source => '{literal}', key => 'id', k => 2, independent => true, "
            "quasi_identifiers => ['zip', 'gender', 'age'])",
        )
        assert release["k_achieved"] >= 2


def test_unqualified_names_mean_the_callers_schema(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute("CREATE SCHEMA clinic; CREATE TABLE clinic.people AS FROM hospital; USE clinic")
    hospital.execute(
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 2, quasi_identifiers => ['age'])"
    )
    assert hospital.execute("SELECT name FROM kanon.masked_views").fetchall() == [("clinic.masked",)]
    assert len(hospital.execute("FROM clinic.masked").fetchall()) == 6
    assert hospital.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
    assert len(hospital.execute("FROM kanon.as_of('clinic.masked', 1)").fetchall()) == 6


def test_a_key_of_several_columns(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute("CREATE TABLE visits AS SELECT id, day, age + day AS age FROM hospital, range(3) AS days(day)")
    hospital.execute(
        "CALL kanon.create_masked_view('v', source => 'visits', key => ['id', 'day'], k => 3, quasi_identifiers => 'age')"
    )
    explained = record(hospital, "FROM kanon.explain('v', key => {'day': 2, 'id': 1})")
    assert explained["status"] == "released"
    assert explained["key"] == '{"id": "1", "day": "2"}'


def test_methods_and_their_options(hospital: duckdb.DuckDBPyConnection) -> None:
    for number, method in enumerate(
        [
            "method => 'OKA'",
            "method => 'k_member', method_options => {'next_seed': 'lin_wei'}",
            "method => 'mondrian', method_options => {'relaxed': true}",
            "method => 'top_down'",
            "method => 'threshold', method_options => {'delta': 0.25}",
            "method => 'weighted_c_means'",
            "seed => 7",
        ]
    ):
        release = record(
            hospital,
            f"CALL kanon.create_masked_view('m{number}', source => 'hospital', key => 'id', k => 2, independent => true, {method}, "
            "quasi_identifiers => ['age', 'gender'], weights => {'age': 2.5})",
        )
        assert release["k_achieved"] >= 2
    stored = hospital.execute("SELECT method_options FROM kanon.masked_views WHERE method = 'threshold'").fetchall()
    assert stored == [('{"delta": 0.25}',)]


def test_a_second_view_over_the_same_source_is_refused_unless_it_is_meant(hospital: duckdb.DuckDBPyConnection) -> None:
    hospital.execute(MASK_HOSPITAL)
    second = "CALL kanon.create_masked_view('{}', source => 'hospital', key => 'id', k => 3, {} quasi_identifiers => ['age'])"
    with pytest.raises(duckdb.Error, match="source hospital has a masked view already, hospital_masked"):
        hospital.execute(second.format("second", ""))
    assert record(hospital, second.format("third", "independent => true,"))["warnings"] == []


def test_same_seed_same_release_in_processes_with_other_hash_seeds(tmp_path: Path) -> None:
    code = """
import sys, kanon_duck
connection = kanon_duck.connect()
connection.execute("SET enable_progress_bar = false; SET threads = " + sys.argv[1])
connection.execute("CREATE TABLE p AS SELECT i AS id, CAST(hash(i) % 60 AS INTEGER) AS age, "
                   "chr(CAST(65 + hash(i, 1) % 7 AS INTEGER)) AS city, hash(i, 2) % 5 AS s FROM range(500) AS r(i)")
for method in ("k_member", "oka"):
    connection.execute(f"CALL kanon.create_masked_view('{method}', source => 'p', key => 'id', k => 4, independent => true, method => '{method}', "
                       "quasi_identifiers => {'age': 'numeric', 'city': 'flat'}, sensitive => ['s'], seed => 5)")
    print(connection.execute(f"FROM {method}").fetchall())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, threads],
            env={
                "PYTHONHASHSEED": hash_seed,
                "PATH": "",
                "PYTHONPATH": ":".join(sys.path),
                "HOME": str(tmp_path),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads, hash_seed in (("1", "1"), ("2", "77"))
    }
    assert len(outputs) == 1
    assert len(next(iter(outputs))) > 1000

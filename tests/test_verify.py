"""verify.sql finds what kanon.check finds, in plain DuckDB, from the published file alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck

pytestmark = pytest.mark.surface

PEOPLE = """
CREATE TABLE levels AS FROM (VALUES ('Flu', 'Lung', '*'), ('Asthma', 'Lung', '*'), ('Ulcer', 'Gut', '*'),
    ('Gastritis', 'Gut', '*'), ('HIV', 'Blood', '*')) AS t(leaf, parent, root);
CREATE TABLE people AS
SELECT i AS id, CASE WHEN i % 17 > 0 THEN (hash(i, 1) % 60)::INTEGER END AS age, (hash(i, 2) % 4)::VARCHAR AS city,
       ['Flu', 'Asthma', 'Ulcer', 'Gastritis', 'HIV', NULL][1 + (hash(i, 3) % 6)::INTEGER] AS disease,
       (hash(i, 4) % 20 * 100)::DECIMAL(8, 2) AS income, DATE '2020-01-01' + (hash(i, 5) % 9)::INTEGER AS visit,
       (i // 2)::INTEGER AS person
FROM range(240) AS r(i);
CALL kanon.create_hierarchy('illness', levels => 'levels')
"""

ON_DISEASE = "sensitive => ['disease']"
IN_TREE = "sensitive => {'disease': 'illness'}"

MODELS = [
    "k => 4",
    f"{ON_DISEASE}, k => 3, l => 3",
    f"{ON_DISEASE}, k => 3, entropy_l => 2.2, alpha => 0.6",
    f"{ON_DISEASE}, k => 3, recursive_cl => [2.0, 2]",
    f"{IN_TREE}, k => 3, p => 2, protected => {{'disease': ['Lung', 'Gut']}}",
    f"{IN_TREE}, k => 3, t => 0.35",
    f"{ON_DISEASE}, k => 3, t => 0.4",
    "sensitive => ['income'], k => 3, t => 0.3",
    "sensitive => ['visit', 'income'], k => 3, t => 0.4, l => 2",
]


def view(path: Path, models: str, more: str = "secure => false") -> duckdb.DuckDBPyConnection:
    connection = kanon_duck.connect(path)
    for statement in PEOPLE.split(";\n"):
        connection.execute(statement)
    connection.execute(
        f"CALL kanon.create_masked_view('masked', source => 'people', key => 'id', {models}, {more}, "
        "quasi_identifiers => ['age', 'city'])"
    )
    return connection


def in_full(statement: str, path: Path) -> list[tuple[Any, ...]]:
    """Everything that verify.sql computes, whether it holds or not."""
    assert "WHERE violating_rows > 0" in statement
    with duckdb.connect(str(path), read_only=True) as reader:
        return reader.execute(
            "SELECT requirement, attribute, required, achieved, violating_rows FROM ("
            + statement.replace("WHERE violating_rows > 0", "")
            + ") AS found ORDER BY ALL"
        ).fetchall()


def assert_as_checked(found: list[tuple[Any, ...]], checked: list[tuple[Any, ...]]) -> None:
    assert [(*each[:3], each[4]) for each in found] == [(*each[:3], each[4]) for each in checked]
    assert [each[3] for each in found] == pytest.approx([each[3] for each in checked])


CHECK = """SELECT requirement, attribute, required, achieved, violating_rows FROM kanon.check('masked')
WHERE requirement <> 'max_frequency' ORDER BY ALL"""


@pytest.mark.parametrize("models", MODELS)
def test_it_finds_what_the_check_finds(tmp_path: Path, models: str) -> None:
    with view(tmp_path / "owner.duckdb", models) as owner:
        owner.execute(f"CALL kanon.publish('masked', '{tmp_path}/bi.duckdb')")
        statement = (tmp_path / "bi.duckdb.verify.sql").read_text()
        assert_as_checked(in_full(statement, tmp_path / "bi.duckdb"), owner.execute(CHECK).fetchall())

        # the same rows gone from the file and from what the owner's readers see
        shutil.copy(tmp_path / "bi.duckdb", tmp_path / "torn.duckdb")
        columns = ", ".join(name for name, *_ in owner.execute("DESCRIBE masked").fetchall())
        gone = (
            "DELETE FROM {0} WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER "
            f"(ORDER BY {columns}) AS place FROM {{0}}) WHERE place % 3 = 0)"
        )
        with duckdb.connect(str(tmp_path / "torn.duckdb")) as torn:
            torn.execute(gone.format("masked"))
        owner.execute(gone.format("kanon_released.masked"))
        assert_as_checked(in_full(statement, tmp_path / "torn.duckdb"), owner.execute(CHECK).fetchall())


def test_one_row_less_in_a_class_of_k_is_found(tmp_path: Path) -> None:
    with view(tmp_path / "owner.duckdb", "k => 4, l => 2, sensitive => ['disease']", "secure => true") as owner:
        owner.execute(f"CALL kanon.publish('masked', '{tmp_path}/bi.duckdb')")
    statement = (tmp_path / "bi.duckdb.verify.sql").read_text()
    with duckdb.connect(str(tmp_path / "bi.duckdb")) as torn:
        assert torn.execute(statement).fetchall() == []
        torn.execute(
            "DELETE FROM masked WHERE rowid = (SELECT min(rowid) FROM masked GROUP BY age, age_min, age_max, city "
            "HAVING count(*) = 4 LIMIT 1)"
        )
        found = torn.execute(f"SELECT requirement, required, achieved, violating_rows FROM ({statement})").fetchall()
        assert ("k", 4, 3, 3) in found


def test_persons_are_not_known_to_readers(tmp_path: Path) -> None:
    models = "k => 3, l => 2, alpha => 0.6, sensitive => ['disease'], unit => 'person'"
    with view(tmp_path / "owner.duckdb", models) as owner:
        owner.execute(f"CALL kanon.publish('masked', '{tmp_path}/bi.duckdb')")
    found = in_full((tmp_path / "bi.duckdb.verify.sql").read_text(), tmp_path / "bi.duckdb")
    assert [each[0] for each in found] == ["k", "l"]
    assert all(each[4] == 0 for each in found)

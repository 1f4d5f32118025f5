"""An attached catalog as a target: one transaction, one snapshot of a DuckLake for each publication."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.people import one
from tests.publishing import change, clinic, same_rows

pytestmark = pytest.mark.surface


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with clinic(tmp_path) as connection:
        yield connection


def ducklake() -> str | None:
    """The path of DuckLake's extension for this DuckDB, from the package duckdb-extension-ducklake."""
    found = importlib.util.find_spec("duckdb_extension_ducklake")
    folder = Path(found.origin).parent if found and found.origin else Path("nowhere")
    path = folder / "extensions" / f"v{duckdb.__version__}" / "ducklake.duckdb_extension"
    return str(path) if path.is_file() else None


def test_a_table_of_another_database_holds_the_release(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    owner.execute(f"ATTACH '{tmp_path}/lake.duckdb' AS lake")
    owner.execute("CREATE SCHEMA lake.reports")
    row = one(owner, "CALL kanon.publish('patients_masked', 'LAKE.reports.patients')")
    assert (row["kind"], row["target"], row["stale"]) == ("attached", "lake.reports.patients", False)
    assert same_rows(owner, "FROM patients_masked", owner, "FROM lake.reports.patients")
    [(comment,)] = owner.execute("SELECT comment FROM duckdb_tables() WHERE database_name = 'lake'").fetchall()
    assert "kanon_duck: release 1 of masked view patients_masked" in comment
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
    assert same_rows(owner, "FROM patients_masked", owner, "FROM lake.reports.patients")
    for target, recorded in (("lake", "lake.main"), ("lake.reports", "lake.reports"), ('lake.reports."csv"', None)):
        row = one(owner, f"CALL kanon.publish('patients_masked', '{target}')")
        assert row["target"] == (recorded or target)
    assert owner.execute("SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY ALL").fetchall() == [
        ("main", "patients_masked"), ("reports", "csv"), ("reports", "patients"), ("reports", "patients_masked"),
    ]  # fmt: skip
    owner.execute("DETACH lake")
    change(owner, 2)
    owner.execute("CALL kanon.refresh('patients_masked')")
    told = owner.execute("SELECT stale, warnings[1] FROM kanon.publish_all()").fetchall()
    assert len(told) == 4
    assert all(stale and "no database of that name is attached" in warning for stale, warning in told)
    owner.execute(f"ATTACH '{tmp_path}/lake.duckdb' AS lake")
    assert owner.execute("SELECT DISTINCT release, stale FROM kanon.publish_all()").fetchall() == [(3, False)]


def test_faults_leave_the_old_table(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    publish = "CALL kanon.publish('patients_masked', '{}')"
    owner.execute(f"ATTACH '{tmp_path}/lake.duckdb' AS lake")
    owner.execute("CREATE TABLE lake.mine AS SELECT 1 AS one")
    for target, message in (
        ("lake.main.mine", "holds something that kanon_duck has not published"),
        ("lake.nowhere.patients", "was not published, and what was there stays as it was"),
        ("owner.main.patients", "is in the database of the masked views itself"),
        ("lake.a.b.c", "has 4 parts"),
        ("pond.main.patients", "no database of that name is attached"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            owner.execute(publish.format(target))
    owner.execute(publish.format("lake.main.patients"))
    owner.execute("DETACH lake")
    owner.execute(f"ATTACH '{tmp_path}/lake.duckdb' AS lake (READ_ONLY)")
    with pytest.raises(duckdb.Error, match="read-only"):
        owner.execute(publish.format("lake.main.patients"))
    assert owner.execute("SELECT count(*) FROM lake.patients").fetchall() == [(300,)]
    assert owner.execute("SELECT stale FROM kanon.publications").fetchall() == [(False,)]
    with pytest.raises(duckdb.Error, match="is the file of database lake, which is open here"):
        owner.execute(publish.format(tmp_path / "lake.duckdb"))


@pytest.mark.skipif(ducklake() is None, reason="no DuckLake for this DuckDB: pip install duckdb-extension-ducklake")
def test_a_ducklake_has_one_snapshot_for_each_publication(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    owner.execute(f"LOAD '{ducklake()}'")
    owner.execute(f"ATTACH 'ducklake:{tmp_path}/lake.ducklake' AS lake (DATA_PATH '{tmp_path}/lake')")
    [(before,)] = owner.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    owner.execute("CALL kanon.publish('patients_masked', 'lake.main.patients')")
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
    assert owner.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall() == [(before + 2,)]
    assert same_rows(owner, "FROM patients_masked", owner, "FROM lake.patients")
    first = f"FROM lake.patients AT (VERSION => {before + 1})"
    assert same_rows(owner, "FROM kanon.as_of('patients_masked', 1)", owner, first)

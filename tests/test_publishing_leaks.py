"""Nothing of the source that was not released is in what readers get: not in a byte, a statistic, a comment, an order."""

from __future__ import annotations

import struct
from pathlib import Path

import duckdb
import pytest

from kanon_duck.publishing import parquet
from tests.publishing import SECRET, clinic

pytestmark = pytest.mark.surface

STATISTICS = (
    "FROM duckdb_tables()",
    "FROM duckdb_columns()",
    "FROM duckdb_views()",
    "FROM duckdb_schemas()",
    "FROM duckdb_databases()",
    "FROM pragma_storage_info('patients_masked')",
    "SELECT "
    + ", ".join(f"stats({name})" for name in ("age_min", "income", "income_min", "address", "disease"))
    + " FROM patients_masked",
)


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """A database in whose second release some people are gone, some wait, and others have changed."""
    connection = clinic(tmp_path_factory.mktemp("owner"))
    connection.execute("SET GLOBAL force_compression = 'uncompressed'")
    connection.execute("INSERT INTO levels VALUES ('SENTINEL-leaf', 'SENTINEL-inner', '*')")
    connection.execute("CALL kanon.extend_hierarchy('work', levels => 'levels')")
    gone = f"INSERT INTO patients SELECT * REPLACE ('{SECRET}-gone-' || id AS id, '{SECRET}-gone' AS disease) FROM patients LIMIT 6"
    connection.execute(gone)
    connection.execute("CALL kanon.rebuild('patients_masked', new_series => true)")
    assert connection.execute(f"SELECT count(*) FROM patients_masked WHERE disease = '{SECRET}-gone'").fetchall() == [
        (6,)
    ]
    connection.execute("DELETE FROM patients WHERE disease = 'SENTINEL-gone'")
    connection.execute(
        "INSERT INTO patients SELECT * REPLACE ('SENTINEL-waiting-' || id AS id, 'SENTINEL-waiting' AS disease) "
        "FROM patients LIMIT 2"
    )
    connection.execute("CALL kanon.refresh('patients_masked')")
    assert connection.execute("SELECT count(*) > 0 FROM kanon.waiting('patients_masked')").fetchall() == [(True,)]
    assert connection.execute("SELECT count(*) FROM patients_masked WHERE disease LIKE 'SENTINEL%'").fetchall() == [
        (0,)
    ]
    return connection


def held_back(owner: duckdb.DuckDBPyConnection) -> list[bytes]:
    """What no byte of a published file may be part of: secret texts, and incomes that are no bound."""
    incomes = owner.execute("SELECT DISTINCT income FROM patients WHERE income % 100 > 0").fetchall()
    assert len(incomes) > 200
    return [SECRET.encode(), *(struct.pack("<i", income) for (income,) in incomes)]


def found(owner: duckdb.DuckDBPyConnection, file: Path) -> list[bytes]:
    whole = file.read_bytes()
    return [each for each in held_back(owner) if each in whole]


def test_the_search_finds_what_is_there(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    owner.execute(f"ATTACH '{tmp_path}/leak.duckdb' AS leak")
    owner.execute("CREATE TABLE leak.leak AS FROM patients")
    owner.execute("CREATE TABLE leak.other AS FROM range(10)")
    owner.execute("CHECKPOINT leak")
    owner.execute("DELETE FROM leak.leak")  # into free blocks
    owner.execute("DETACH leak")
    assert len(found(owner, tmp_path / "leak.duckdb")) > 200
    owner.execute(f"COPY patients TO '{tmp_path}/leak.parquet' (COMPRESSION uncompressed)")
    assert len(found(owner, tmp_path / "leak.parquet")) > 200


def test_a_duckdb_file_tells_nothing_else(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "bi.duckdb"
    owner.execute(f"CALL kanon.publish('patients_masked', '{file}')")
    assert found(owner, file) == found(owner, Path(f"{file}.verify.sql")) == []
    with duckdb.connect(str(file), read_only=True) as reader:
        assert {
            name
            for (name,) in reader.execute(
                "SELECT DISTINCT compression FROM pragma_storage_info('patients_masked')"
            ).fetchall()
        } <= {"Uncompressed", "Constant", "Empty Validity", "CONSTANT"}
        tables = reader.execute("SELECT format('FROM {}.{}', schema_name, table_name) FROM duckdb_tables()").fetchall()
        for query in [*STATISTICS, *(table for (table,) in tables)]:
            assert SECRET not in str(reader.execute(query).fetchall())
        columns = ", ".join(name for name, *_ in reader.execute("DESCRIBE patients_masked").fetchall())
        rows = reader.execute("FROM patients_masked").fetchall()
        assert rows == reader.execute(f"FROM patients_masked ORDER BY {columns}").fetchall()
        assert not reader.execute(
            "FROM duckdb_columns() WHERE column_name ILIKE '%kanon%' AND schema_name = 'main'"
        ).fetchall()


def test_earlier_releases_tell_of_who_was_released_and_no_lifetimes(
    owner: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    file = tmp_path / "bi.duckdb"
    owner.execute(f"CALL kanon.publish('patients_masked', '{file}', releases => 'all')")
    whole = file.read_bytes()
    assert b"SENTINEL-gone" in whole  # release 2 has shown it
    for secret in (
        b"-key-",
        b"-name-",
        b"-street-",
        b"-waiting",
        b"-comment",
        b"-leaf",
        b"-inner",
        b"from_release",
        b"to_release",
        b"kanon_class",
    ):
        assert secret not in whole
    with duckdb.connect(str(file), read_only=True) as reader:
        [(release,)] = reader.execute("SELECT release FROM kanon.published WHERE NOT is_current").fetchall()
        table = f"releases.patients_masked_{release}"
        columns = ", ".join(name for name, *_ in reader.execute(f"DESCRIBE {table}").fetchall())
        assert (
            reader.execute(f"FROM {table}").fetchall() == reader.execute(f"FROM {table} ORDER BY {columns}").fetchall()
        )


def test_parquet_and_csv_tell_nothing_else(
    owner: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "COMPRESSION", "uncompressed")
    for file in (tmp_path / "bi.parquet", tmp_path / "bi.csv"):
        owner.execute(f"CALL kanon.publish('patients_masked', '{file}')")
        assert found(owner, file) == found(owner, Path(f"{file}.verify.sql")) == []
        rows = duckdb.sql(f"FROM '{file}'")
        assert rows.fetchall() == rows.order(", ".join(rows.columns)).fetchall()
    footer = duckdb.sql(f"FROM parquet_metadata('{tmp_path}/bi.parquet')").fetchall()
    assert SECRET not in str(footer)

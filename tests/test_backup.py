"""A copy of a database, made in any of DuckDB's ways, is read by any client, and refreshes go on in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import kanon_duck
from tests.people import MASK, PEOPLE, REFRESH, assert_current, change

pytestmark = pytest.mark.surface

OTHERS = """
CREATE TABLE "my table" (id INTEGER PRIMARY KEY, note VARCHAR DEFAULT 'a;b');
INSERT INTO "my table" VALUES (1, NULL), (2, 'ß'), (3, 'x, "y"');
CREATE VIEW notes AS SELECT note FROM "my table";
CREATE MACRO twice(x) AS 2 * x;
"""
READ = """
import duckdb, sys
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    for query in ("SELECT count(*) FROM masked", "SELECT count(*) FROM kanon.as_of('masked', 1)",
                  "SELECT kanon.generalize('zip', '41076', 2)", "SELECT count(*) FROM kanon.masked_views",
                  "SELECT kanon.overlap(10, 20, 15, 30)", 'SELECT count(*), twice(2) FROM notes'):
        print(*connection.execute(query).fetchall()[0])
"""


def by_export(original: duckdb.DuckDBPyConnection, file: Path, copy: Path) -> None:
    original.execute(f"EXPORT DATABASE '{copy.parent}/exported'")
    with duckdb.connect(copy) as plain:
        plain.execute(f"IMPORT DATABASE '{copy.parent}/exported'")


def by_export_as_parquet(original: duckdb.DuckDBPyConnection, file: Path, copy: Path) -> None:
    original.execute(f"EXPORT DATABASE '{copy.parent}/exported' (FORMAT parquet)")
    with duckdb.connect(copy) as plain:
        plain.execute(f"IMPORT DATABASE '{copy.parent}/exported'")


def by_export_into_ours(original: duckdb.DuckDBPyConnection, file: Path, copy: Path) -> None:
    original.execute(f"EXPORT DATABASE '{copy.parent}/exported'")
    with kanon_duck.connect(str(copy)) as ours:
        [row] = ours.execute(f"CALL kanon.import_database('{copy.parent}/exported')").fetchall()
        assert row == (f"{copy.parent}/exported", 1, 1)
        change(ours, 11)  # it goes on in the same process
        assert ours.execute(REFRESH).fetchall()[0][3] == "refresh"
        ours.execute("CREATE OR REPLACE TABLE people AS FROM people WHERE false")
        with pytest.raises(duckdb.Error, match="has masked already"):
            ours.execute(f"CALL kanon.import_database('{copy.parent}/exported')")
    copy.unlink()
    with kanon_duck.connect(str(copy)) as ours:
        ours.execute(f"CALL kanon.import_database('{copy.parent}/exported')")


def by_copy_from_database(original: duckdb.DuckDBPyConnection, file: Path, copy: Path) -> None:
    original.execute(f"ATTACH '{copy}' AS copied; COPY FROM DATABASE original TO copied; DETACH copied")


def by_file(original: duckdb.DuckDBPyConnection, file: Path, copy: Path) -> None:
    original.execute("CHECKPOINT")
    shutil.copy(file, copy)


WAYS = [by_export, by_export_as_parquet, by_export_into_ours, by_copy_from_database, by_file]


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_readable_everywhere_and_refreshed_on(
    tmp_path: Path, way: Callable[[duckdb.DuckDBPyConnection, Path, Path], None]
) -> None:
    file, copy = tmp_path / "original.db", tmp_path / "copy.db"
    with kanon_duck.connect(str(file)) as original:
        original.execute(OTHERS + PEOPLE.format(300))
        original.execute("CALL kanon.create_hierarchy('zip', prefix => 5)")
        original.execute(MASK)
        change(original, 1)
        original.execute(REFRESH)
        way(original, file, copy)
        expected = original.execute("FROM masked ORDER BY ALL").fetchall()
        notes = original.execute("FROM notes").fetchall()
    read = subprocess.run([sys.executable, "-c", READ, str(copy)], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    assert read.stdout.splitlines() == [str(len(expected)), "300", "410**", "1", "0.5", "3 4"]
    with kanon_duck.connect(str(copy)) as connection:
        assert connection.execute("FROM masked ORDER BY ALL").fetchall() == expected
        assert connection.execute("FROM notes").fetchall() == notes
        assert connection.execute(REFRESH).fetchall()[0][3] == "unchanged"
        assert_current(connection)
        change(connection, 2)
        assert connection.execute(REFRESH).fetchall()[0][3] == "refresh"
        assert_current(connection)
        connection.execute("CALL kanon.refresh_all()").fetchall()
        connection.execute("CALL kanon.rebuild('masked', k => 6)")
        connection.execute("CALL kanon.drop_masked_view('masked')")


def test_a_verb_of_an_imported_database_says_in_a_foreign_client_what_is_missing(tmp_path: Path) -> None:
    with kanon_duck.connect(str(tmp_path / "original.db")) as original:
        original.execute(f"EXPORT DATABASE '{tmp_path}/exported'")
    with duckdb.connect() as plain:
        plain.execute(f"IMPORT DATABASE '{tmp_path}/exported'")
        for call in ("CALL kanon.refresh('masked')", "CALL kanon.refresh_all()", "FROM kanon.check('masked')"):
            with pytest.raises(duckdb.Error, match="kanon.duck.is.not.installed.on.this.connection"):
                plain.execute(call).fetchall()


def test_what_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    with duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE t AS SELECT 1 AS a; EXPORT DATABASE '{tmp_path}/plain'")
    with kanon_duck.connect(str(tmp_path / "original.db")) as original:
        original.execute(PEOPLE.format(30))
        original.execute(f"EXPORT DATABASE '{tmp_path}/ours'")
    with kanon_duck.connect(":memory:") as connection:
        for folder, words in [("nowhere", "no schema.sql is"), ("plain", "IMPORT DATABASE imports it")]:
            with pytest.raises(duckdb.Error, match=words):
                connection.execute(f"CALL kanon.import_database('{tmp_path}/{folder}')")
        connection.execute(f"IMPORT DATABASE '{tmp_path}/plain'")
        connection.execute("CREATE TABLE people (a INTEGER)")
        with pytest.raises(duckdb.Error, match="people"):
            connection.execute(f"CALL kanon.import_database('{tmp_path}/ours')")
        assert connection.execute("SELECT count(*) FROM kanon.masked_views").fetchall() == [(0,)]

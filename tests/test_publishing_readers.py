"""Stock clients read what was published, in processes of their own, and get the answers of the masked view."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import psycopg
import pytest
import sqlalchemy

from tests.postgresql import PASSWORD, binaries, server
from tests.publishing import clinic

READS = int(os.environ.get("KANON_DUCK_READS", "60"))
"""How often the file is opened and read while it is published again and again; 10,000 once by hand."""

QUERIES = [query for query in (Path(__file__).parent / "clients" / "queries.sql").read_text().split(";\n") if query]

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with clinic(tmp_path_factory.mktemp("owner")) as connection:
        yield connection


@pytest.fixture(scope="module")
def file(owner: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bi")
    for name in ("bi.duckdb", "bi.parquet"):
        owner.execute(f"CALL kanon.publish('patients_masked', '{folder / name}')")
    return folder / "bi.duckdb"


@pytest.fixture(scope="module")
def url(owner: duckdb.DuckDBPyConnection) -> Iterator[str]:
    if binaries() is None:
        pytest.skip("no PostgreSQL server: install postgresql")
    with server() as (found, _), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        owner.execute(f"CALL kanon.publish('patients_masked', '{found}')")
        yield found


def plain(value: Any) -> Any:
    """A value as every client can have it."""
    return None if value is None or value != value else int(value) if not isinstance(value, str) else value


def answers(run: Callable[[str], list[Row]]) -> list[list[Row]]:
    return [[tuple(map(plain, row)) for row in run(query)] for query in QUERIES]


def test_ten_queries_have_the_answers_of_the_masked_view(owner: duckdb.DuckDBPyConnection, file: Path) -> None:
    expected = answers(lambda query: owner.execute(query).fetchall())
    assert len(expected) == 10
    assert sum(map(len, expected)) > 50
    with duckdb.connect(str(file), read_only=True) as reader:
        assert answers(lambda query: reader.execute(query).fetchall()) == expected
        assert (
            answers(lambda query: list(zip(*reader.execute(query).to_arrow_table().to_pydict().values(), strict=True)))
            == expected
        )
        assert answers(lambda query: reader.sql(query).pl().rows()) == expected
    frames = polars.SQLContext(patients_masked=polars.read_parquet(file.with_suffix(".parquet")))
    assert frames.execute("SELECT count(*) AS people FROM patients_masked", eager=True).rows() == expected[0]
    engine = sqlalchemy.create_engine(f"duckdb:///{file}", connect_args={"read_only": True})
    with engine.connect() as connection:
        assert answers(lambda query: connection.execute(sqlalchemy.text(query)).fetchall()) == expected
        assert (
            answers(lambda query: list(pandas.read_sql(query, connection).itertuples(index=False, name=None)))
            == expected
        )
    engine.dispose()


def test_postgresql_has_the_answers_of_the_masked_view(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    expected = answers(lambda query: owner.execute(query).fetchall())
    with psycopg.connect(url) as reader:
        assert answers(lambda query: reader.execute(query).fetchall()) == expected
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        assert answers(lambda query: connection.execute(sqlalchemy.text(query)).fetchall()) == expected
        assert (
            answers(lambda query: list(pandas.read_sql(query, connection).itertuples(index=False, name=None)))
            == expected
        )
    reflected = sqlalchemy.Table("patients_masked", sqlalchemy.MetaData(), autoload_with=engine)
    assert reflected.c.age_min.comment == "lower end of the interval"
    engine.dispose()


def test_sqlalchemy_reflects_a_published_file(owner: duckdb.DuckDBPyConnection, file: Path) -> None:
    engine = sqlalchemy.create_engine(f"duckdb:///{file}", connect_args={"read_only": True})
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names(schema="main") == ["patients_masked"]
    comment = inspector.get_table_comment("patients_masked")["text"]
    assert comment is not None
    assert comment.startswith("kanon_duck: release 1")
    reflected = sqlalchemy.Table("patients_masked", sqlalchemy.MetaData(), autoload_with=engine)
    assert {column.name: str(column.type) for column in reflected.columns} == {
        name: kind for name, kind, *_ in owner.execute("DESCRIBE patients_masked").fetchall()
    }
    with engine.connect() as connection:
        count = sqlalchemy.select(sqlalchemy.func.count()).select_from(reflected).where(reflected.c.age_min < 40)
        assert connection.execute(count).scalar_one() > 0
    engine.dispose()


READ = """
import sys, duckdb
for number in range(int(sys.argv[2])):
    with duckdb.connect(sys.argv[1], read_only=True) as reader:
        release = reader.execute("SELECT release FROM kanon.published").fetchall()
        found = reader.execute("SELECT count(*), bit_xor(hash(age, zip, work, disease)) FROM patients_masked").fetchall()
        print(*release[0], *found[0], flush=True)
"""


def test_each_read_sees_one_whole_release_while_others_are_published(tmp_path: Path) -> None:
    with clinic(tmp_path) as owner:
        shown = "SELECT count(*), bit_xor(hash(age, zip, work, disease)) FROM patients_masked"
        owner.execute(f"CALL kanon.publish('patients_masked', '{tmp_path}/bi.duckdb')")
        owner.execute("CREATE TABLE first_patients AS FROM patients LIMIT 30")
        releases = {(1, *owner.execute(shown).fetchall()[0])}
        with (tmp_path / "read").open("w+") as output:
            reading = subprocess.Popen([sys.executable, "-c", READ, f"{tmp_path}/bi.duckdb", str(READS)], stdout=output)
            number = 0
            while reading.poll() is None:
                number += 1
                owner.execute(f"DELETE FROM patients WHERE hash(id, {number}) % 10 = 0")
                owner.execute(f"INSERT INTO patients SELECT * REPLACE (id || '-{number}' AS id) FROM first_patients")
                [(release,)] = owner.execute(
                    "SELECT release FROM kanon.refresh('patients_masked', publish => true)"
                ).fetchall()
                releases.add((release, *owner.execute(shown).fetchall()[0]))
            assert reading.returncode == 0
            output.seek(0)
            seen = [tuple(map(int, line.split())) for line in output]
    assert len(seen) == READS
    assert set(seen) <= releases
    assert [release for release, *_ in seen] == sorted(release for release, *_ in seen)
    assert len(set(seen)) > 1

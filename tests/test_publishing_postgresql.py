"""PostgreSQL as a target: one transaction, whatever belongs to the table stays, and no password is ever shown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from psycopg import sql

from tests.people import one
from tests.postgresql import PASSWORD, binaries, server
from tests.publishing import SECRET, change, clinic

pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server: install postgresql")


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[str, Path]]:
    with server() as found:
        yield found


@pytest.fixture
def url(running: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, whose password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with psycopg.connect(running[0], autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bi")
        connection.execute("CREATE DATABASE bi")
    return running[0].replace("/postgres", "/bi")


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with clinic(tmp_path) as connection:
        yield connection


@pytest.mark.surface
def test_a_table_holds_the_release(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    row = one(owner, f"CALL kanon.publish('patients_masked', '{url}')")
    assert (row["kind"], row["target"], row["rows"], row["warnings"]) == ("postgresql", url, 300, [])
    with psycopg.connect(url) as reader:
        columns = dict(
            reader.execute(
                "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'patients_masked' "
                "ORDER BY ordinal_position"
            ).fetchall()
        )
        assert columns == {
            "age": "text", "age_min": "integer", "age_max": "integer", "income": "text", "income_min": "bigint",
            "income_max": "bigint", "address": "text", "zip": "text", "work": "text", "disease": "text",
        }  # fmt: skip
        names = ", ".join(columns)
        rows = reader.execute("SELECT * FROM patients_masked").fetchall()
        assert rows == owner.execute(f"FROM patients_masked ORDER BY {names}").fetchall()  # in no other order
        comment = "SELECT obj_description('patients_masked'::regclass), col_description('patients_masked'::regclass, 8)"
        table, column = reader.execute(comment).fetchall()[0]
        assert "kanon_duck: release 1 of masked view patients_masked" in table
        assert column == "quasi-identifier: the common label of the class in hierarchy zip"


@pytest.mark.surface
def test_values_of_every_type_arrive(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    owner.execute(
        """
        CREATE TYPE mood AS ENUM ('well', 'ill');
        CREATE TABLE typed AS
        SELECT i AS id, i % 2 AS age, i % 2 = 0 AS a, (i % 2)::TINYINT AS b, (i % 2)::UBIGINT AS c, (i % 2)::HUGEINT AS d,
               (i % 2 / 3)::FLOAT AS e, [1e300, 'nan'::DOUBLE][1 + i % 2] AS f, (i % 2 / 4)::DECIMAL(9, 3) AS g,
               ['', NULL][1 + i % 2] AS h, ['a"b, c' || chr(10) || 'd\\', 'ü'][1 + i % 2] AS i,
               DATE '1999-12-31' + (i % 2)::INTEGER AS j, TIMESTAMP '2020-01-01 01:02:03.000004' AS k,
               TIMESTAMPTZ '2020-01-01 01:02:03+05' AS l, TIME '01:02:03' AS m, '\\xAA\\x00'::BLOB AS n,
               '00000000-0000-0000-0000-00000000000' || (i % 2) AS o, [i % 2, 7] AS p, ['well', 'ill'][1 + i % 2]::mood AS q
        FROM range(40) AS r(i)
        """
    )
    letters = [*"abcdefghijklmnopq"]
    owner.execute(
        "CALL kanon.create_masked_view('typed_masked', source => 'SELECT * REPLACE (o::UUID AS o) FROM typed', key => 'id', "
        f"k => 5, quasi_identifiers => ['age'], keep => {letters}, allow_unsafe_keep => {letters})"
    )
    owner.execute(f"CALL kanon.publish('typed_masked', '{url}')")
    asked = (
        "SELECT a::text, b, c::text, d::text, e::text, f::text, g::text, h, i, j::text, k::text, l = '2020-01-01 01:02:03+05', "
        "m::text, {n}, o::text, {p}, q FROM typed_masked ORDER BY a"
    )
    with psycopg.connect(url) as reader:
        found = reader.execute(asked.format(n="encode(n, 'hex')", p="p")).fetchall()
    expected = owner.execute(asked.format(n="lower(hex(n))", p="p::text")).fetchall()
    for one_way, other in zip(found[-1], expected[-1], strict=True):
        assert one_way == other or float(one_way) == pytest.approx(float(other), rel=1e-6, nan_ok=True)
    assert {row[7] for row in found} == {"", None}
    assert {row[8] for row in found} == {'a"b, c\nd\\', "ü"}


def test_what_belongs_to_the_table_stays(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    owner.execute(f"CALL kanon.publish('patients_masked', '{url}')")
    with psycopg.connect(url, autocommit=True) as admin:
        for statement in (
            "DROP ROLE IF EXISTS reader",
            "CREATE ROLE reader",
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
            "GRANT SELECT ON patients_masked TO reader WITH GRANT OPTION",
            "GRANT SELECT (age), UPDATE (zip) ON patients_masked TO PUBLIC",
            "CREATE INDEX by_zip ON patients_masked (zip)",
            'CREATE VIEW "by Zip" WITH (security_barrier = true) AS SELECT zip, count(*) AS n FROM patients_masked GROUP BY 1',
            'CREATE VIEW twice AS SELECT n * 2 AS n FROM "by Zip"',
            'GRANT SELECT ON "by Zip" TO reader',
            "COMMENT ON VIEW twice IS 'of an analyst'",
        ):
            admin.execute(statement)
        privileges = (
            "SELECT relacl::text FROM pg_class WHERE relname = ANY(ARRAY['patients_masked', 'by Zip']) ORDER BY relname",
            "SELECT attname, attacl::text FROM pg_attribute WHERE attrelid = 'patients_masked'::regclass "
            "AND attacl IS NOT NULL ORDER BY attname",
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'patients_masked'",
            "SELECT reloptions FROM pg_class WHERE relname = 'by Zip'",
            "SELECT obj_description('twice'::regclass)",
        )
        before = [admin.execute(query).fetchall() for query in privileges]
        change(owner)
        owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
        [(rows,)] = owner.execute("SELECT count(*) FROM patients_masked").fetchall()
        assert rows != 300
        assert [admin.execute(query).fetchall() for query in privileges] == before
        assert admin.execute("SELECT sum(n) FROM twice").fetchall() == [(2 * rows,)]
        assert admin.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'kanon%'").fetchall() == [(0,)]
        for made, dropped, lost in (
            ("CREATE MATERIALIZED VIEW kept AS SELECT * FROM patients_masked", "DROP MATERIALIZED VIEW kept", "kept"),
            (
                "ALTER TABLE patients_masked ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE patients_masked DISABLE ROW LEVEL SECURITY",
                "row security",
            ),
        ):
            admin.execute(made)
            with pytest.raises(duckdb.Error, match=f"{lost}, which would be lost"):
                owner.execute(f"CALL kanon.publish('patients_masked', '{url}')")
            admin.execute(dropped)
        owner.execute(f"CALL kanon.publish('patients_masked', '{url}')")


def test_readers_see_one_release_or_the_other(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    owner.execute(f"CALL kanon.publish('patients_masked', '{url}')")
    releases = {owner.execute("SELECT count(*), sum(age_min) FROM patients_masked").fetchall()[0]}
    seen, errors, done = [], [], threading.Event()

    def read() -> None:
        with psycopg.connect(url, autocommit=True) as reader:
            while not done.is_set():
                try:
                    seen.append(reader.execute("SELECT count(*), sum(age_min) FROM patients_masked").fetchone())
                except psycopg.Error as error:
                    errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(4):
        change(owner, number)
        owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
        releases |= set(owner.execute("SELECT count(*), sum(age_min) FROM patients_masked").fetchall())
    done.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(seen) > 100
    assert set(seen) <= releases


def test_faults_leave_the_old_table(
    owner: duckdb.DuckDBPyConnection, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    call = "CALL kanon.publish('patients_masked', '{}')"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE TABLE patients_masked (one integer)")
        with pytest.raises(duckdb.Error, match="holds something that kanon_duck has not published"):
            owner.execute(call.format(url))
        admin.execute("DROP TABLE patients_masked")
        owner.execute(call.format(url))
        change(owner)
        owner.execute("CALL kanon.refresh('patients_masked')")

        from kanon_duck.publishing import postgresql

        monkeypatch.setattr(postgresql, "WAIT", "100ms")
        with psycopg.connect(url) as locking:
            locking.execute("SELECT count(*) FROM patients_masked")
            with pytest.raises(
                duckdb.Error, match="was not published, and what was there stays.*somebody has used the table"
            ):
                owner.execute(call.format(url))
        read_only = f"{url}?options=-cdefault_transaction_read_only%3Don"
        with pytest.raises(duckdb.Error, match="read-only transaction"):
            owner.execute(call.format(read_only))
        with pytest.raises(duckdb.Error, match="search path names no schema"):
            owner.execute(call.format(f"{url}?options=-csearch_path%3Dnowhere"))
        with pytest.raises(duckdb.Error, match="Connection refused|failed"):
            owner.execute(call.format("postgresql://owner@127.0.0.1:1/bi"))
        assert admin.execute("SELECT count(*) FROM patients_masked").fetchall() == [(300,)]
        assert owner.execute("SELECT release, stale FROM kanon.publish_all()").fetchall() == [(2, False)]
        admin.execute("CREATE SCHEMA reports")
        owner.execute(call.format(f"{url}?options=-csearch_path%3Dreports"))
        assert admin.execute("SELECT count(*) > 0 FROM reports.patients_masked").fetchall() == [(True,)]
    assert PASSWORD not in caplog.text


def test_passwords_reach_no_table_and_no_message(
    owner: duckdb.DuckDBPyConnection,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.delenv("PGPASSWORD")
    typed = url.replace("owner@", f"owner:{PASSWORD.replace('%', '%25')}@")
    row = one(owner, f"CALL kanon.publish('patients_masked', '{typed}')")
    assert row["target"] == url
    assert "the password in the target is not kept" in row["warnings"][0]
    change(owner)
    [(warnings,)] = owner.execute("SELECT warnings FROM kanon.refresh('patients_masked', publish => true)").fetchall()
    assert "set PGPASSWORD" in warnings[-1]
    told = [row, warnings]
    for wrong in (
        url.replace("owner@", "owner:SECRET-word%25@"),
        url.replace("owner@127.0.0.1", "owner:SECRET-word@nowhere.invalid"),
        f"{url}?password=SECRET-word",
        f"{url}?password=SECRET-word&nonsense=1",
        url.replace("owner@", "owner:SECRET-word@").replace(":1", ":x1"),
        "mysql://me:SECRET-word@host/db",
        "host=localhost password=SECRET-word",
    ):
        with pytest.raises(duckdb.Error) as refused:
            owner.execute(f"CALL kanon.publish('patients_masked', '{wrong}')")
        assert "target" in str(refused.value)
        told.append(str(refused.value))
    assert "SECRET-word" not in str(told)
    assert PASSWORD not in str(told)
    password_file = tmp_path / "pgpass"
    password_file.write_text(f"*:*:*:*:{PASSWORD}\n")
    password_file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(password_file))
    assert owner.execute("SELECT release, stale FROM kanon.publish_all()").fetchall() == [(2, False)]
    owner.execute("CHECKPOINT")
    for word in (PASSWORD, PASSWORD.replace("%", "%25"), "SECRET-word"):
        assert word not in caplog.text
        assert word.encode() not in (tmp_path / "owner.duckdb").read_bytes()


def test_files_and_statistics_of_the_server_tell_nothing_else(
    owner: duckdb.DuckDBPyConnection, url: str, running: tuple[str, Path]
) -> None:
    owner.execute(
        "INSERT INTO patients SELECT * REPLACE ('SENTINEL-w' || id AS id, 'SENTINEL-w' AS disease) FROM patients LIMIT 2"
    )
    owner.execute("CALL kanon.refresh('patients_masked')")
    owner.execute(f"CALL kanon.publish('patients_masked', '{url}')")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CHECKPOINT")
        [(file,)] = admin.execute("SELECT pg_relation_filepath('patients_masked')").fetchall()
        whole = (running[1] / file).read_bytes()
        assert b"Asthma" in whole
        assert SECRET.encode() not in whole
        statistics = str(admin.execute("SELECT * FROM pg_stats WHERE schemaname = 'public'").fetchall())
        assert "Asthma" in statistics
        assert SECRET not in statistics
        catalogs = admin.execute("SELECT description FROM pg_description JOIN pg_class ON oid = objoid").fetchall()
        assert SECRET not in str(catalogs)


def test_names_are_quoted_or_refused(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    owner.execute('CREATE TABLE odd AS SELECT i AS id, i % 3 AS "a ""b"" %s; DROP" FROM range(30) AS r(i)')
    name = 'x"; DROP TABLE t; --%s'
    owner.execute(
        "CALL kanon.create_masked_view(?, source => 'odd', key => 'id', k => 5, quasi_identifiers => [?])",
        [name, 'a "b" %s; DROP'],
    )
    owner.execute("CALL kanon.publish(?, ?)", [name, url])
    owner.execute("CALL kanon.publish(?, ?)", [name, url])
    with psycopg.connect(url) as reader:
        assert reader.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))).fetchall() == [(30,)]
    owner.execute("CREATE TABLE odd2 AS SELECT * FROM odd")
    long = "long" * 20
    owner.execute(
        "CALL kanon.create_masked_view(?, source => 'odd2', key => 'id', k => 5, quasi_identifiers => [?])",
        [long, 'a "b" %s; DROP'],
    )
    with pytest.raises(duckdb.Error, match="is longer than the 63 bytes"):
        owner.execute("CALL kanon.publish(?, ?)", [long, url])


def test_tables_of_other_calls_stay_and_are_kept_up_to_date(owner: duckdb.DuckDBPyConnection, url: str) -> None:
    owner.execute("CREATE TABLE staff AS SELECT i AS id, 20 + i % 9 AS age FROM range(40) AS r(i)")
    owner.execute(
        "CALL kanon.create_masked_view('staff_masked', source => 'staff', key => 'id', k => 4, quasi_identifiers => ['age'])"
    )
    owner.execute(f"CALL kanon.publish('patients_masked', '{url}')")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE TABLE staff_masked (one integer)")
        with pytest.raises(duckdb.Error, match="holds something that kanon_duck has not published"):
            owner.execute(f"CALL kanon.publish('staff_masked', '{url}')")
        admin.execute("DROP TABLE staff_masked")
    for view in ("patients_masked", "staff_masked"):
        assert one(owner, f"CALL kanon.publish('{view}', '{url}')")["view_name"] == view
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    listed = "SELECT view_name, release, stale FROM kanon.publish_all()"
    assert owner.execute(listed).fetchall() == [("patients_masked", 2, False), ("staff_masked", 1, False)]
    owner.execute("CALL kanon.drop_masked_view('staff_masked')")
    change(owner, 2)
    [(warnings,)] = owner.execute("SELECT warnings FROM kanon.refresh('patients_masked', publish => true)").fetchall()
    assert "staff_masked, which was dropped, stays in the target as it was" in warnings

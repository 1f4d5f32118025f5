"""Databases of earlier catalog versions are upgraded, whole or not at all, and readers notice nothing."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck
from kanon_duck import installation
from kanon_duck.catalog import migrations
from kanon_duck.installation import CATALOG_VERSION
from tests.fixtures.make_catalog_fixture import FOLDER, KEYED, MASK, change_and_refresh, fill, fill_with_triggers

HAS_TRIGGERS = duckdb.__version__ >= "2"
NEEDS_TRIGGERS = pytest.mark.skipif(not HAS_TRIGGERS, reason="DuckDB has triggers from 2.0 on")
FIXTURES = [
    path.name for path in sorted(FOLDER.glob("catalog_*.duckdb")) if HAS_TRIGGERS or "triggers" not in path.name
]

STEPS = {
    CATALOG_VERSION + 1: """-- settings remember a reserve, and members a slot

CREATE TABLE kanon_private.new_settings AS SELECT *, 0.25 AS made_up_reserve FROM kanon_private.settings;
DROP TABLE kanon_private.settings;
ALTER TABLE kanon_private.new_settings RENAME TO settings;
CREATE TABLE kanon_private.made_up_counts (name VARCHAR, ended_rows BIGINT);

-- for each: SELECT view_number, name FROM kanon_private.masked_views WHERE dropped_at IS NULL
CREATE TABLE kanon_private.made_up_{view_number} AS SELECT *, 1 AS slot FROM kanon_private.members_{view_number};
INSERT INTO kanon_private.made_up_counts
SELECT (SELECT max(name) FROM kanon_private.masked_views WHERE view_number = {view_number}), count(*) FROM kanon_history.{name};
-- end

-- for each: SELECT view_number FROM kanon_private.masked_views WHERE name = 'there is none'
DROP TABLE {view_number};
-- end
UPDATE kanon_private.settings SET made_up_reserve = 0.5 WHERE secure;
""",
    CATALOG_VERSION + 2: """-- masked views remember who made them.
ALTER TABLE kanon_private.masked_views ADD COLUMN made_up_owner VARCHAR DEFAULT 'nobody';
-- for each: SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'made!_up!_%' ESCAPE '!' AND column_count > 2
DROP TABLE kanon_private.{table_name};
-- end
""",
}
"""Made-up steps that follow those there are; they take a database to `LATER`."""

LATER = CATALOG_VERSION + 2


@pytest.fixture(params=FIXTURES)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A copy of a database of an earlier version, or of this one."""
    return shutil.copy(FOLDER / request.param, tmp_path)


@pytest.fixture
def one_old(tmp_path: Path) -> str:
    """A copy of the oldest of these databases."""
    return shutil.copy(FOLDER / FIXTURES[0], tmp_path)


def write_steps(folder: Path, steps: dict[int, str]) -> None:
    """Put the steps that there are into a folder, and others."""
    shutil.copytree(migrations.FOLDER, folder)
    for number, text in steps.items():
        (folder / f"{number:04}_made_up.sql").write_text(text)


Upgrader = Callable[[dict[int, str]], None]


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upgrader:
    """Make this kanon_duck one of a later version, given the steps to it."""
    real = migrations.FOLDER

    def use(steps: dict[int, str]) -> None:
        monkeypatch.setattr(migrations, "FOLDER", real)
        folder = tmp_path / f"migrations_{len(list(tmp_path.iterdir()))}"
        write_steps(folder, steps)
        monkeypatch.setattr(migrations, "FOLDER", folder)
        monkeypatch.setattr(installation, "CATALOG_VERSION", max(steps, default=CATALOG_VERSION))

    return use


def readings(path: str) -> dict[str, list[Any]]:
    """What readers see with DuckDB alone: every masked view, every release, and a view of theirs on a masked one."""
    with duckdb.connect(path, read_only=True) as connection:
        releases = connection.execute("SELECT view_name, release FROM kanon.releases").fetchall()
        firsts = dict(connection.execute("SELECT name, first_release FROM kanon_private.masked_views").fetchall())
        read = {
            f"{name} {release}": connection.execute("FROM kanon.as_of(?, ?) ORDER BY ALL", [name, release]).fetchall()
            for name, release in releases
            if release >= firsts[name]
        }
        views = connection.execute(
            "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND schema_name NOT LIKE 'kanon%'"
        ).fetchall()
        for schema, view in views:
            name = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, view))
            read[name] = connection.execute(f"FROM {name} ORDER BY ALL").fetchall()
    return read


def contents(path: str) -> dict[str, Any]:
    """Everything that kanon_duck has written, and what its views and macros are."""
    with duckdb.connect(path, read_only=True) as connection:
        written: dict[str, Any] = {}
        for schema, table in connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name LIKE 'kanon%'"
        ).fetchall():
            name = table.replace('"', '""')
            query = f'SELECT count(*), sum(CAST(hash(t) AS HUGEINT)) FROM "{schema}"."{name}" AS t'
            written[f"{schema}.{table}"] = connection.execute(query).fetchall()
        written["columns"] = columns(connection)
        written["views"] = connection.execute(
            "SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        written["macros"] = connection.execute(
            "SELECT schema_name, function_name, macro_definition FROM duckdb_functions() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
    return written


def sizes(written: dict[str, Any]) -> dict[str, Any]:
    """The same with the number of rows of each table alone."""
    return {name: part[0][0] if "." in name else part for name, part in written.items()}


def columns(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], list[Any]]:
    """Names, types, defaults of the columns of each table of ours, in their order, and whether they can be NULL."""
    found: dict[tuple[str, str], list[Any]] = {}
    for schema, table, *column in connection.execute(
        "SELECT schema_name, table_name, column_name, data_type, is_nullable, column_default FROM duckdb_columns() "
        "WHERE schema_name LIKE 'kanon%' ORDER BY schema_name, table_name, column_index"
    ).fetchall():
        found.setdefault((schema, table), []).append(column)
    return found


def version_of(path: str) -> int:
    with duckdb.connect(path, read_only=True) as connection:
        [(version,)] = connection.execute("SELECT version FROM kanon_private.catalog").fetchall()
    return version


def live_views(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM kanon.masked_views").fetchall()]


def assert_checked(connection: duckdb.DuckDBPyConnection) -> None:
    """What readers see of every masked view satisfies its models."""
    for view in live_views(connection):
        checks = connection.execute("SELECT requirement, passed FROM kanon.check(?)", [view]).fetchall()
        assert checks
        assert all(passed for _, passed in checks), (view, checks)


@pytest.mark.parametrize("steps", [pytest.param({}, marks=pytest.mark.surface), STEPS], ids=["present", "later"])
def test_an_upgraded_database_reads_as_before_and_goes_on(old: str, later: Upgrader, steps: dict[int, str]) -> None:
    before = readings(old)
    later(steps)
    with kanon_duck.connect(old) as connection:
        assert_checked(connection)
    assert version_of(old) == max(steps, default=CATALOG_VERSION)
    assert readings(old) == before
    with kanon_duck.connect(old) as connection:
        kept = [view for view in KEYED if view in live_views(connection)]
        waiting = connection.execute("SELECT key FROM kanon.waiting('masked') ORDER BY ALL").fetchall()
        assert waiting[0] == ("1500",)
        explained = connection.execute("SELECT status, reason FROM kanon.explain('masked', key => 1500)").fetchall()
        assert explained == [("waiting", "zip '410331' has no leaf in hierarchy zip")]
        noted = {
            view: dict(connection.execute("SELECT change, rows FROM kanon.pending(?)", [view]).fetchall())
            for view in kept
        }
        assert all(noted[view]["insert"] == 16 for view in kept), noted
        last = dict(connection.execute("SELECT name, release FROM kanon.masked_views").fetchall())
        change_and_refresh(connection, 5, kept)
        connection.execute("UPDATE patients SET zip = '41007' WHERE id = 1500")
        for view in kept:
            [(cause, release)] = connection.execute("SELECT cause, release FROM kanon.refresh(?)", [view]).fetchall()
            expected = ("refresh", last[view] + 2) if "'zip'" in KEYED[view] else ("unchanged", last[view] + 1)
            assert (cause, release) == expected
            assert connection.execute("SELECT sum(rows) FROM kanon.pending(?)", [view]).fetchall() == [(0,)]
        assert ("1500",) not in connection.execute("SELECT key FROM kanon.waiting('masked')").fetchall()
        assert_checked(connection)
        refresh_secure_view(connection)
        connection.execute("UPDATE patients SET zip = left(zip, 5)")  # a rebuild lets nobody wait
        connection.execute("CALL kanon.rebuild('masked', k => 4)")
    after = readings(old)
    releases = [name for name in before if re.search(r" \d+$", name)]
    assert len(releases) >= 3
    for release in releases:
        assert after[release] == before[release], release
    with kanon_duck.connect(old) as connection:
        connection.execute("CALL kanon.drop_masked_view('masked')")
        connection.execute(MASK.format("masked", "patients", KEYED["masked"]))
        assert_checked(connection)


@pytest.mark.surface
def test_the_private_history_knows_the_same_people(old: str) -> None:
    person = "hash((SELECT salt FROM kanon_private.salt), hash(key_0, sensitive_0, kept_0))"
    with kanon_duck.connect(old) as connection:
        for known in ("stays_1", "vulnerable_1"):
            [(people, members)] = connection.execute(
                f"SELECT count(DISTINCT person), count(DISTINCT person) FILTER (person IN (SELECT {person} FROM kanon_private.members_1)) "
                f"FROM kanon_private.{known}"
            ).fetchall()
            assert people > members > 0.5 * people  # the others have left, or have another diagnosis


@pytest.mark.surface
def test_readers_with_duckdb_alone_go_on_reading_during_an_upgrade(one_old: str, later: Upgrader) -> None:
    later(STEPS)
    with duckdb.connect(one_old) as plain:
        readers = [plain.cursor(), plain.cursor()]
        readers[0].execute("BEGIN")
        seen = [reader.execute("FROM masked ORDER BY ALL").fetchall() for reader in readers]
        plain.execute("BEGIN")
        plain.execute("UPDATE patients SET name = 'somebody' WHERE id = 7")
        kanon_duck.connect(one_old).close()
        plain.execute("COMMIT")
        assert [reader.execute("FROM masked ORDER BY ALL").fetchall() for reader in readers] == seen
        readers[0].execute("COMMIT")
        assert readers[0].execute("FROM kanon.as_of('masked', 1)").fetchall()
        [(release,)] = readers[0].execute("SELECT release FROM kanon.masked_views WHERE name = 'masked'").fetchall()
        now = readers[0].execute("FROM kanon.as_of('masked', ?) ORDER BY ALL", [release]).fetchall()
        assert now == seen[0] == seen[1]
    assert version_of(one_old) == LATER


@pytest.mark.parametrize("filled", [fill, pytest.param(fill_with_triggers, marks=NEEDS_TRIGGERS)])
def test_an_upgraded_database_has_the_tables_of_a_new_one(
    tmp_path: Path, filled: Callable[[duckdb.DuckDBPyConnection], None]
) -> None:
    triggers = filled is fill_with_triggers
    with kanon_duck.connect(":memory:") as connection:
        filled(connection)
        refresh_secure_view(connection)
        new, new_views = columns(connection), known_views(connection)
    for name in [name for name in FIXTURES if ("triggers" in name) == triggers]:
        with kanon_duck.connect(shutil.copy(FOLDER / name, tmp_path)) as connection:
            refresh_secure_view(connection)
            upgraded, views = columns(connection), known_views(connection)
        later_views = dict(new_views - views)  # those that a version after this one has added to `fill`
        of_views = {
            (schema, table)
            for schema, table in new
            if table in later_views
            or re.fullmatch(r"[a-z]+_\d+", table)
            and table.split("_")[1] in later_views.values()
        }
        assert upgraded == {table: new[table] for table in new if table not in of_views}


def refresh_secure_view(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a release of the secure masked view, if it is there: some of its tables may be made only now."""
    if "careful" in live_views(connection):
        connection.execute("DELETE FROM staff WHERE id = 7")
        connection.execute("INSERT INTO staff SELECT 1000 + i, 30 + i, 'Linz' FROM range(12) AS numbers(i)")
        [(cause,)] = connection.execute("SELECT cause FROM kanon.refresh('careful')").fetchall()
        assert cause == "refresh"
        assert_checked(connection)


def known_views(connection: duckdb.DuckDBPyConnection) -> set[tuple[str, str]]:
    """Names and numbers of all masked views."""
    query = "SELECT name, view_number::VARCHAR FROM kanon_private.masked_views"
    return {(name, number) for name, number in connection.execute(query).fetchall()}


def test_every_version_has_a_fixture_and_a_step() -> None:
    versions = range(3, CATALOG_VERSION + 1)
    kept = {path.name for path in FOLDER.glob("*.duckdb")}
    for version in list(versions)[:-1]:  # that of the present one is kept when it is released
        assert kept >= {f"catalog_{version}.duckdb", f"catalog_{version}_triggers.duckdb"}
    steps = sorted(path.name for path in migrations.FOLDER.glob("*.sql"))
    assert [int(name[:4]) for name in steps] == list(versions)[1:]


# How a step is written


@pytest.mark.surface
def test_statements_for_each_row(one_old: str, later: Upgrader) -> None:
    with duckdb.connect(one_old) as connection:
        connection.execute("CREATE MACRO main.max(value) AS 'a macro of the owner'")
        numbers = connection.execute(
            "SELECT view_number FROM kanon_private.masked_views WHERE dropped_at IS NULL ORDER BY ALL"
        ).fetchall()
        names = connection.execute("SELECT name FROM kanon.masked_views ORDER BY ALL").fetchall()
    later({CATALOG_VERSION + 1: STEPS[CATALOG_VERSION + 1]})
    with kanon_duck.connect(one_old) as connection:
        made = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'made_up_%' AND table_name <> 'made_up_counts'"
        ).fetchall()
        assert sorted(int(name.removeprefix("made_up_")) for (name,) in made) == [number for (number,) in numbers]
        assert connection.execute("SELECT name FROM kanon_private.made_up_counts ORDER BY ALL").fetchall() == names
        reserves = connection.execute("SELECT DISTINCT secure, made_up_reserve FROM kanon.masked_views ORDER BY ALL")
        assert reserves.fetchall() == [(False, 0.25), (True, 0.5)]
    later(STEPS)
    with kanon_duck.connect(one_old) as connection:
        made = connection.execute("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'made_up_%'").fetchall()
        assert made == [("made_up_counts",)]


# What people hear


def test_an_upgrade_is_told_once(one_old: str, later: Upgrader, caplog: pytest.LogCaptureFixture) -> None:
    kanon_duck.connect(one_old).close()
    caplog.clear()
    later(STEPS)
    for path in (one_old, one_old, ":memory:"):
        kanon_duck.connect(path).close()
    [told] = caplog.records
    assert (told.name, told.levelname) == ("kanon_duck.installation", "WARNING")
    name = Path(one_old).stem
    assert told.getMessage() == (
        f"kanon_duck has upgraded database {name} from catalog version {CATALOG_VERSION} to {LATER} (settings remember a "
        "reserve, and members a slot; masked views remember who made them). Its masked views and releases are as "
        "before; an earlier kanon_duck can no longer open it."
    )


LATER_KANON_DUCK = """
import sys
from pathlib import Path
from kanon_duck import installation
from kanon_duck.catalog import migrations
from kanon_duck.shell.cli import app
migrations.FOLDER = Path(sys.argv[1])
installation.CATALOG_VERSION = int(sys.argv[2])
sys.argv[1:3] = []
app()
"""


def command(folder: Path, version: int, *arguments: str) -> list[str]:
    """The command line of a later kanon_duck."""
    return [sys.executable, "-c", LATER_KANON_DUCK, str(folder), str(version), *arguments]


def test_the_shell_tells_on_standard_error(one_old: str, tmp_path: Path) -> None:
    write_steps(tmp_path / "steps", STEPS)
    told = []
    for _ in range(2):
        done = subprocess.run(
            command(tmp_path / "steps", LATER, "sql", one_old, "-c", "SELECT 1 AS one"),
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
        assert (done.returncode, done.stdout.split()) == (0, ["one", "───", "1"])
        told.append(done.stderr)
    assert re.fullmatch(r"kanon_duck has upgraded database .*\n", told[0])
    assert told[1] == ""


@pytest.mark.surface
def test_a_read_only_connection_says_what_to_do(one_old: str, later: Upgrader) -> None:
    before = readings(one_old)
    later(STEPS)
    with pytest.raises(
        kanon_duck.KanonError,
        match=rf"read-only and was written by an earlier kanon_duck \(catalog version {version_of(one_old)}, this one needs "
        rf"{LATER}\): open it for writing once to upgrade it",
    ):
        kanon_duck.connect(one_old, read_only=True)
    assert readings(one_old) == before
    kanon_duck.connect(one_old).close()
    with kanon_duck.connect(one_old, read_only=True) as connection:
        assert_checked(connection)


@pytest.mark.surface
def test_a_newer_database_is_refused_with_its_version(one_old: str, later: Upgrader) -> None:
    later(STEPS)
    kanon_duck.connect(one_old).close()
    before = contents(one_old)
    later({})
    for read_only in (False, True):
        with pytest.raises(
            kanon_duck.KanonError,
            match=rf"newer kanon_duck \(catalog version {LATER}, this one knows {CATALOG_VERSION}\): upgrade the package",
        ):
            kanon_duck.connect(one_old, read_only=read_only)
    assert contents(one_old) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_without_steps_is_refused(one_old: str, later: Upgrader, read_only: bool) -> None:
    with duckdb.connect(one_old) as connection:
        connection.execute("UPDATE kanon_private.catalog SET version = 2")
    before = contents(one_old)
    later(STEPS)
    with pytest.raises(
        kanon_duck.KanonError, match=r"earlier kanon_duck \(catalog version 2\).* make the masked views again"
    ):
        kanon_duck.connect(one_old, read_only=read_only)
    assert contents(one_old) == before


# Whole or not at all

REACHED = "COPY (SELECT 1) TO '{}' (FORMAT csv);\n"
SLOW = 100 * "SELECT max(hash(a.range, b.range)) FROM range(4_000) a, range(25_000) b;\n"


@pytest.mark.parametrize(
    "wrong",
    [
        "SELEC 1;\n",
        "INSERT INTO kanon_private.settings (view_number) VALUES (error('no room')::BIGINT);\n",
        "-- for each: SELECT view_number FROM kanon_private.masked_views\nDROP TABLE members_{view_number}; FROM missing;\n-- end\n",
    ],
    ids=["syntax", "statement", "for each"],
)
def test_a_step_that_fails_leaves_the_old_version(one_old: str, later: Upgrader, wrong: str) -> None:
    before = contents(one_old)
    later(STEPS | {LATER: STEPS[LATER] + wrong})
    with pytest.raises(kanon_duck.KanonError, match=rf"stays as it was: step {LATER:04}_made_up.sql failed"):
        kanon_duck.connect(one_old)
    assert contents(one_old) == before
    later(STEPS)
    kanon_duck.connect(one_old).close()
    assert version_of(one_old) == LATER


def test_a_script_that_fails_after_the_steps_leaves_the_old_version(
    one_old: str, later: Upgrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(one_old)
    later(STEPS)
    real = installation.script
    with monkeypatch.context() as patch:
        patch.setattr(
            installation, "script", lambda name: real(name) + "FROM missing" * (name == installation.SCRIPTS[-1])
        )
        with pytest.raises(kanon_duck.KanonError, match="missing does not exist"):
            kanon_duck.connect(one_old)
    assert contents(one_old) == before
    kanon_duck.connect(one_old).close()
    assert version_of(one_old) == LATER


@contextmanager
def begun(path: str, steps: Path, reached: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that upgrades a database and has reached the statement that writes a file."""
    with subprocess.Popen(
        command(steps, LATER, "sql", path, "-c", "SELECT 1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 60
        while not reached.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.001)
        yield process


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_ends_in_the_middle_leaves_the_old_version(
    one_old: str, tmp_path: Path, later: Upgrader, how: signal.Signals
) -> None:
    before, seen = contents(one_old), readings(one_old)
    reached = tmp_path / "reached.csv"
    write_steps(tmp_path / "steps", STEPS | {LATER: STEPS[LATER] + REACHED.format(reached) + SLOW})
    with begun(one_old, tmp_path / "steps", reached) as process:
        time.sleep(0.2)
        process.send_signal(how)
        output, error = process.communicate(timeout=30)
    assert (process.returncode, output) == ((-how, b"") if how == signal.SIGKILL else (130, b"")), error
    assert contents(one_old) == before
    assert readings(one_old) == seen
    later(STEPS)
    kanon_duck.connect(one_old).close()
    assert version_of(one_old) == LATER
    assert readings(one_old) == seen


@pytest.mark.surface
def test_a_process_that_is_killed_near_the_commit_leaves_one_version_whole(
    one_old: str, tmp_path: Path, later: Upgrader
) -> None:
    seen = readings(one_old)
    upgraded = shutil.copy(one_old, tmp_path / "upgraded.duckdb")
    later(STEPS)
    kanon_duck.connect(upgraded).close()
    whole = {version_of(one_old): contents(one_old), LATER: contents(upgraded)}
    reached = tmp_path / "reached.csv"
    write_steps(tmp_path / "steps", STEPS | {LATER: STEPS[LATER] + REACHED.format(reached)})
    for milliseconds in (0, 20, 40, 60, 90, 150):
        path = shutil.copy(one_old, tmp_path / "killed.duckdb")
        Path(f"{path}.wal").unlink(missing_ok=True)
        reached.unlink(missing_ok=True)
        with begun(path, tmp_path / "steps", reached) as process:
            time.sleep(milliseconds / 1000)
            process.kill()
        found = contents(path)
        if version_of(path) == LATER:  # random numbers of the database are others each time
            assert sizes(found) == sizes(whole[LATER])
        else:
            assert found == whole[version_of(path)]
        assert readings(path) == seen


@pytest.mark.parametrize("steps", [{}, STEPS], ids=["present", "later"])
def test_a_process_that_ends_after_the_commit_leaves_the_new_version(
    one_old: str, tmp_path: Path, later: Upgrader, steps: dict[int, str]
) -> None:
    seen = readings(one_old)
    with duckdb.connect(one_old) as connection:
        connection.execute("UPDATE kanon_private.catalog SET scripts = 'others'")
    later(steps)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with kanon_duck.connect(one_old) as connection:
        before = columns(connection)
        for path in (one_old, f"{one_old}.wal"):  # as they are when the process is killed now
            shutil.copy(path, crashed)
    found = str(crashed / Path(one_old).name)
    assert version_of(found) == max(steps, default=CATALOG_VERSION)
    assert readings(found) == seen
    with kanon_duck.connect(found) as connection:
        assert columns(connection) == before
        assert_checked(connection)


def test_connections_of_several_threads_upgrade_once(
    one_old: str, later: Upgrader, caplog: pytest.LogCaptureFixture
) -> None:
    later(STEPS)
    with duckdb.connect(one_old), ThreadPoolExecutor(4) as executor:
        for connection in executor.map(lambda _: kanon_duck.connect(one_old), range(8)):
            connection.close()
    assert len(caplog.messages) == 1
    assert version_of(one_old) == LATER


def test_scripts_that_have_changed_run_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "one.duckdb")
    kanon_duck.connect(path).close()
    installed = contents(path)
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE kanon_private.catalog SET scripts = 'others'")
        connection.execute("DROP VIEW kanon.releases")
        connection.execute("DROP MACRO TABLE kanon.as_of")
    with pytest.raises(kanon_duck.KanonError, match="read-only and has the SQL of another kanon_duck"):
        kanon_duck.connect(path, read_only=True)
    kanon_duck.connect(path).close()
    assert contents(path) == installed
    assert caplog.messages == []

"""The commands refresh, check, channels and status: what they print, and the exit codes by which cron and CI know."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck
from tests.test_command_line import COMMAND, run, run_process

pytestmark = pytest.mark.surface

EVERY = ["view_name", "ok", "status", "reason", "release"]

REFRESHED = [
    *EVERY, "released_at", "cause", "rows", "classes", "waiting", "suppressed", "inserted", "updated", "deleted", "moved",
    "counterfeits", "vulnerable_rows", "information_loss_per_row", "warnings", "seconds",
]  # fmt: skip

PUBLISHED = ["target", "kind", "release", "published_at", "stale", "warnings"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a secure masked view and one that is not."""
    file = tmp_path_factory.mktemp("made") / "clinic.duckdb"
    with kanon_duck.connect(file) as connection:
        for table, options in (("people", "l => 2"), ("visits", "secure => false")):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT i AS id, i % 20 AS age, ['a', 'b', 'c'][1 + i % 3] AS disease FROM range(60) t(i)"
            )
            connection.execute(
                f"CALL kanon.create_masked_view('{table}_masked', source => '{table}', key => 'id', "
                f"quasi_identifiers => ['age'], sensitive => ['disease'], k => 5, {options})"
            ).fetchall()
    return file


@pytest.fixture
def database(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "clinic.duckdb"))


def change(database: Path, *statements: str) -> None:
    """Change tables as any client does, without kanon_duck."""
    with duckdb.connect(str(database)) as connection:
        for statement in statements:
            connection.execute(statement)


def findings(done: Any) -> dict[str, dict[str, Any]]:
    """The lines of JSON that a command has printed, by view."""
    return {found["view_name"]: found for found in map(json.loads, done.stdout.splitlines())}


# Refresh


def test_refresh_brings_in_all_changes(database: Path) -> None:
    change(database, "UPDATE visits SET age = age + 1 WHERE id < 9")
    done = run("refresh", database, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = findings(done)
    assert {name: (each["cause"], each["release"]) for name, each in found.items()} == {
        "people_masked": ("unchanged", 1),
        "visits_masked": ("refresh", 2),
    }
    assert [list(each) for each in found.values()] == [REFRESHED] * 2
    assert found["visits_masked"]["updated"] == 9
    assert time.strptime(found["visits_masked"]["released_at"], "%Y-%m-%dT%H:%M:%SZ")


def test_refresh_of_some_views(database: Path) -> None:
    change(database, "UPDATE visits SET age = age + 1 WHERE id < 9", "UPDATE people SET age = age + 1 WHERE id < 9")
    done = run("refresh", database, "VISITS_masked")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line.split()[:3] for line in done.stdout.splitlines()[2:3]] == [["visits_masked", "refresh", "2"]]
    assert "people_masked" not in done.stdout


@pytest.mark.parametrize("named", [(), ("people_masked", "visits_masked")])
def test_a_broken_view_fails_and_the_others_are_refreshed(database: Path, named: tuple[str, ...]) -> None:
    change(database, "DROP TABLE people", "UPDATE visits SET age = age + 1 WHERE id < 9")
    done = run_process("refresh", database, *named, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = findings(done)
    assert [list(each) for each in found.values()] == [REFRESHED] * 2
    broken, other = found["people_masked"], found["visits_masked"]
    assert (broken["ok"], broken["status"], broken["cause"], broken["release"]) == (False, "broken", "failed", 1)
    assert "people" in broken["reason"]
    assert (other["ok"], other["status"], other["cause"], other["release"]) == (True, "current", "refresh", 2)

    again = run("refresh", database, *named)
    assert again.exit_code == 1
    assert again.stderr == f"people_masked: {broken['reason']}\n"


def test_a_held_view_fails(database: Path) -> None:
    change(database, "DELETE FROM visits WHERE id > 2")
    done = run_process("refresh", database, "visits_masked", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("visits_masked: fewer than 5 rows are left")
    for command in ("status", "check"):
        found = findings(run(command, database, "--json", "--quiet"))
        assert {name: (each["ok"], each["status"]) for name, each in found.items()} == {
            "visits_masked": (False, "held")
        }


def test_every_view_failed(database: Path) -> None:
    change(database, "DROP TABLE people", "DROP TABLE visits")
    assert run("refresh", database).exit_code == 1
    script = "CALL kanon.refresh_all(); SELECT 'after' AS state"
    done = run("sql", database, "-c", script)
    assert done.exit_code == 1
    assert "after" in done.stdout
    assert run("sql", database, text="CALL kanon.refresh_all()").exit_code == 1


@pytest.mark.parametrize(
    "question", ["SELECT seconds FROM kanon.refresh_all()", "SELECT count(*) FROM kanon.refresh_all()"]
)
def test_the_exit_code_does_not_depend_on_what_a_statement_shows(database: Path, question: str) -> None:
    assert run("sql", database, "-c", question).exit_code == 0
    change(database, "DROP TABLE people")
    assert run("sql", database, "-c", question, "-c", "SELECT 1").exit_code == 1
    assert (
        run("sql", database, "-c", "SELECT name AS view_name, 'held' AS cause FROM kanon.masked_views").exit_code == 0
    )


@pytest.mark.parametrize("named", [(), ("people_masked",)])
def test_seconds_are_a_number(database: Path, named: tuple[str, ...]) -> None:
    change(database, "DROP TABLE people")
    found = findings(run("refresh", database, *named, "--json"))["people_masked"]
    assert (found["cause"], found["seconds"]) == ("failed", 0.0)


def test_quiet_says_nothing_where_all_is_well(database: Path) -> None:
    for command in ("refresh", "check", "status", "channels"):
        for options in ((), ("--json",)):
            done = run(command, database, "--quiet", *options)
            assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


# Publish


def test_publish_names_a_target_once(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "masked.duckdb"
    done = run_process("publish", database, "people_masked", "visits_masked", "--to", target, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = findings(done)
    assert list(found) == ["people_masked", "visits_masked"]
    for each in found.values():
        assert list(each) == [*EVERY, "targets"]
        [published] = each["targets"]
        assert list(published) == PUBLISHED
        assert (published["target"], published["release"], published["stale"]) == (str(target.resolve()), 1, False)

    change(database, "UPDATE visits SET age = age + 1 WHERE id < 9")
    assert run("refresh", database, "--quiet").exit_code == 0
    found = findings(run("publish", database, "--json"))
    assert {name: each["targets"][0]["release"] for name, each in found.items()} == {
        "people_masked": 1,
        "visits_masked": 2,
    }
    with duckdb.connect(str(target), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM visits_masked").fetchall() == [(60,)]


def test_a_target_that_cannot_be_written_fails_and_the_others_are_published(database: Path, tmp_path: Path) -> None:
    files = {"people_masked": tmp_path / "people.csv", "visits_masked": tmp_path / "bi" / "visits.csv"}
    files["visits_masked"].parent.mkdir()
    for view, file in files.items():
        assert run("publish", database, view, "--to", file, "--quiet").exit_code == 0
    change(database, "UPDATE visits SET age = age + 1 WHERE id < 9")
    assert run("refresh", database, "--quiet").exit_code == 0
    shutil.rmtree(files["visits_masked"].parent)
    files["people_masked"].unlink()
    done = run_process("publish", database, "--json", "--quiet")
    assert (done.returncode, done.stderr) == (1, "")
    [failed] = findings(done).values()
    assert (failed["view_name"], failed["ok"], failed["targets"][0]["stale"]) == ("visits_masked", False, True)
    assert "visits.csv" in failed["reason"]
    assert files["people_masked"].is_file()
    assert run("publish", database, "--quiet").stderr == f"visits_masked: {failed['reason']}\n"


def test_a_script_that_could_not_publish_fails(database: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bi"
    folder.mkdir()
    assert run("publish", database, "visits_masked", "--to", folder / "visits.csv", "--quiet").exit_code == 0
    shutil.rmtree(folder)
    assert run("sql", database, "-c", "CALL kanon.publish_all()").exit_code == 1
    assert (
        run("sql", database, "-c", "SELECT release FROM kanon.refresh('visits_masked', publish => true)").exit_code == 1
    )
    assert run("sql", database, "-c", "CALL kanon.refresh('visits_masked')").exit_code == 0
    folder.mkdir()
    assert run("sql", database, "-c", "CALL kanon.publish_all()").exit_code == 0


def test_a_named_target_that_cannot_be_written_fails(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "bi" / "visits.csv"

    def publish() -> tuple[int, Any]:
        done = run("publish", database, "visits_masked", "--to", target, "--json")
        [found] = findings(done).values()
        assert (list(found), list(found["targets"][0]), done.stderr) == ([*EVERY, "targets"], PUBLISHED, "")
        return done.exit_code, found

    code, never = publish()
    assert (code, never["ok"], never["view_name"]) == (1, False, "visits_masked")
    assert "visits.csv" in never["reason"]
    [answer] = never["targets"]
    assert (answer["target"], answer["release"], answer["stale"]) == (str(target.resolve()), None, True)

    target.parent.mkdir()
    assert publish()[0] == 0
    shutil.rmtree(target.parent)
    code, lost = publish()
    assert (code, lost["reason"], lost["targets"][0]["kind"], lost["targets"][0]["release"]) == (
        1,
        never["reason"],
        "csv",
        1,
    )


def test_publish_needs_a_target_at_first(database: Path) -> None:
    done = run("publish", database)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "nothing has been published yet: name masked views, and with --to where they go\n"
    assert run("publish", database, "people_masked").exit_code == 2
    assert run("publish", database, "people_masked", "--to", "masked.unknown").exit_code == 2


# Check, channels, status


def test_check_recomputes_the_requirements(database: Path) -> None:
    done = run("check", database, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = findings(done)["people_masked"]
    assert list(found) == [*EVERY, "requirements"]
    assert [(row["requirement"], row["attribute"], row["required"]) for row in found["requirements"]] == [
        ("k", None, 5.0),
        ("l", "disease", 2.0),
        ("max_frequency", "disease", None),
    ]


def test_a_requirement_that_is_not_met_fails(database: Path) -> None:
    released = "kanon_released.people_masked"
    change(database, f"DELETE FROM {released} WHERE rowid IN (SELECT min(rowid) FROM {released} GROUP BY age_min)")
    change(database, f"DELETE FROM {released} WHERE rowid IN (SELECT min(rowid) FROM {released} GROUP BY age_min)")
    done = run("check", database)
    assert done.exit_code == 1
    assert done.stderr.startswith("people_masked: k is ")
    assert "visits_masked" not in done.stderr


def test_check_of_a_view_that_somebody_dropped(database: Path) -> None:
    change(database, "DROP VIEW people_masked")
    done = run("check", database, "--json")
    assert done.exit_code == 1
    found = findings(done)
    assert {name: each["ok"] for name, each in found.items()} == {"people_masked": False, "visits_masked": True}
    assert found["people_masked"]["status"] == "broken"
    assert "people_masked" in found["people_masked"]["reason"]


def test_channels_between_releases(database: Path) -> None:
    assert run("channels", database).exit_code == 0
    change(database, "INSERT INTO visits VALUES (101, 7, 'e')")
    run("refresh", database)
    done = run("channels", database, "--json")
    found = findings(done)
    assert found["people_masked"]["channels"] == []
    channel = found["visits_masked"]["channels"][0]
    assert (done.exit_code, found["visits_masked"]["ok"]) == (1, False)
    assert "releases together tell too much" in found["visits_masked"]["reason"]
    assert {"kind", "from_release", "to_release", "attribute", "class", "victims", "candidates", "required"} <= set(
        channel
    )
    assert "keys" not in channel


def test_status_computes_nothing(database: Path) -> None:
    change(database, "DELETE FROM people")
    done = run("status", database, "--json")
    found = findings(done)["people_masked"]
    assert list(found) == [*EVERY, "released_at", "rows", "waiting", "checked_at", "refresh_recommended"]
    assert (found["ok"], found["status"], found["rows"]) == (True, "current", 60)


# Wrong usage, locks, Ctrl-C


def test_wrong_usage_and_errors_end_with_2(database: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.duckdb"
    kanon_duck.connect(empty).close()
    for arguments, told in (
        (("refresh",), "Missing argument"),
        (("refresh", database, "--nonsense"), "No such option"),
        (("refresh", database, "--wait", "soon"), "--wait"),
        (("refresh", database, "people_maskd"), "did you mean people_masked"),
        (("status", tmp_path / "missing.duckdb"), "there is no database"),
        (("refresh", tmp_path / "missing.duckdb"), "there is no database"),
        (("status", ":memory:"), "begins empty"),
        (("status", "no such file.duckdb"), "kanon-duck sql 'no such file.duckdb' makes one"),
        (("check", empty), "has no masked views"),
    ):
        done = run(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert told in " ".join(done.stderr.replace("│", "").split())
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "missing.duckdb").exists()


def held_for(database: Path, seconds: float) -> subprocess.Popen[str]:
    """Another process that has the database open, and says so before this returns."""
    script = (
        f"import duckdb, time; c = duckdb.connect({str(database)!r}); print('open', flush=True); time.sleep({seconds})"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_a_lock_that_is_let_go_in_time(database: Path) -> None:
    with held_for(database, 1.0):
        done = run_process("refresh", database, "--wait", "30", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["refresh", "status"])
def test_a_lock_that_is_held_too_long(database: Path, command: str) -> None:
    with held_for(database, 60.0) as holder:
        begun = time.monotonic()
        done = run_process(command, database, "--wait", "0.5")
        waited = time.monotonic() - begun
        holder.kill()
    assert (done.returncode, done.stdout) == (2, "")
    assert f"PID {holder.pid}) for all of 0.5 s: close it there, or wait longer" in done.stderr
    assert 0.5 <= waited < 20


def test_commands_that_only_read_share_the_database(database: Path) -> None:
    with duckdb.connect(str(database), read_only=True):
        assert run_process("status", database).returncode == 0
        assert run_process("refresh", database).returncode == 2


def test_interrupt_ends_a_refresh_and_changes_nothing(database: Path) -> None:
    change(
        database,
        "CREATE OR REPLACE TABLE people AS FROM range(20_000_000) t(id) SELECT id, id % 977 AS age, 'a' AS disease",
    )
    command = [*COMMAND, "refresh", str(database), "people_masked"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
    assert (process.returncode, output, error) == (130, "", "Stopped.\n")
    assert findings(run("status", database, "--json"))["people_masked"]["release"] == 1


# Help


@pytest.mark.parametrize("command", ["sql", "refresh", "publish", "check", "channels", "status", "warm-up", "demo"])
def test_help_has_an_example(command: str) -> None:
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"kanon-duck {command}" in " ".join(done.stdout.split()).split("Example: ")[1]


def test_help_tells_the_exit_codes() -> None:
    assert "Exit codes: 0 all is well; 1 " in " ".join(run("--help").stdout.split())

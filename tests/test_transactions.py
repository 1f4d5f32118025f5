"""A procedure happens whole or not at all: after errors, interrupts of both kinds, and kills at any moment."""

from __future__ import annotations

import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck
from kanon_duck.clustering import declared
from kanon_duck.maintenance import batch, from_scratch, next_release, refresh
from kanon_duck.maintenance import state as member_state
from kanon_duck.procedures import create_masked_view
from kanon_duck.release import make_current
from kanon_duck.runtime import runner
from tests import people
from tests.people import PEOPLE, REFRESH, assert_current, change

auto = importlib.import_module("kanon_duck.clustering.auto")  # the package has a function of that name

KILLS = 24
KILLS_OF_REFRESHES = 10

SLOW = "method => 'k_member',"  # its time is quadratic in the rows: there is something to interrupt

MASK = """
CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, {} sensitive => ['disease'],
     quasi_identifiers => {{'age': 'numeric', 'income': 'numeric', 'city': 'flat'}})
"""


def state(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """Everything kanon_duck has written: rows of each table, and a hash of them."""
    written = {}
    for schema, table in connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name LIKE 'kanon%' ORDER BY ALL"
    ).fetchall():
        query = f'SELECT count(*), sum(CAST(hash(t) AS HUGEINT)) FROM "{schema}"."{table}" AS t'
        [written[f"{schema}.{table}"]] = connection.execute(query).fetchall()
    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE view_name = 'masked'").fetchall()
    return written | {"views": views}


def wait_until_ended(connection: duckdb.DuckDBPyConnection) -> None:
    """Calls take turns, so this one returns when the work before it has ended."""
    connection.execute("CALL kanon.create_hierarchy('turn', prefix => 2)")
    connection.execute("CALL kanon.drop_hierarchy('turn')")


@pytest.mark.surface
def test_interrupt_from_another_thread_leaves_the_old_state(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(200_000))
    before = state(connection)
    for delay in (0.2, 0.6, 1.2):
        timer = threading.Timer(delay, connection.interrupt)
        timer.start()
        started = time.monotonic()
        with pytest.raises(duckdb.InterruptException):
            connection.execute(MASK.format(SLOW))
        assert time.monotonic() - started < delay + 2
        wait_until_ended(connection)
        assert state(connection) == before
    assert connection.execute("SELECT count(*) FROM people").fetchall() == [(200_000,)]


# At once after another one, DuckDB 1.5 may swallow Ctrl-C while it still clears up the statement before.
@pytest.mark.parametrize(
    "between", ["time.sleep(0.1)", pytest.param("wait_until_ended(connection)", marks=pytest.mark.surface)]
)
def test_control_c_leaves_the_old_state(tmp_path: Path, between: str) -> None:
    code = f"""
import os, signal, sys, threading, time
import kanon_duck
from tests.test_transactions import wait_until_ended
connection = kanon_duck.connect(sys.argv[1])
connection.execute('''{PEOPLE.format(200_000)}''')
for delay in (0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05):
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        connection.execute('''{MASK.format(SLOW)}''')
        print("finished")
    except BaseException as error:
        print("stopped", type(error).__name__)
    {between}
connection.execute("CALL kanon.create_hierarchy('turn', prefix => 2)")
print(connection.execute("SELECT count(*) FROM kanon.masked_views").fetchall())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "c.db")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:8]] == ["stopped"] * 8, done.stdout + done.stderr
    assert lines[8] == "[(0,)]"


PHASED = MASK.format("max_suppression => 0.05,")

CREATION = {
    "snapshot": (create_masked_view, "take_snapshot"),
    "encoding": (from_scratch, "encode"),
    "order": (auto, "order"),
    "cut": (auto, "cut"),
    "annealing": (auto, "anneal"),
    "suppression": (declared, "suppress"),
    "generalizing": (from_scratch, "generalize"),
    "storing": (from_scratch, "create_members"),
    "releasing": (from_scratch, "make_current"),
    "checking": (make_current, "class_sizes"),
    "just before the commit": (create_masked_view, "release_row"),
}
"""What begins each phase of a creation."""

REFRESHING = {
    "comparing": (refresh, "compare"),
    "encoding": (member_state, "encode"),
    "exchanging": (batch, "exchange_rows"),
    "annealing": (batch, "improve_touched"),
    "removing": (refresh, "remove_members"),
    "adding": (refresh, "add_members"),
    "new values": (refresh, "update_values"),
    "generalizing": (next_release, "generalize"),
    "classes": (next_release, "add_classes"),
    "releasing": (next_release, "make_changes_current"),
    "checking": (make_current, "class_sizes"),
    "recording": (next_release, "record_state"),
    "just before the commit": (next_release, "release_row"),
}
"""What begins each phase of a refresh."""

PHASES = {PHASED: CREATION, REFRESH: REFRESHING}


def prepare(connection: duckdb.DuckDBPyConnection, call: str) -> None:
    """What must be there before the call."""
    connection.execute(PEOPLE.format(400))
    if call == REFRESH:
        connection.execute(people.MASK)
        change(connection, 1)


def assert_done(connection: duckdb.DuckDBPyConnection, call: str) -> None:
    """The call has done all it should."""
    if call == REFRESH:
        assert_current(connection)
    assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]


def no_thread_is_left() -> bool:
    """Whether only the main thread runs, now or shortly; DuckDB's own threads are daemons to Python."""
    deadline = time.monotonic() + 5
    while [thread for thread in threading.enumerate() if not thread.daemon] != [threading.main_thread()]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize(
    ("call", "phase"),
    [
        pytest.param(call, phase, id=f"{verb}-{phase}")
        for verb, call in (("create", PHASED), ("refresh", REFRESH))
        for phase in PHASES[call]
    ],
)
def test_interrupt_in_each_phase_leaves_the_old_state(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, call: str, phase: str
) -> None:
    prepare(connection, call)
    before = state(connection)
    monkeypatch.setattr(runner, "SILENCE_SECONDS", 0.25)
    module, name = PHASES[call][phase]
    function = getattr(module, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        connection.interrupt()  # in the thread of the work, which is another than the statement's
        return function(*arguments, **options)

    with monkeypatch.context() as changed:
        changed.setattr(module, name, interrupted)
        with pytest.raises(duckdb.InterruptException):
            connection.execute(call)
    wait_until_ended(connection)
    assert state(connection) == before
    assert no_thread_is_left()
    connection.execute(call)
    assert_done(connection, call)


@pytest.mark.parametrize("call", PHASES, ids=["create", "refresh"])
def test_control_c_in_each_phase_leaves_the_old_state(call: str) -> None:
    phases = {phase: (module.__name__, name) for phase, (module, name) in PHASES[call].items()}
    code = f"""
import importlib, os, signal, sys, threading, time
import kanon_duck
from kanon_duck.runtime import runner
from tests.test_transactions import assert_done, no_thread_is_left, prepare, state, wait_until_ended

call = {call!r}
connection = kanon_duck.connect()
connection.execute("SET enable_progress_bar = false")  # DuckDB's own, which 1.5 shows on standard output
prepare(connection, call)
before = state(connection)
phases = {{phase: (importlib.import_module(module), name) for phase, (module, name) in {phases}.items()}}
for phase, (owner, name) in (phases | {{"commit": (runner.Instance, "finish")}}).items():
    function = getattr(owner, name)
    def interrupted(*arguments, **options):
        seen = runner._interrupts
        os.kill(os.getpid(), signal.SIGINT)
        while runner._interrupts == seen:  # until the main thread has noticed
            time.sleep(0.001)
        return function(*arguments, **options)
    setattr(owner, name, interrupted)
    try:
        connection.execute(call)
        print(phase, "finished")
    except BaseException as error:
        print(phase, "stopped")
    setattr(owner, name, function)
    wait_until_ended(connection)
    print(state(connection) == before, no_thread_is_left())
connection.execute(call)
assert_done(connection, call)
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    expected = [line for phase in [*PHASES[call], "commit"] for line in (f"{phase} stopped", "True True")]
    assert done.stdout.splitlines() == [*expected, "done"], done.stdout + done.stderr


def test_interrupt_of_a_call_that_waits_for_its_turn(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute(PEOPLE.format(400))
    other = connection.cursor()
    begun, go_on = threading.Event(), threading.Event()
    take_snapshot = create_masked_view.take_snapshot

    def held(*arguments: Any) -> int:
        begun.set()
        assert go_on.wait(30)
        return take_snapshot(*arguments)

    monkeypatch.setattr(create_masked_view, "take_snapshot", held)
    with ThreadPoolExecutor() as executor:
        first = executor.submit(connection.execute, PHASED)
        assert begun.wait(30)
        second = executor.submit(other.execute, PHASED.replace("'masked'", "'waiting'"))
        instance = [*runner._instances.values()][-1]
        while len(instance.works) < 2:
            time.sleep(0.01)
        while not second.done():
            other.interrupt()
            wait([second], timeout=0.05)
        assert isinstance(second.exception(), duckdb.InterruptException)
        assert not first.done()
        go_on.set()
        first.result()
    assert connection.execute("SELECT name FROM kanon.masked_views").fetchall() == [("masked",)]
    other.execute(PHASED.replace("'masked'", "'waiting'").replace("k => 5", "independent => true, k => 5"))
    assert no_thread_is_left()


@pytest.mark.timeout(300)
def test_kill_at_any_moment_leaves_the_old_state(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    with kanon_duck.connect(str(path)) as connection:
        connection.execute(PEOPLE.format(3_000))
        connection.execute(MASK.format(""))  # compiles the kernels
        connection.execute("CALL kanon.drop_masked_view('masked')")
        before = state(connection)
    code = f"""
import sys, kanon_duck
connection = kanon_duck.connect(sys.argv[1])
print("ready", flush=True)
connection.execute('''{MASK.format("")}''')
print("done", flush=True)
"""
    generator = random.Random(7)
    whole = 0
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(generator.uniform(0, 0.9))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        with kanon_duck.connect(str(path)) as connection:
            after = state(connection)
            if after != before:
                whole += 1
                [(rows,)] = connection.execute("SELECT count(*) FROM masked").fetchall()
                assert rows == 3_000
                assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
                connection.execute("CALL kanon.drop_masked_view('masked')")
                before = state(connection)
    assert whole < KILLS, "no kill came before the end: the test proves nothing"


def digests(connection: duckdb.DuckDBPyConnection) -> dict[int, str]:
    """Every release, as its number of rows and a hash of them."""
    releases = connection.execute("SELECT release FROM kanon.releases WHERE view_name = 'masked'").fetchall()
    return {number: digest(connection, f"kanon.as_of('masked', {number})") for (number,) in releases}


def digest(connection: duckdb.DuckDBPyConnection, relation: str) -> str:
    """Number of rows and a hash of them."""
    query = f"SELECT concat(count(*), ' ', sum(CAST(hash(t) AS HUGEINT))) FROM {relation} AS t"
    [(found,)] = connection.execute(query).fetchall()
    return str(found)


@pytest.mark.timeout(300)
def test_kill_at_any_moment_of_a_refresh_leaves_the_last_release(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    with kanon_duck.connect(str(path)) as connection:
        connection.execute(PEOPLE.format(3_000))
        connection.execute(people.MASK)
        known = digests(connection)
    code = """
import sys, kanon_duck
from tests.people import REFRESH, change
from tests.test_transactions import digest
connection = kanon_duck.connect(sys.argv[1])
print("ready", flush=True)
number = int(sys.argv[2])
while True:
    change(connection, number)
    [(_, release, *_)] = connection.execute(REFRESH).fetchall()
    print(release, digest(connection, "masked"), flush=True)
    number += 1
"""
    generator = random.Random(11)
    unfinished = 0
    for attempt in range(KILLS_OF_REFRESHES):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(1000 * attempt + 1)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(generator.uniform(0, 1.5))
        process.kill()
        told, _ = process.communicate()
        lines = (line.split(" ", 1) for line in told.splitlines(keepends=True) if line.endswith("\n"))
        known |= {int(number): found.strip() for number, found in lines}
        with kanon_duck.connect(str(path)) as connection:
            found = digests(connection)
            last = max(found)
            assert max(known) <= last <= max(known) + 1  # one may have been committed and not told
            assert {number: found[number] for number in known} == known
            assert digest(connection, "masked") == found[last]
            assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
            unfinished += connection.execute("SELECT sum(rows) FROM kanon.pending('masked')").fetchall() != [(0,)]
            connection.execute(REFRESH)
            assert_current(connection)
            known = digests(connection)
            assert {number: known[number] for number in found} == found
    assert unfinished, "no kill came between a change and the end of its refresh: the test proves nothing"


@pytest.mark.parametrize("same_connection", [True, False])
def test_refreshes_at_the_same_time_never_mix(tmp_path: Path, same_connection: bool) -> None:
    path = str(tmp_path / "one.db")
    with kanon_duck.connect(path) as connection, kanon_duck.connect(path) as other:
        connection.execute(PEOPLE.format(400))
        connection.execute(people.MASK)
        for number in (1, 2, 3):
            change(connection, number)
            before = digests(connection)
            second = connection.cursor() if same_connection else other
            with ThreadPoolExecutor() as executor:
                calls = [executor.submit(asker.execute, REFRESH) for asker in (connection.cursor(), second)]
                rows = [call.result().fetchall() for call in calls]
            assert sorted(row[3] for [row] in rows) == ["refresh", "unchanged"]
            assert [row[1] for [row] in rows] == [number + 1] * 2
            assert_current(connection)
            after = digests(connection)
            assert {release: after[release] for release in before} == before
            assert len(after) == number + 1


def test_readers_see_one_release_whole(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(1_000))
    connection.execute(people.MASK)
    ended = threading.Event()

    def read() -> list[str]:
        cursor = connection.cursor()
        seen = []
        while not ended.is_set():
            found = digest(cursor, "masked")
            if found not in seen[-1:]:
                seen.append(found)
        return seen

    with ThreadPoolExecutor() as executor:
        readers = [executor.submit(read) for _ in range(2)]
        try:
            for number in range(1, 9):
                change(connection, number)
                connection.execute(REFRESH)
        finally:
            ended.set()
        releases = list(digests(connection).values())
        for reader in readers:
            seen = reader.result()
            assert seen == [release for release in releases if release in seen]  # each once, in their order
            assert len(seen) > 2, "nobody read while releases were made: the test proves nothing"


def test_calls_of_two_threads_take_turns(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(2_000))
    failures: list[Exception] = []

    def mask(number: int) -> None:
        cursor = connection.cursor()
        try:
            cursor.execute(MASK.replace("'masked'", f"'masked_{number}'").format("independent => true,"))
        except Exception as error:  # told by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=mask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert connection.execute("SELECT count(*) FROM kanon.masked_views").fetchall() == [(4,)]


@pytest.mark.surface
@pytest.mark.parametrize(
    "statement",
    [
        "FROM names, kanon.drop_hierarchy(names.name)",
        "FROM names LEFT JOIN LATERAL kanon.drop_hierarchy(name) ON true",
        "SELECT (SELECT height FROM kanon.drop_hierarchy(name)) FROM names",
        "FROM names WHERE EXISTS (FROM kanon.drop_hierarchy(name))",
        "FROM range(5_000) AS r(i), kanon.drop_hierarchy('h' || i % 3_000)",
    ],
)
def test_a_call_for_each_row_is_refused_and_changes_nothing(
    connection: duckdb.DuckDBPyConnection, statement: str
) -> None:
    for name in ("h1", "h2"):
        connection.execute("CALL kanon.create_hierarchy(?, prefix => 2)", [name])
    connection.execute("CREATE TABLE names AS FROM (VALUES ('h1'), ('h2')) AS names(name)")
    before = state(connection)
    started = time.monotonic()
    with pytest.raises(duckdb.Error, match="once per statement, with constant arguments") as raised:
        connection.execute(statement).fetchall()
    assert time.monotonic() - started < 1
    assert len(str(raised.value).splitlines()) == 1
    assert state(connection) == before
    wait_until_ended(connection)
    [(identity,)] = connection.execute(f"SELECT {runner.FUNCTION}('identity', NULL, NULL)").fetchall()
    assert runner._instances[identity].works == {}


@pytest.mark.surface
def test_a_call_beside_another_and_a_prepared_one_run(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(100))
    connection.execute(MASK.format(""))
    twice = "SELECT passed FROM kanon.check('masked') UNION ALL SELECT passed FROM kanon.check('masked')"
    assert connection.execute(twice).fetchall() == [(True,), (True,)]
    connection.execute("PREPARE checked AS SELECT passed FROM kanon.check('masked')")
    for _ in range(2):
        assert connection.execute("EXECUTE checked").fetchall() == [(True,)]
    beside = "SELECT count(passed) FROM range(3), kanon.check('masked')"
    assert connection.execute(beside).fetchall() == [(3,)]


@pytest.mark.surface
def test_a_caller_inside_begin_sees_committed_rows_only(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(100))
    connection.execute("BEGIN")
    connection.execute("INSERT INTO people SELECT * REPLACE (id + 1000 AS id) FROM people")
    connection.execute("CREATE TABLE later AS FROM people")
    connection.execute(MASK.format(""))
    with pytest.raises(duckdb.Error, match="uncommitted"):
        connection.execute(MASK.replace("'people'", "'later'").replace("'masked'", "'other'").format(""))
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM masked").fetchall() == [(100,)]


@pytest.mark.surface
def test_install_is_idempotent_and_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    path = str(tmp_path / "one.db")
    connection = duckdb.connect(path)
    for _ in range(3):
        assert kanon_duck.install(connection) is connection
    other = duckdb.connect(path)
    kanon_duck.install(other)
    connection.close()  # calls now go through the other connection
    other.execute("CALL kanon.create_hierarchy('zip', prefix => 5)")
    other.execute("UPDATE kanon_private.catalog SET version = 99")
    other.close()
    with pytest.raises(kanon_duck.KanonError, match="newer kanon_duck"):
        kanon_duck.connect(path)


@pytest.mark.surface
def test_install_read_only(tmp_path: Path) -> None:
    path = str(tmp_path / "one.db")
    duckdb.connect(path).close()
    with pytest.raises(kanon_duck.KanonError, match="read-only"):
        kanon_duck.connect(path, read_only=True)
    with kanon_duck.connect(path) as connection:
        connection.execute(PEOPLE.format(100))
        connection.execute(MASK.format(""))
    with kanon_duck.connect(path, read_only=True) as connection:
        assert connection.execute("SELECT passed FROM kanon.check('masked')").fetchall() == [(True,)]
        with pytest.raises(duckdb.Error, match="read-only"):
            connection.execute("CALL kanon.create_hierarchy('zip', prefix => 5)")
        with pytest.raises(duckdb.Error, match="read-only"):
            connection.execute(MASK.format("independent => true,").replace("'masked'", "'other'"))
        told = [["the database is open read-only: open it for writing to change anything"]]
        for call in ("CALL kanon.refresh_all()", "FROM kanon.refresh_all()"):
            row = connection.execute(call).df()
            assert (list(row["cause"]), [list(each) for each in row["warnings"]]) == (["failed"], told)


@pytest.mark.surface
def test_install_refuses_a_foreign_schema(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "one.db"))
    connection.execute("CREATE SCHEMA kanon")
    with pytest.raises(kanon_duck.KanonError, match="schema kanon that kanon_duck did not make"):
        kanon_duck.install(connection)


@pytest.mark.parametrize(
    ("rows", "k", "more"),
    [(200_000, 40_000, ""), (39_999, 20_000, ", max_suppression => 0.4")],
    ids=["cut", "suppress"],
)
def test_an_interrupt_stops_work_on_huge_classes(
    connection: duckdb.DuckDBPyConnection, rows: int, k: int, more: str
) -> None:
    connection.execute(f"CREATE TABLE t AS SELECT i AS id, hash(i) % 1000 AS a FROM range({rows}) AS r(i)")
    mask = (
        "CALL kanon.create_masked_view('v', source => 't', key => 'id', k => {}, "
        "quasi_identifiers => {{'a': 'numeric'}}{})"
    )
    timer = threading.Timer(0.7, connection.interrupt)
    timer.start()
    with suppress(duckdb.InterruptException):
        connection.execute(mask.format(k, more))
    timer.join()
    started = time.monotonic()
    wait_until_ended(connection)
    assert time.monotonic() - started < 4


def test_nothing_is_kept_of_interrupted_calls(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60_000))
    [(identity,)] = connection.execute(f"SELECT {runner.FUNCTION}('identity', NULL, NULL)").fetchall()
    threading.Timer(0.3, connection.interrupt).start()
    with pytest.raises(duckdb.InterruptException):
        connection.execute(MASK.format(SLOW))
    wait_until_ended(connection)
    assert runner._instances[identity].works == {}


@pytest.mark.surface
@pytest.mark.parametrize(("given", "kept"), [({}, 0), ({"threads": 4, "external_threads": 2}, 2)])
def test_the_owner_keeps_a_number_of_threads(given: dict[str, int], kept: int) -> None:
    with kanon_duck.connect(config=given) as connection:
        assert connection.execute("SELECT current_setting('external_threads')").fetchall() == [(kept,)]


@pytest.mark.surface
def test_a_locked_configuration_is_left_alone() -> None:
    with kanon_duck.connect(config={"lock_configuration": True}) as connection:
        assert connection.execute("FROM kanon.masked_views").fetchall() == []

"""The kanon-duck command: scripts, the interactive shell and the demonstration."""

from __future__ import annotations

import io
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pexpect
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from rich.console import Console
from typer.testing import CliRunner

from kanon_duck.shell import script
from kanon_duck.shell.cli import app
from kanon_duck.shell.completion import ShellCompleter
from kanon_duck.shell.help import explanations
from kanon_duck.shell.prompt import is_complete
from kanon_duck.shell.rendering import RECORDS, TABLE_ROWS, Result, print_result

COMMAND = [sys.executable, str(Path(sys.executable).with_name("kanon-duck"))]
"""As pip has installed it: DuckDB shows a progress bar among the results where Python runs without a file."""

ENDLESS = "SELECT max(hash(a.range, b.range)) FROM range(100_000_000) a, range(100_000) b"


def run(*arguments: str | Path, text: str = "") -> Any:
    """Run the command in this process; whatever it does not turn into a message fails the test."""
    return CliRunner().invoke(app, [*map(str, arguments)], input=text, catch_exceptions=False)


def run_process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def lines(output: str) -> list[list[str]]:
    """The words of each line that has any."""
    return [line.split() for line in output.splitlines() if line.strip()]


# Scripts


@pytest.mark.surface
def test_every_result_is_printed() -> None:
    done = run("sql", ":memory:", "-c", "SELECT 1 AS one; SELECT 'a' AS letter, NULL AS nothing")
    assert (done.exit_code, done.stderr) == (0, "")
    printed = lines(done.stdout)
    assert ["one"] in printed
    assert ["1"] in printed
    assert ["letter", "nothing"] in printed
    assert ["a", "NULL"] in printed


def test_the_first_error_ends_a_script(tmp_path: Path) -> None:
    database = tmp_path / "people.duckdb"
    done = run("sql", database, "-c", "CREATE TABLE a AS SELECT 7; FROM missing; CREATE TABLE b AS SELECT 8")
    assert done.exit_code == 2
    assert "missing does not exist" in done.stderr
    with duckdb.connect(str(database)) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
    assert tables == [("a",)]


def test_several_commands_run_in_order_up_to_the_first_that_fails(tmp_path: Path) -> None:
    database = tmp_path / "people.duckdb"
    done = run("sql", database, "-c", "CREATE TABLE a AS SELECT 7 AS n -- seven", "-c", "SELECT n + 1 AS more FROM a")
    assert (done.exit_code, lines(done.stdout)[0], lines(done.stdout)[-1]) == (0, ["1", "row"], ["8"])
    done = run("sql", database, "-c", "FROM missing", "-c", "CREATE TABLE b AS SELECT 8")
    assert (done.exit_code, run("sql", database, "-c", "FROM b").exit_code) == (2, 2)


def test_a_syntax_error_runs_nothing(tmp_path: Path) -> None:
    done = run("sql", tmp_path / "people.duckdb", "-c", "CREATE TABLE a AS SELECT 7; SELEC 1")
    assert done.exit_code == 2
    assert "syntax error" in done.stderr
    assert "does not exist" in run("sql", tmp_path / "people.duckdb", "-c", "FROM a").stderr


@pytest.mark.surface
def test_an_error_of_a_procedure_is_one_sentence() -> None:
    done = run("sql", ":memory:", "-c", "SELECT error('k is 1: give at least 2')")
    assert done.stderr == "k is 1: give at least 2\n"


@pytest.mark.surface
@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("CALL kanon.refresh('v', dryrun => true)", ["kanon.refresh has no option dryrun: did you mean dry_run?"]),
        ("FROM kanon.check('v', Relaese := 1)", ["kanon.check has no option Relaese: did you mean release?"]),
        ("FROM kanon.check('v', xyz := 1)", ["kanon.check has no option xyz: it has view_name, release, quasi_identifiers"]),
        (
            "CALL kanon.create_masked_view('v', soruce => 'p', k => 3, quasi_identifers => {'a': struct_pack(b := 2)})",
            [
                "kanon.create_masked_view has no option soruce: did you mean source?",
                "kanon.create_masked_view has no option quasi_identifers: did you mean quasi_identifiers?",
            ],
        ),
    ],
)  # fmt: skip
def test_a_misspelled_option_is_told_with_the_one_that_was_meant(call: str, told: list[str]) -> None:
    assert run("sql", ":memory:", "-c", call).stderr.splitlines() == told


@pytest.mark.surface
def test_other_errors_of_binding_stay_as_duckdb_tells_them() -> None:
    for call in ("CALL kanon.refresh()", "SELECT nothing", "CREATE MACRO f(a) AS TABLE SELECT a; FROM f(b := 1)"):
        assert run("sql", ":memory:", "-c", call).stderr.startswith("Binder Error: ")


def test_scripts_from_a_file_and_from_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "script.sql"
    file.write_text("-- a comment; with a semicolon\nSELECT 'Grüße; 世界' AS text;\n", encoding="utf-8")
    from_file = run("sql", ":memory:", "-f", file)
    from_input = run("sql", ":memory:", text=file.read_text(encoding="utf-8"))
    assert from_file.exit_code == from_input.exit_code == 0
    assert from_file.stdout == from_input.stdout
    assert "Grüße; 世界" in from_file.stdout


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    latin = tmp_path / "latin.sql"
    latin.write_bytes("SELECT 'ü'".encode("latin-1"))
    done = run("sql", ":memory:", "-f", latin)
    assert (done.exit_code, done.stderr) == (2, f"{latin} is not UTF-8 text (byte 8): save it as UTF-8.\n")
    assert run("sql", ":memory:", "-f", tmp_path / "missing.sql").exit_code == 2
    assert run("sql", ":memory:", "-f", latin, "-c", "SELECT 1").exit_code == 2


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, but long enough to be read as the header of one " * 1000)
    done = run("sql", file, "-c", "SELECT 1")
    assert done.exit_code == 2
    assert "valid DuckDB database" in done.stderr


def test_a_locked_database_is_told_in_one_sentence(tmp_path: Path) -> None:
    database = tmp_path / "people.duckdb"
    with duckdb.connect(str(database)):
        done = run_process("sql", database, "-c", "SELECT 1")
    assert done.returncode == 2
    assert re.fullmatch(
        rf"{re.escape(str(database))} is open in another process \(.*, PID {os.getpid()}\): close it there, open a copy of "
        r"the file, or wait with --wait SECONDS\.\n",
        done.stderr,
    )


def test_interrupt_ends_a_script() -> None:
    script = f"SELECT 'started' AS state; {ENDLESS}; SELECT 'after' AS state"
    with subprocess.Popen(
        [*COMMAND, "sql", ":memory:", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        while "started" not in process.stdout.readline():
            pass
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "Stopped.\n"
    assert "after" not in output


# Tables


def rendered(columns: list[str], types: list[str], rows: list[tuple[Any, ...]], total: int, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_result(console, Result(columns, types, rows, total))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_a_table() -> None:
    rows = [("a", 1, [1, None]), ("[red]b[/red]", 1000, None)]
    assert rendered(["name", "age", "list"], ["VARCHAR", "BIGINT", "BIGINT[]"], rows, 2, 80) == (
        "name           age  list\n"
        "─────────────────────────────\n"
        "a                1  [1, NULL]\n"
        "[red]b[/red]  1000  NULL\n"
    )


def test_a_long_result_is_cut_and_says_so() -> None:
    text = rendered(["n"], ["BIGINT"], [(n,) for n in range(TABLE_ROWS)], 12_345, 80)
    assert text.endswith(f"\n{TABLE_ROWS - 1}\nthe first {TABLE_ROWS} of 12,345 rows\n")


def test_a_wide_result_is_shown_row_by_row() -> None:
    columns = [f"column_{number}" for number in range(9)]
    text = rendered(columns, ["VARCHAR"] * 9, [("x" * 10,) * 9] * 12, 12, 80)
    assert "row 1\ncolumn_0  xxxxxxxxxx\ncolumn_1  xxxxxxxxxx\n" in text
    assert f"row {RECORDS}" in text
    assert text.endswith(f"the first {RECORDS} of 12 rows\n")


@pytest.mark.parametrize("total", [1, 2])
def test_a_long_heading_leaves_room_for_the_value(total: int) -> None:
    heading = "a" * 30 + " + " + "b" * 70
    text = rendered([heading, "b"], ["BIGINT", "BIGINT"], [(42, 7)] * total, total, 80)
    cells = [line.split() for line in text.splitlines()]
    assert ["a" * 30, "+", "42"] in cells
    assert ["b", "7"] in cells
    names = "".join(line[:40] for line in text.splitlines() if not line.startswith("row "))
    assert names.replace(" ", "").count(heading.replace(" ", "")) == total
    assert max(map(len, text.splitlines())) <= 80


def test_an_empty_result_says_so() -> None:
    assert rendered(["a"], ["BIGINT"], [], 0, 80).endswith("no rows\n")


@pytest.mark.parametrize("slow", [True, False])
def test_a_slow_statement_tells_how_long_it_took(slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "SLOW", 0.0 if slow else 60.0)
    console = Console(file=io.StringIO(), force_terminal=True, highlight=False)
    with duckdb.connect() as connection:
        script.run_script(connection, "SELECT 1", console)
    assert isinstance(console.file, io.StringIO)
    assert bool(re.search(r"\d\.\d s\b", console.file.getvalue())) == slow


# The interactive shell


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        (".tables", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- why", True),
        ("SELECT ';';\n", True),
        ("SELECT $$;$$;", True),
        ("SELECT 1", False),
        ("SELECT 1 -- ;", False),
        ("SELECT ';", False),
        ('SELECT ";', False),
        ("SELECT 1 /* ;", False),
        ("SELECT $$;", False),
    ],
)
def test_a_statement_is_complete_at_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


class Shell:
    """The shell in a terminal of its own."""

    def __init__(self, home: Path, database: str = ":memory:") -> None:
        self.process = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], "sql", database],
            env=os.environ | {"HOME": str(home), "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm"},
            encoding="utf-8",
            dimensions=(40, 200),
            timeout=30,
        )
        self.process.delaybeforesend = 0.2
        self.prompt()

    def prompt(self) -> None:
        self.process.expect_exact("\x1b[?2004h")  # the terminal is told so whenever typing begins

    def enter(self, text: str, *answers: str) -> None:
        """Type a line and wait for each of the answers in turn, which must differ from what is typed."""
        self.process.send(text + "\r")
        for answer in answers:
            self.process.expect_exact(answer)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    opened = Shell(tmp_path)
    yield opened
    opened.process.close(force=True)


def test_shell_statement_over_several_lines(shell: Shell) -> None:
    shell.enter("SELECT 40 +", "...>")
    shell.enter("2 AS answer;", "42")


def test_shell_survives_errors(shell: Shell) -> None:
    shell.enter("SELECT nonsense;", "Binder Error")
    shell.enter("SELEC 1;", "syntax error")
    shell.enter(".nonsense", "There is no command .nonsense")
    shell.enter("SELECT 6 * 7;", "42")
    assert "Traceback" not in shell.process.before


def test_shell_interrupt_clears_what_is_typed(shell: Shell) -> None:
    shell.enter("SELECT 'never ended", "...>")
    shell.process.sendintr()
    shell.enter("SELECT 6 * 7;", "42")


@pytest.mark.surface
def test_shell_interrupt_stops_the_statement_and_nothing_else(shell: Shell) -> None:
    shell.enter("CREATE TEMP TABLE kept AS SELECT 6 * 7;", "1 row")
    shell.prompt()
    for _ in range(2):
        shell.process.send(ENDLESS + ";\r")
        time.sleep(1)
        shell.process.sendintr()
        shell.process.expect_exact("Stopped.")
        shell.prompt()
    shell.enter("FROM kept;", "42")


def test_shell_interrupt_stops_a_long_result(shell: Shell) -> None:
    shell.process.send("FROM range(100_000_000_000);\r")
    time.sleep(1)
    shell.process.sendintr()
    shell.process.expect_exact("Stopped.")
    shell.enter("SELECT 6 * 7;", "42")


def test_shell_commands_and_leaving(shell: Shell) -> None:
    shell.enter("CREATE TABLE patients (name VARCHAR);")
    shell.prompt()
    shell.enter(".tables", "patients", "table")
    shell.prompt()
    shell.enter(".help", "Ctrl-C")
    shell.prompt()
    shell.process.sendeof()
    shell.process.expect(pexpect.EOF)
    shell.process.close()
    assert shell.process.exitstatus == 0


def test_shell_completes_names(shell: Shell) -> None:
    shell.enter("CREATE TABLE patients AS SELECT 6 * 7;", "1 row")
    shell.prompt()
    shell.process.send("FROM pati\t")
    shell.process.expect_exact("ents")
    shell.enter(";", "42")


def test_shell_completes_options_of_the_call_that_is_typed(shell: Shell) -> None:
    shell.process.send("CALL kanon.refresh('nobody', dry\t")
    shell.process.expect_exact("_run ")
    shell.enter("true);", "no such masked view")
    shell.prompt()
    shell.process.send("CALL kanon.optim\t")
    shell.process.expect_exact("ize")
    shell.enter("('nobody');", "no such masked view")


@pytest.mark.parametrize(
    ("typed", "offered", "not_offered"),
    [
        ("CALL kanon.refresh('v', ", {"dry_run => ", "select", "patients"}, {"k => "}),
        ("SELECT 1; CALL kanon.rebuild('v', k => 5, L", {"l => "}, set()),
        ("CALL kanon.create_masked_view('v', quasi_identifiers => {'a': 'numeric', ", {"patients"}, {"k => "}),
        ("CALL kanon.create_masked_view('v', source => ", {"patients"}, {"k => "}),
        ("CALL kanon.refresh('pat", {"patients"}, {"dry_run => "}),
        ("SELECT kanon.cov", {"kanon.covers"}, {"kanon.overlap"}),
        ("SELECT count(", {"patients"}, {"dry_run => "}),
        (".he", {".help"}, {"patients"}),
    ],
)
@pytest.mark.surface
def test_what_is_offered(
    connection: duckdb.DuckDBPyConnection, typed: str, offered: set[str], not_offered: set[str]
) -> None:
    connection.execute("CREATE TABLE patients AS SELECT 42 AS age")
    found = ShellCompleter(connection).get_completions(Document(typed), CompleteEvent())
    words = {completion.text for completion in found}
    assert offered <= words
    assert not words & not_offered


@pytest.mark.surface
def test_help_explains_every_verb(connection: duckdb.DuckDBPyConnection) -> None:
    verbs = connection.execute(
        "SELECT function_name FROM duckdb_functions() WHERE schema_name = 'kanon' "
        "UNION SELECT view_name FROM duckdb_views() WHERE schema_name = 'kanon'"
    ).fetchall()
    told = explanations()
    assert {verb for (verb,) in verbs} == set(told)
    for verb, text in told.items():
        assert re.fullmatch(rf"(CALL|FROM|SELECT) kanon\.{verb}: .+\.", text), text


def test_shell_explains_a_verb(shell: Shell) -> None:
    shell.enter(".help", "refresh_all", "refreshes every masked view")
    shell.prompt()
    shell.enter(".help kanon.refresh", "makes the next release", "kanon.refresh(view_name, dry_run")
    shell.prompt()
    shell.enter(".help refesh", "did you mean refresh")


def test_shell_remembers_statements_privately(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.enter("SELECT 6 * 7;", "42")
    shell.enter(".quit", "")
    shell.process.expect(pexpect.EOF)
    again = Shell(tmp_path)
    again.enter("\x1b[A\x1b[A", "42")  # two lines back
    again.process.close(force=True)
    assert stat.S_IMODE((tmp_path / ".kanon_duck_history").stat().st_mode) == 0o600


# The demonstration


@pytest.mark.surface
def test_demo_makes_a_masked_view(tmp_path: Path) -> None:
    database = tmp_path / "clinic.duckdb"
    done = run_process("demo", database)
    assert (done.returncode, done.stderr) == (0, "")
    assert ["1", "Edith", "72", "41360", "female", "Arthrosis", "2025-02-01"] in lines(done.stdout)  # everywhere
    with duckdb.connect(str(database), read_only=True) as connection:  # an ordinary client reads the view
        classes = connection.execute(
            "SELECT count(*), sum(weight) FROM patients_masked GROUP BY age, zip, gender"
        ).fetchall()
        [(waiting,)] = connection.execute("SELECT waiting FROM kanon.masked_views").fetchall()
    assert round(sum(people for _, people in classes)) + waiting == 10_000
    assert min(rows for rows, _ in classes) >= 5


def test_demo_does_not_touch_a_table_of_its_name(tmp_path: Path) -> None:
    database = tmp_path / "people.duckdb"
    run("sql", database, "-c", "CREATE TABLE patients AS SELECT 7 AS mine")
    done = run("demo", database)
    assert done.exit_code == 2
    assert '"patients" already exists' in done.stderr
    assert ["7"] in lines(run("sql", database, "-c", "FROM patients").stdout)

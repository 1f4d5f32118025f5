"""The progress bar of long calls: where it is shown, and that nothing is left of it."""

from __future__ import annotations

import builtins
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kanon_duck.runtime.progress import PATIENCE_SECONDS, PHASES, Progress, shown

CALL = (
    "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, independent => true, "
    "quasi_identifiers => {'age': 'numeric'})"
)

SLOW = f"""
import os, signal, sys, threading, time
import kanon_duck
from kanon_duck.runtime import progress
from kanon_duck.maintenance import from_scratch
from kanon_duck.procedures import create_masked_view

def slow(module, name, seconds):
    function = getattr(module, name)
    def slowed(first, *others):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if name == "cluster":
                first.checkpoint(1 - left / seconds)
            time.sleep(0.01)
        return function(first, *others)
    setattr(module, name, slowed)

CALL = "{CALL}"
connection = kanon_duck.connect()
connection.execute("CREATE TABLE people AS SELECT range AS id, range % 60 AS age FROM range(300)")
os.environ["CI"] = "true"  # the bar is not shown, however long it takes
connection.execute(CALL.replace("'masked'", "'first'"))  # compiles what is compiled once
del os.environ["CI"]
"""

EACH_PHASE_SLOW = (
    SLOW
    + """
progress.PATIENCE_SECONDS = 0
slow(create_masked_view, "take_snapshot", 0.3)
for name in ("encode", "cluster", "generalize", "create_classes", "make_current"):
    slow(from_scratch, name, 0.3)
"""
)

SLOW_SHELL = f"""{SLOW}
slow(from_scratch, "cluster", 3)
from rich.console import Console
from kanon_duck.shell.prompt import run_shell
run_shell(connection, Console(highlight=False), Console(stderr=True, highlight=False))
"""


def environment() -> dict[str, str]:
    changed = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    return {name: value for name, value in os.environ.items() if name != "CI"} | changed


@pytest.fixture
def in_terminal(tmp_path: Path) -> Callable[..., Any]:
    """Runs a script (not ``-c``, which DuckDB takes for an interactive session) in a terminal."""

    def spawn(code: str) -> Any:
        script = tmp_path / "script.py"
        script.write_text(code, encoding="utf-8")
        size = (40, 100)
        return pexpect.spawn(
            sys.executable, [str(script)], env=environment(), encoding="utf-8", dimensions=size, timeout=30
        )

    return spawn


def plain(output: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output)


def screen(output: str) -> list[str]:
    """What a terminal shows in the end, line by line."""
    lines = []
    for line in plain(output).replace("\r\n", "\n").split("\n"):
        shown = ""
        for text in line.split("\r"):
            shown = text + shown[len(text) :]
        lines.append(shown.rstrip())
    return lines


@pytest.mark.surface
def test_a_terminal_shows_each_phase_and_keeps_nothing(in_terminal: Any) -> None:
    code = f"{EACH_PHASE_SLOW}\nprint('before')\nconnection.execute(CALL)\nprint('after')"
    process = in_terminal(code)
    output = process.read()
    drawn = re.findall(r"\r(\w+) +[━╸╺]+ +(?:(\d+)% )?\d+ s", plain(output))
    phases = [phase for phase, _ in drawn]
    assert list(dict.fromkeys(phases)) == ["working", *PHASES]
    shares = [int(share) for _, share in drawn if share]
    assert shares == sorted(shares)
    assert len(set(shares)) > len(PHASES)  # also within a phase
    assert [line for line in screen(output) if line] == ["before", "after"]


def test_only_calls_of_more_than_two_seconds_show_it(in_terminal: Any) -> None:
    for seconds, expected in ((0.2, False), (2.5, True)):
        process = in_terminal(f"{SLOW}\nslow(from_scratch, 'cluster', {seconds})\nconnection.execute(CALL)")
        output = process.read()
        assert ("clustering" in output) == expected
        assert [line for line in screen(output) if line] == []


def test_pipes_get_nothing() -> None:
    code = f"{EACH_PHASE_SLOW}\nconnection.execute(CALL)"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("statement", ["pass", "threading.Timer(1, connection.interrupt).start()"])
def test_an_interrupt_clears_it(statement: str, in_terminal: Any) -> None:
    code = f"""{SLOW}
progress.PATIENCE_SECONDS = 0
slow(from_scratch, "cluster", 60)
{statement}
try:
    connection.execute(CALL)
except BaseException as error:
    print("stopped")
    time.sleep(1)  # DuckDB 1.5 does not wait for its thread, which Python must not leave behind
"""
    process = in_terminal(code)
    process.expect("clustering")
    before = process.before + process.after
    if statement == "pass":
        process.expect(r"2 s")
        before += process.before + process.after
        process.sendintr()
    output = before + process.read()
    lines = [line.replace("^C", "").strip() for line in screen(output)]
    assert [line for line in lines if line] == ["stopped"], output[-300:]


@pytest.mark.surface
def test_an_error_clears_it(in_terminal: Any) -> None:
    code = f"""{EACH_PHASE_SLOW}
try:
    connection.execute(CALL.replace("'numeric'", "'missing'"))
except Exception as error:
    print("refused")
"""
    assert [line for line in screen(in_terminal(code).read()) if line] == ["refused"]


def test_the_prompt_of_the_shell_stays_whole(in_terminal: Any) -> None:
    process = in_terminal(SLOW_SHELL)
    typing = "\x1b[?2004h"  # the terminal is told so whenever typing begins
    process.expect_exact(typing)
    process.send(f"{CALL};\r")
    process.expect("clustering")
    process.expect_exact(typing)
    result = [line for line in screen(process.before) if line.strip()]
    assert not any("clustering" in line or "releasing" in line for line in result), result
    process.send(CALL.replace("'masked'", "'other'") + ";\r")
    process.expect("clustering")
    process.sendintr()
    process.expect("Stopped")
    process.expect_exact(typing)
    process.send(".quit\r")
    process.expect(pexpect.EOF)


def test_duckdb_shows_its_own_bar_only_when_ours_is_gone(in_terminal: Any) -> None:
    code = f"""{SLOW}
slow(from_scratch, "cluster", 3)
connection.execute("SET enable_progress_bar = true")  # as it is in an interactive session
connection.execute(CALL)
"""
    output = in_terminal(code).read()
    assert "clustering" in output
    assert "\u2595" not in output[: output.rindex("clustering")]


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Broken(Terminal):
    """A terminal that is gone."""

    def write(self, text: str) -> int:
        raise OSError("gone")


def old_enough() -> Progress:
    return Progress("clustering", 0.5, time.monotonic() - PATIENCE_SECONDS - 1)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which a terminal shows the bar."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("seen")
def test_it_is_there_while_the_body_runs() -> None:
    with redirect_stderr(Terminal()) as terminal:
        with shown(old_enough()):
            assert "clustering" in screen(terminal.getvalue())[0]
            with shown(old_enough()):  # a second call shows nothing beside it
                assert terminal.getvalue().count("clustering") == 1
        assert screen(terminal.getvalue()) == [""]
        with shown(Progress("clustering")), shown(Progress(started=time.monotonic() - 60)):
            pass  # a call that has just begun, and one that waits for another
        assert terminal.getvalue().count("\r") == 3


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("stream", [Broken(), io.StringIO(), None])
def test_a_broken_or_missing_terminal_harms_nobody(stream: Any) -> None:
    with redirect_stderr(stream), shown(old_enough()):
        pass
    with redirect_stderr(Terminal()) as terminal, shown(old_enough()):
        assert "clustering" in terminal.getvalue()


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("TERM", "dumb")])
def test_continuous_integration_and_dumb_terminals_get_nothing(monkeypatch: Any, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with redirect_stderr(Terminal()) as terminal, shown(old_enough()):
        pass
    assert terminal.getvalue() == ""


def test_a_notebook_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    with redirect_stderr(io.StringIO()) as stream, shown(old_enough()):
        assert "clustering" in stream.getvalue()
    assert screen(stream.getvalue()) == [""]


@given(st.lists(st.sampled_from(list(PHASES)) | st.floats(0, 1)))
def test_the_share_never_falls_and_stays_below_one(steps: list[str | float]) -> None:
    reached = Progress("working")
    shares = []
    for step in steps:
        if isinstance(step, str):
            reached.begin(step)
        else:
            reached.done(step)
        shares.append(reached.share or 0.0)
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)

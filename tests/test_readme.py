"""The tour of the README runs, and prints what the README says it prints."""

from __future__ import annotations

import io
import re
from pathlib import Path

import duckdb
from rich.console import Console

from kanon_duck.shell.script import run_script

README = Path(__file__).resolve().parent.parent / "README.md"

STEP = re.compile(r"```sql\n(?P<sql>.*?)```\n\n```text\n(?P<output>.*?)```\n", re.DOTALL)


def printed(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """What the command line prints for some statements."""
    output = io.StringIO()
    run_script(connection, sql, Console(file=output, width=110, highlight=False))
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    return "\n".join(line for line in lines if not re.match(r" *(released_at|seconds) ", line)).strip() + "\n"


def test_the_tour(connection: duckdb.DuckDBPyConnection) -> None:
    text = README.read_text(encoding="utf-8")
    steps = list(STEP.finditer(text))
    assert len(steps) == text.count("```sql\n") > 7, "every SQL block of the README has its output below it"
    for step in steps:
        assert printed(connection, step["sql"]) == step["output"], step["sql"]

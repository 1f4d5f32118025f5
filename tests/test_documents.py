"""The documents are true: their SQL and Python prints what stands below it, and the files they name exist."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from rich.console import Console

import kanon_duck
from kanon_duck.runtime.database import SQL_FOLDER
from kanon_duck.shell.demo import EXAMPLES_FOLDER
from kanon_duck.shell.script import run_script

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

RUN = ("sql", "python")
"""Blocks that are run. The next block is their output."""

NOT_RUN = ("sh", "sql not run")
"""Blocks that say by their first line that they are not run."""

FENCE = re.compile(r"^ *(?:```+|~~~+)", re.MULTILINE)
BLOCK = re.compile(r"^```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```\n", re.MULTILINE)

FOLDERS = {
    "kanon_duck": Path(kanon_duck.__file__).parent,
    "sql": SQL_FOLDER,
    "examples": EXAMPLES_FOLDER,
    "tests": ROOT / "tests",
    "docs": ROOT / "docs",
}
"""Where the files are that a document may name: the tests may run beside an installed package."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

NAMED_FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./]*)`")


class Block(NamedTuple):
    """A block of a document."""

    kind: str
    text: str
    begin: int
    end: int


def blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    found = [Block(each["kind"], each["text"], *each.span()) for each in BLOCK.finditer(text)]
    assert len(FENCE.findall(text)) == 2 * len(found), f"{document.name} has a block that is not closed, or indented"
    return found


def steps(document: Path) -> Iterator[tuple[Block, str]]:
    """The blocks that are run, each with the output that the document shows."""
    text = document.read_text(encoding="utf-8")
    found = blocks(document)
    shown = set()
    for block, following in pairwise([*found, Block("", "", len(text), len(text))]):
        if block.kind in RUN:
            between = text[block.end : following.begin]
            assert following.kind == "text", f"{document.name} shows no output for\n{block.text}"
            assert not between.strip(), f"{document.name} does not show the output directly below\n{block.text}"
            shown.add(following)
            yield block, following.text
        else:
            assert block.kind in NOT_RUN or block in shown, (
                f"{document.name} has a block of kind {block.kind!r} that nothing checks:\n{block.text}"
            )


def printed_by_sql(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """What the command line prints for some statements."""
    output = io.StringIO()
    run_script(connection, sql, Console(file=output, width=110, highlight=False))
    return output.getvalue()


def printed_by_python(variables: dict[str, Any], code: str) -> str:
    """What some lines of Python print."""
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(code, "a block of Python", "exec"), variables)
    return output.getvalue()


def repeatable(output: str) -> str:
    """Output without what differs from run to run: when a release was made, and how long that took."""
    lines = [line.rstrip() for line in output.splitlines()]
    return "\n".join(line for line in lines if not re.match(r" *(released_at|seconds) ", line)).strip("\n") + "\n"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_what_a_document_shows_is_what_happens(
    document: Path, connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variables: dict[str, Any] = {}
    for block, shown in steps(document):
        if block.kind == "sql":
            output = printed_by_sql(connection, block.text)
        else:
            output = printed_by_python(variables, block.text)
        assert repeatable(output) == shown, block.text


def test_there_are_documents_to_run() -> None:
    run = {document.name: len(list(steps(document))) for document in DOCUMENTS}
    assert run["README.md"] >= 4
    assert run["tour.md"] >= 12
    assert run["series-of-releases.md"] >= 4


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_files_that_a_document_names_exist(document: Path) -> None:
    for name in NAMED_FILE.findall(document.read_text(encoding="utf-8")):
        folder, _, path = name.partition("/")
        assert (FOLDERS[folder] / path).exists(), name


def anchors(document: Path) -> set[str]:
    """What a link may name behind #, for each heading of a document."""
    text = BLOCK.sub("", document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(BLOCK.sub("", document.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link

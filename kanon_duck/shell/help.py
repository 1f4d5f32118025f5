"""The texts of .help: how the shell works, and what each verb does."""

from __future__ import annotations

import ast
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table
from rich.text import Text

import kanon_duck.procedures
from kanon_duck.errors import KanonError
from kanon_duck.runtime.arguments import one_of
from kanon_duck.shell.script import print_error

HOW = """\
A statement ends with ; and may take several lines. Tab completes keywords, tables, verbs and their options; the
arrow up brings back earlier statements. Ctrl-C clears what is typed, or stops the running statement; Ctrl-D leaves.
.tables        the tables and views of this database
.help VERB     the options of a verb
.quit          leave
"""

WITHOUT_FILE = {
    "as_of": "FROM kanon.as_of: a release as it was, row for row.",
    "common_ancestor": "SELECT kanon.common_ancestor: the label that stands for all values of a list.",
    "covers": "SELECT kanon.covers: whether a released label may stand for a value.",
    "generalize": "SELECT kanon.generalize: the label of a value at a level of its hierarchy.",
    "hierarchies": "FROM kanon.hierarchies: the hierarchies of this database.",
    "hierarchy_nodes": "FROM kanon.hierarchy_nodes: the labels of every leaf of the hierarchies that are trees.",
    "masked_views": "FROM kanon.masked_views: the masked views with their settings and their status.",
    "overlap": "SELECT kanon.overlap: the share of a released interval that lies in another.",
    "publications": "FROM kanon.publications: what was published where, and whether it is stale.",
    "releases": "FROM kanon.releases: the history, one row for each release.",
}
"""What is plain SQL, and so has no file in `kanon_duck.procedures` that says it."""

_PARAMETERS = """
    SELECT unnest(parameters) FROM duckdb_functions() WHERE schema_name = 'kanon' AND function_name = ?"""


def print_help(connection: duckdb.DuckDBPyConnection, console: Console, errors: Console, verb: str) -> None:
    """Explain the shell and list the verbs, or explain one verb."""
    told = explanations()
    if not verb:
        console.print(HOW)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for name in sorted(told):
            table.add_row(Text(name, style="cyan"), Text(told[name].partition(": ")[2]))
        console.print(table)
        return
    try:
        name = one_of("VERB", verb.removeprefix("kanon."), told, "verb")
    except KanonError as error:
        print_error(errors, str(error))
        return
    console.print(told[name], markup=False)
    parameters = [parameter for (parameter,) in connection.execute(_PARAMETERS, [name]).fetchall()]
    if parameters:
        console.print(f"kanon.{name}({', '.join(parameters)})", style="cyan", markup=False)


def explanations() -> dict[str, str]:
    """What each verb does, in one sentence: that with which its file begins."""
    folder = Path(kanon_duck.procedures.__file__).parent
    files = {file.stem: file for file in folder.glob("*.py") if file.stem != "__init__"}
    return WITHOUT_FILE | {verb: _first_line(file) for verb, file in files.items()}


def _first_line(file: Path) -> str:
    """The first line of a module's docstring, without loading the module, which may load a compiler."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]

"""Completes what is typed in the interactive shell: keywords, tables, columns, procedures and their options."""

from __future__ import annotations

import re
from collections.abc import Iterable

import duckdb
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, WordCompleter
from prompt_toolkit.document import Document

from kanon_duck.shell.calls import unfinished_call

_WORDS = """
    SELECT keyword_name FROM duckdb_keywords()
    UNION SELECT table_name FROM duckdb_tables() WHERE schema_name NOT LIKE 'kanon%'
    UNION SELECT view_name FROM duckdb_views() WHERE schema_name NOT LIKE 'kanon%'
    UNION SELECT column_name FROM duckdb_columns() WHERE NOT internal AND schema_name NOT LIKE 'kanon%'
    UNION SELECT 'kanon.' || function_name FROM duckdb_functions() WHERE schema_name = 'kanon'
    UNION SELECT 'kanon.' || view_name FROM duckdb_views() WHERE schema_name = 'kanon'
    ORDER BY ALL"""

_OPTIONS = """
    SELECT unnest(parameters) FROM duckdb_functions()
    WHERE schema_name = 'kanon' AND function_type = 'table_macro' AND function_name = ?"""

_WORD = re.compile(r"[\w.]+")

COMMANDS = (".help", ".quit", ".tables")


class ShellCompleter(Completer):
    """Asks the database what there is each time, because the statement before may have changed it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand at the cursor: first the options of the call that it is in."""
        typed = document.text_before_cursor
        words = list(COMMANDS) if typed.startswith(".") else [*self._options(typed), *self._ask(_WORDS, [])]
        completer = WordCompleter(words, ignore_case=True, pattern=_WORD)
        return completer.get_completions(Document(_word_at_end(typed)), complete_event)

    def _options(self, typed: str) -> list[str]:
        """Options of the call among whose arguments the cursor is; none where a value is expected."""
        before = typed.removesuffix(_word_at_end(typed)).rstrip()
        verb = unfinished_call(before) if before.endswith(("(", ",")) else None
        if verb is None:
            return []
        return [f"{name} => " for name in self._ask(_OPTIONS, [verb])]

    def _ask(self, query: str, parameters: list[str]) -> list[str]:
        try:
            return [value for (value,) in self._connection.execute(query, parameters).fetchall()]
        except duckdb.Error:  # the transaction that the user has begun is aborted
            return []


def _word_at_end(typed: str) -> str:
    """What has been typed of the word at the cursor."""
    found = re.search(r"[\w.]*\Z", typed)
    return found[0] if found else ""

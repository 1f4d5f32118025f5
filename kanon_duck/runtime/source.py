"""Reads source texts: the name of a table or view, or one SELECT that only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database, StatementError

_QUERY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(?:SELECT|FROM|WITH)\b", re.IGNORECASE | re.DOTALL)

_FIND_TABLE = """
    WITH readable AS (
        SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT temporary
        UNION ALL
        SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT temporary
    )
    SELECT database_name, schema_name, table_name FROM readable
    WHERE lower(database_name) = lower(?) AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?)
"""


OF_THE_SESSION = frozenset(["getvariable", "current_setting", "txid_current"])
"""Functions that DuckDB calls stable, but whose results depend on the session."""


def is_query(text: str) -> bool:
    """Whether a source text is a query: it begins with SELECT, FROM or WITH."""
    return _QUERY.match(text) is not None


def find_table(call: Call, parts: tuple[str, ...]) -> exp.Table | None:
    """The table or view of that name, fully qualified, or None.

    An unqualified name lives in the caller's current schema. Of two parts the first is a schema of the
    caller's database, else an attached database. Temporary objects belong to one connection and are not
    found.
    """
    if len(parts) > 3:
        return None
    places: list[tuple[str, ...]] = [parts[:2]]
    if len(parts) == 1:
        places = [(call.catalog, call.schema)]
    elif len(parts) == 2:
        places = [(call.catalog, parts[0]), (parts[0], "main")]
    for place in places:
        found = call.database.row(_FIND_TABLE, (*place, parts[-1]))
        if found is not None:
            return names.table(found)
    return None


def read_source(call: Call, text: str, argument: str) -> exp.Query:
    """The rows that a source text stands for, as a SELECT that is safe to build upon.

    Parameters
    ----------
    call : Call
        Tells where unqualified names live.
    text : str
        The name of a table or view, or exactly one SELECT without volatile functions.
    argument : str
        The argument that held the text, for messages.

    Raises
    ------
    KanonError
        When there is no such table or the query is not of that kind or cannot be read.
    """
    if is_query(text):
        return read_query(call, text, argument)
    table = find_table(call, names.parse(text))
    if table is None and _serialized(call.database, text).get("error_type") != "parser":
        raise KanonError(f"{argument}: {text!r} is another statement; write a table, a view or one SELECT")
    if table is None:
        raise KanonError(
            f"{argument}: there is no table or view {text}; write an existing one "
            "(temporary and uncommitted ones cannot be seen), or a SELECT, as FROM 'people.csv' is of a file"
        )
    return exp.select("*").from_(table)


def read_query(call: Call, text: str, argument: str) -> exp.Query:
    """Check a query that a user typed: it must be one statement, only read, and give the same rows each time."""
    serialized = _serialized(call.database, text)
    if serialized["error"]:
        raise KanonError(f"{argument}: only a SELECT can be used here, and {text!r} is none that DuckDB can read")
    if len(serialized["statements"]) != 1:
        raise KanonError(f"{argument}: {text!r} holds {len(serialized['statements'])} statements; write one SELECT")
    volatile = _volatile_function(call.database, serialized)
    if volatile is not None:
        raise KanonError(
            f"{argument}: the query uses {volatile}, which may give another result each time; "
            "write a query that always gives the same rows"
        )
    # the text stays a string for DuckDB's own parser: it is never pasted into a statement of ours
    query = exp.select("*").from_(table_function("query", exp.Literal.string(text)))
    try:
        with call.in_callers_schema():
            call.database.execute(query.limit(0))
    except StatementError as error:
        raise KanonError(f"{argument}: the query cannot be read: {error.reason}") from error
    return query


def table_function(name: str, *arguments: exp.Expression) -> exp.Table:
    """A call of DuckDB's own table function, even if the caller has a macro of the same name."""
    called = exp.Anonymous(this=name, expressions=[*arguments])
    return exp.Table(this=called, db=exp.to_identifier("main"), catalog=exp.to_identifier("system"))


def columns(call: Call, query: exp.Query) -> list[tuple[str, str]]:
    """Names and DuckDB types of a query's columns."""
    with call.in_callers_schema():
        return [row[:2] for row in call.database.rows(exp.Describe(this=query))]


def _volatile_function(database: Database, serialized: Any) -> str | None:
    """The first volatile function (or sample) that a serialized query uses, also by way of macros."""
    definitions = {
        name.lower(): definition
        for name, definition in database.rows(
            "SELECT function_name, any_value(macro_definition) FROM duckdb_functions() "
            "WHERE macro_definition IS NOT NULL AND NOT internal GROUP BY ALL"
        )
    }
    volatile = {
        name.lower()
        for (name,) in database.rows(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE stability = 'VOLATILE' AND function_name <> 'error'"
        )
    } | OF_THE_SESSION
    waiting, seen = [serialized], set()
    while waiting:
        for key, value in _entries(waiting.pop()):
            if key == "sample" and value:
                return "a sample"
            name = str(value).lower()
            if key != "function_name" or name in seen:
                continue
            seen.add(name)
            if name in volatile:
                return f"{name}()"
            if name in definitions:
                definition = definitions[name]  # of a table macro a query, of a scalar one an expression
                waiting.append(_serialized(database, definition if is_query(definition) else f"SELECT {definition}"))
    return None


def _serialized(database: Database, text: str) -> Any:
    """The syntax tree of SELECTs; an error document for other statements, and for text that DuckDB cannot read."""
    return json.loads(database.value("SELECT json_serialize_sql(?::VARCHAR)", [text]))


def _entries(node: Any) -> Iterator[tuple[str, Any]]:
    """All key-value pairs of a JSON document, at every depth."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield key, value
            yield from _entries(value)
    elif isinstance(node, list):
        for value in node:
            yield from _entries(value)

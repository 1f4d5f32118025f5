"""Reads source texts: the name of a table or view, or one SELECT that only reads."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.runtime import names
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import StatementError
from kanon_duck.runtime.stability import QUERY, serialized, stability

_FIND_TABLE = """
    WITH readable AS (
        SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT temporary
        UNION ALL
        SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT temporary
    )
    SELECT database_name, schema_name, table_name FROM readable
    WHERE lower(database_name) = lower(?) AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?)
"""


def is_query(text: str) -> bool:
    """Whether a source text is a query: it begins with SELECT, FROM or WITH, parentheses aside."""
    return QUERY.match(text) is not None


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


@dataclass(frozen=True)
class Source:
    """What a source text stands for.

    Attributes
    ----------
    query : sqlglot expression
        A SELECT that is safe to build upon.
    warnings : list of str
        What of it may change although no table does.
    """

    query: exp.Query
    warnings: list[str]


def read_source(call: Call, text: str, argument: str) -> exp.Query:
    """The rows that a source text stands for, as a SELECT that is safe to build upon; as `find_source`."""
    return find_source(call, text, argument).query


def find_source(call: Call, text: str, argument: str) -> Source:
    """What a source text stands for.

    Parameters
    ----------
    call : Call
        Tells where unqualified names live.
    text : str
        The name of a table or view, or exactly one SELECT.
    argument : str
        The argument that held the text, for messages.

    Raises
    ------
    KanonError
        When there is no such table, the query is not of that kind or cannot be read, or the source may give
        other rows each time.
    """
    query = _checked_query(call, text, argument) if is_query(text) else _table_or_view(call, text, argument)
    found = stability(call, text)
    if found.unstable is not None:
        raise KanonError(
            f"{argument}: {found.unstable}, which may give another result each time; "
            "write a query that always gives the same rows"
        )
    if is_query(text):
        _refuse_unreadable(call, query, argument)
    return Source(query, found.warnings)


def _table_or_view(call: Call, text: str, argument: str) -> exp.Query:
    """All rows of a table or view."""
    table = find_table(call, names.parse(text))
    if table is None and serialized(call.database, text).get("error_type") != "parser":
        raise KanonError(f"{argument}: {shown(text)} is another statement; write a table, a view or one SELECT")
    if table is None:
        raise KanonError(
            f"{argument}: there is no table or view {text}; write an existing one "
            "(temporary and uncommitted ones cannot be seen), or a SELECT, as FROM 'people.csv' is of a file"
        )
    return exp.select("*").from_(table)


def _checked_query(call: Call, text: str, argument: str) -> exp.Query:
    """The rows of a query typed by a user, which is one statement and only reads."""
    tree = serialized(call.database, text)
    if tree["error"]:
        raise KanonError(
            f"{argument}: only a SELECT can be used here, and {shown(text)} is none that DuckDB can read: "
            f"{tree['error_message']}"
        )
    if len(tree["statements"]) != 1:
        raise KanonError(f"{argument}: {shown(text)} holds {len(tree['statements'])} statements; write one SELECT")
    # the text stays a string for DuckDB's own parser: it is never pasted into a statement of ours
    return exp.select("*").from_(table_function("query", exp.Literal.string(text)))


def _refuse_unreadable(call: Call, query: exp.Query, argument: str) -> None:
    """Plan a query, to hear DuckDB's reason where it cannot be read."""
    try:
        with call.in_callers_schema():
            call.database.execute(exp.select("*").from_(query.subquery("source")).limit(0))
    except StatementError as error:
        raise KanonError(f"{argument}: the query cannot be read: {error.reason}") from error


def table_function(name: str, *arguments: exp.Expression) -> exp.Table:
    """A call of DuckDB's own table function, even if the caller has a macro of the same name."""
    called = exp.Anonymous(this=name, expressions=[*arguments])
    return exp.Table(this=called, db=exp.to_identifier("main"), catalog=exp.to_identifier("system"))


def columns(call: Call, query: exp.Query) -> list[tuple[str, str]]:
    """Names and DuckDB types of a query's columns."""
    with call.in_callers_schema():
        return [row[:2] for row in call.database.rows(exp.Describe(this=query))]

"""Whether a query gives the same rows each time it is read, also where views, macros and query() stand between.

What a query does is seen from DuckDB's own syntax tree of it, whatever the letters are in which it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kanon_duck.errors import KanonError
from kanon_duck.runtime import names
from kanon_duck.runtime.arguments import fold
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database

QUERY = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|$)|/\*.*?\*/)*(?:SELECT|FROM|WITH)\b", re.IGNORECASE | re.DOTALL)
"""How a query begins."""

OF_THE_SESSION = frozenset(["getvariable", "current_setting", "txid_current"])
"""Functions that DuckDB calls stable, but whose results are another session's own."""

BY_ORDER = frozenset(["row_number", "ntile", "lead", "lag", "first_value", "last_value", "nth_value", "fill"])
"""Window functions whose results follow the order of the rows."""

CHOOSING = frozenset(
    ["first", "last", "any_value", "arbitrary", "list", "array_agg", "string_agg", "group_concat", "listagg"]
)
"""Aggregates whose results follow the order of the rows where a group has several values."""

TIMES_AS_COLUMNS = frozenset(["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"])
"""Functions of the present time that are written without parentheses, as columns are."""

TIMES = TIMES_AS_COLUMNS | frozenset(
    ["now", "today", "get_current_time", "get_current_timestamp"]
    + ["current_localtime", "current_localtimestamp", "transaction_timestamp"]
)
"""All functions of the present time, but for age() of one moment."""

PROCEDURE = "a source cannot call a procedure of kanon_duck: store its result in a table"
"""What is said of a source that does."""

Node = dict[str, Any]
"""A part of a syntax tree."""

Name = tuple[str, str, str]
"""Database, schema and name of a table or view, without the difference of case."""


@dataclass(frozen=True)
class Stability:
    """What a query is like that is read again and again.

    Attributes
    ----------
    unstable : str or None
        What may give other rows each time, and where it stands; None where nothing does.
    warnings : list of str
        What may give other values although no table has changed.
    """

    unstable: str | None
    warnings: list[str]


@dataclass(frozen=True)
class _Text:
    """A query that the rows go through: the one asked about, or that of a view or macro.

    Attributes
    ----------
    where : str
        Where it stands, for messages.
    query : str
    place : (str, str)
        Database and schema in which its names are looked up first.
    """

    where: str
    query: str
    place: tuple[str, str]


def stability(call: Call, text: str) -> Stability:
    """Look through a query, or a table or view by name, and all that it reads."""
    reading = _Reading(call)
    first = _Text("the query", text, reading.here)
    waiting = [first] if QUERY.match(text) else reading.texts_of_relation(names.parse(text), first)
    seen: set[_Text] = set()
    warnings: dict[str, None] = {}
    while waiting:
        text_read = waiting.pop()
        if text_read in seen:
            continue
        seen.add(text_read)
        nodes = list(_nodes(serialized(call.database, text_read.query)))
        unstable = "rowid" if reading.uses_rowid(nodes, text_read) else None
        for node in nodes:
            unstable = unstable or reading.unstable(node)
            if unstable is not None:
                return Stability(f"{text_read.where} uses {unstable}", [])
            if (moving := _moving(node)) is not None:
                warnings[f"{text_read.where} uses {moving}"] = None
        waiting += reading.texts_of(nodes, text_read)
    return Stability(None, list(warnings))


def serialized(database: Database, text: str) -> Any:
    """The syntax tree of SELECTs, or the error that these are other statements or none that DuckDB can read."""
    return json.loads(database.value("SELECT json_serialize_sql(?::VARCHAR)", [text]))


class _Reading:
    """What names mean in the database that a query is read in.

    Attributes
    ----------
    here : (str, str)
        The caller's database and schema.
    relations : dict
        Statement of each view, None for a table.
    """

    def __init__(self, call: Call) -> None:
        self._database = call.database
        self.here = (call.catalog, call.schema)
        relations = call.database.rows(
            "SELECT database_name, schema_name, table_name, NULL FROM duckdb_tables() WHERE NOT temporary UNION ALL "
            "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT temporary AND NOT internal"
        )
        self.relations: dict[Name, str | None] = {_name(*parts): statement for *parts, statement in relations}

    @cached_property
    def _macros(self) -> dict[str, list[str]]:
        """What the macros of each name stand for."""
        macros: dict[str, list[str]] = {}
        for name, definition in self._database.rows(
            "SELECT DISTINCT function_name, macro_definition FROM duckdb_functions() "
            "WHERE macro_definition IS NOT NULL AND NOT internal"
        ):
            macros.setdefault(fold(name), []).append(definition)
        return macros

    @cached_property
    def _volatile(self) -> frozenset[str]:
        """Functions that may give another result each time they are called."""
        names_found = self._database.rows(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE stability = 'VOLATILE' AND function_name <> 'error'"
        )
        return OF_THE_SESSION.union(fold(name) for (name,) in names_found)

    def unstable(self, node: Node) -> str | None:
        """What a part of a query does that may give other rows each time, None where it does nothing of the kind.

        Raises
        ------
        KanonError
            When it calls a procedure.
        """
        function = _function(node)
        if function == "run" and node.get("schema") == "kanon_private":
            raise KanonError(PROCEDURE)
        if function and function in self._volatile:
            return f"{function}()"
        if node.get("sample"):
            return "a sample"
        if node.get("class") == "WINDOW" and not node["orders"] and not node["arg_orders"]:
            counts_rows = "ROWS" in node["start"] + node["end"]
            return f"{function}() OVER a window without ORDER BY" if function in BY_ORDER or counts_rows else None
        modifiers = {modifier["type"]: modifier for modifier in node.get("modifiers", [])}
        if "ORDER_MODIFIER" not in modifiers:
            if any(kind.startswith("LIMIT") for kind in modifiers):
                return "LIMIT without ORDER BY"
            if modifiers.get("DISTINCT_MODIFIER", {}).get("distinct_on_targets"):
                return "DISTINCT ON without ORDER BY"
        return "a POSITIONAL JOIN" if node.get("ref_type") == "POSITIONAL" else None

    def uses_rowid(self, nodes: list[Node], text: _Text) -> bool:
        """Whether a query uses the place of a row in its table, which changes when others are deleted.

        A column that somebody has called rowid is no such place.
        """
        used = any(node.get("class") == "COLUMN_REF" and fold(node["column_names"][-1]) == "rowid" for node in nodes)
        if not used or any(fold(str(node.get("alias", ""))) == "rowid" for node in nodes):
            return False
        called_so = {
            _name(*parts)
            for parts in self._database.rows(
                "SELECT database_name, schema_name, table_name FROM duckdb_columns() WHERE lower(column_name) = 'rowid'"
            )
        }
        found = [self._resolve(parts, text) for node in nodes if (parts := _relation(node))]
        return all(name is not None and name not in called_so for name in found)

    def texts_of(self, nodes: list[Node], text: _Text) -> list[_Text]:
        """The views and macros that a query goes through, and what it hands to query() and query_table()."""
        shared = {(fold(each["key"]),) for node in nodes for each in node.get("map", [])}  # the names of WITH
        texts: list[_Text] = []
        for node in nodes:
            parts, function, given = _relation(node), _function(node), _first_argument(node)
            if parts and tuple(map(fold, parts)) not in shared:
                texts += self.texts_of_relation(parts, text)
            elif function == "query" and given is not None:
                texts.append(_Text(text.where, given, text.place))
            elif function == "query_table" and given is not None:
                texts += self.texts_of_relation(names.parse(given), text)
            for definition in self._macros.get(function, []) if function else []:
                # of a table macro a query, of a scalar one an expression
                query = definition if QUERY.match(definition) else f"SELECT {definition}"
                texts.append(_Text(f"macro {function}", query, text.place))
        return texts

    def texts_of_relation(self, parts: tuple[str, ...], text: _Text) -> list[_Text]:
        """The query of a view; nothing where the name is that of a table, or of a file."""
        name = self._resolve(parts, text)
        statement = None if name is None else self.relations[name]
        if name is None or statement is None:
            return []
        for beginning in re.finditer(r"\bAS\b", statement):  # the first may be part of a name
            query = statement[beginning.end() :]
            if not serialized(self._database, query)["error"]:
                return [_Text(f"view {names.display(parts)}", query, name[:2])]
        return []

    def _resolve(self, parts: tuple[str, ...], text: _Text) -> Name | None:
        """The table or view that a name means in a text: as in DuckDB, a view's own schema comes first."""
        places = [text.place, self.here, (text.place[0], "main")]
        if len(parts) == 2:
            places = [(base, parts[0]) for base, _ in places] + [(parts[0], "main")]
        elif len(parts) == 3:
            places = [(parts[0], parts[1])]
        found = (_name(*place, parts[-1]) for place in places)
        return next((name for name in found if name in self.relations), None)


def _moving(node: Node) -> str | None:
    """What a part of a query does that may give other values without a change of any table."""
    function = _function(node)
    column = fold(".".join(node.get("column_names", [])))
    if column in TIMES_AS_COLUMNS:
        function = column
    if function in TIMES or (function == "age" and len(_arguments(node)) == 1):
        return f"{function}: rows change as time passes, and each refresh takes that for a change of the source"
    if node.get("class") == "FUNCTION" and function in CHOOSING and not node["order_bys"].get("orders"):
        return f"{function}() without ORDER BY: among several values, each refresh may find others"
    return None


def _nodes(tree: Any) -> Iterator[Node]:
    """All parts of a syntax tree, at every depth."""
    parts: list[Any] = tree if isinstance(tree, list) else []
    if isinstance(tree, dict):
        yield tree
        parts = list(tree.values())
    for part in parts:
        yield from _nodes(part)


def _name(*parts: str) -> Name:
    """A name as it is looked up."""
    base, schema, name = map(fold, parts)
    return base, schema, name


def _function(node: Node) -> str:
    """The name of the function that a part of a query calls, empty where it calls none."""
    return fold(str(node.get("function_name", "")))


def _relation(node: Node) -> tuple[str, ...]:
    """The name of the table or view that a part of a query reads, empty where it reads none."""
    if node.get("type") != "BASE_TABLE":
        return ()
    return tuple(part for part in (node["catalog_name"], node["schema_name"], node["table_name"]) if part)


def _arguments(node: Node) -> list[Node]:
    """The arguments of a call; DuckDB before 2.0 calls them children."""
    given: list[Node] = node.get("arguments") or node.get("children") or []
    return [each.get("expression", each) for each in given]


def _first_argument(node: Node) -> str | None:
    """The first argument of a call where it is a text."""
    first = next(iter(_arguments(node)), {})
    constant = first.get("literal") or first.get("value")  # the latter before 2.0
    text = constant.get("text", constant.get("value")) if isinstance(constant, dict) else None
    return text if isinstance(text, str) else None

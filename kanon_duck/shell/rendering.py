"""Prints results in a terminal, as tables or row by row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

TABLE_ROWS = 40
"""A table shows at most this many rows."""

RECORDS = 10
"""A result that is too wide for a table shows at most this many rows, each as a list of its columns."""

WIDEST_CELL = 60
"""Longer text is continued on the next line of its cell."""

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Result:
    """What a statement returned.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    types : list of str
        Their DuckDB types.
    rows : list of tuple
        The first rows, `TABLE_ROWS` of them at most.
    total : int
        Number of rows of the whole result.
    """

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]
    total: int


def print_result(console: Console, result: Result) -> None:
    """Print a result as a table, or row by row if a table would be too wide; say if rows were left out."""
    table = _table(result)
    if Measurement.get(console, console.options.update_width(100_000), table).maximum <= console.width:
        shown = len(result.rows)
        console.print(table)
    else:
        shown = min(len(result.rows), RECORDS)
        for number, row in enumerate(result.rows[:shown], start=1):
            console.print(_record(result, row, number, console.width // 2))
    if result.total == 0:
        console.print("no rows", style="dim")
    elif shown < result.total:
        console.print(f"the first {shown} of {result.total:,} rows", style="dim")
    console.print()


def print_whole(console: Console, rows: list[dict[str, Any]]) -> None:
    """Print all rows as one table, with rounded numbers and times; where nobody watches, as wide as it needs."""
    if not rows:
        console.print("no rows", style="dim")
        return
    types = ["DOUBLE" if all(_is_amount(row[name]) for row in rows) else "VARCHAR" for name in rows[0]]
    table = _table(Result(list(rows[0]), types, [tuple(map(_rounded, row.values())) for row in rows], len(rows)))
    if not console.is_terminal:
        widest = Measurement.get(console, console.options.update_width(100_000), table).maximum
        console = Console(file=console.file, width=widest)
    console.print(table)


def _table(result: Result) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for position, (name, type_name) in enumerate(zip(result.columns, result.types, strict=True)):
        drawing = any("\n" in str(row[position]) for row in result.rows)  # a query plan must not be folded
        table.add_column(
            Text(name),
            justify="right" if _is_number(type_name) else "left",
            overflow="fold",
            max_width=None if drawing else max(WIDEST_CELL, len(name)),
        )
    for row in result.rows:
        table.add_row(*map(_cell, row))
    return table


def _record(result: Result, row: tuple[Any, ...], number: int, widest_name: int) -> Table:
    record = Table(box=None, pad_edge=False, show_header=result.total > 1)
    record.add_column(Text(f"row {number}"), style="cyan", overflow="fold", max_width=widest_name)
    record.add_column(overflow="fold")
    for name, value in zip(result.columns, row, strict=True):
        record.add_row(Text(name), _cell(value))
    return record


def _is_number(type_name: str) -> bool:
    return type_name.startswith((*NUMBERS, *(f"U{name}" for name in NUMBERS))) and not type_name.endswith("]")


def _is_amount(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 4)
        case datetime():
            return value.replace(microsecond=0)
        case _:
            return value


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(_text(value))


def _text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return "[" + ", ".join(map(_text, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_text(name)}: {_text(item)}" for name, item in value.items()) + "}"
        case _:
            return str(value)

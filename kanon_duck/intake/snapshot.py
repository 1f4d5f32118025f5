"""Reads the rows of the source once per call, so that all later steps work on the same rows."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from kanon_duck.catalog.columns import columns_by_role, private_names
from kanon_duck.catalog.settings import Settings
from kanon_duck.errors import KanonError
from kanon_duck.kernels import wake
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.parallel import in_background


class Snapshot(NamedTuple):
    """The rows of the source that are to be encoded, as they were when the call read them.

    Attributes
    ----------
    table : str
        Temporary table with the source's columns by role; rows are numbered by rowid.
    rows : int
    """

    table: str
    rows: int


def key_text(columns: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """A key as a text, from the names of its columns and what holds them: JSON of several, NULL of none."""
    texts = [exp.cast(column, "VARCHAR") for _, column in columns]
    if len(texts) < 2:
        return texts[0] if texts else exp.null()
    pairs = [part for (name, _), text in zip(columns, texts, strict=True) for part in (exp.Literal.string(name), text)]
    return exp.cast(exp.Anonymous(this="json_object", expressions=pairs), "VARCHAR")


def take_snapshot(call: Call, settings: Settings) -> Snapshot:
    """Read the source.

    Raises
    ------
    KanonError
        When a key column is NULL.
    """
    query = exp.select(*columns_by_role(settings)).from_(settings.query.subquery("source"))
    with in_background(wake):
        table = create_temporary(call, "temp.kanon_snapshot", query)
    rows = int(call.database.value(f"SELECT count(*) FROM {table}"))
    if settings.key and rows:
        refuse_null_keys(call.database, settings, table)
    return Snapshot(table, rows)


def create_temporary(call: Call, name: str, query: exp.Query) -> str:
    """Make a temporary table of a query that reads the source; returns its name."""
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    call.database.execute(f"DROP TABLE IF EXISTS {name}")
    with call.in_callers_schema():
        call.database.execute(exp.Create(this=exp.to_table(name), kind="TABLE", properties=temporary, expression=query))
    return name


def refuse_null_keys(database: Database, settings: Settings, table: str) -> None:
    """A key is never NULL."""
    counts = ", ".join(f"count(*) - count({column})" for column in private_names(settings, "key"))
    for name, nulls in zip(settings.key, database.rows(f"SELECT {counts} FROM {table}")[0], strict=True):
        if nulls:
            raise KanonError(f"key {name} is NULL in {nulls} rows of the source: name columns that are never NULL")


def refuse_repeated_keys(database: Database, settings: Settings, table: str) -> None:
    """A key is never the same twice."""
    names = ", ".join(private_names(settings, "key"))
    repeated = database.value(
        f"SELECT count(*) FROM (SELECT {names} FROM {table} GROUP BY {names} HAVING count(*) > 1)"
    )
    if repeated:
        raise repeated_keys(settings, repeated)


def repeated_keys(settings: Settings, values: int) -> KanonError:
    """What is said of a key that is not unique."""
    return KanonError(
        f"key {', '.join(settings.key)} is not unique: {values} of its values stand in several rows of the "
        "source; name columns that identify one row"
    )

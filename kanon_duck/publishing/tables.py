"""Writes releases into tables of any catalog that DuckDB can write, and makes sure that they arrived."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import Content
from kanon_duck.runtime.database import Database


def write_table(database: Database, content: Content, table: exp.Table, comments: bool = True) -> None:
    """Let a table, which may be there already, hold a release and nothing else."""
    database.execute(exp.Create(this=table, kind="TABLE", replace=True, expression=content.in_order))
    if comments:
        database.execute(exp.Comment(this=table, kind="TABLE", expression=exp.Literal.string(content.comment)))
        for name, comment in content.column_comments.items():
            column = exp.column(name, *reversed([part.name for part in table.parts]), quoted=True)
            database.execute(exp.Comment(this=column, kind="COLUMN", expression=exp.Literal.string(comment)))


def refuse_other_rows(database: Database, expected: tuple[int, int], content: Content, rows: exp.Query) -> None:
    """Read rows back, and refuse others than those of the release.

    Raises
    ------
    KanonError
        With the masked view.
    """
    if fingerprint(database, content, rows) != expected:
        raise KanonError(
            f"masked view {content.view.name} reads back from the target as other rows than release {content.release} "
            "has: nothing was published; a column may have a type that this kind of target cannot hold"
        )


def fingerprint(database: Database, content: Content, rows: exp.Query) -> tuple[int, int]:
    """How many rows there are, and the sum of their hashes: the same for the same rows in any order."""
    columns = [exp.cast(exp.column(name, quoted=True), kind, dialect="duckdb") for name, kind in content.types.items()]
    of_row = exp.func("hash", *columns, dialect="duckdb").sql(dialect="duckdb")
    total = exp.select("count(*)", f"coalesce(sum(CAST({of_row} AS HUGEINT)), 0)", dialect="duckdb")
    count, hashes = database.rows(total.from_(rows.subquery("published")))[0]
    return int(count), int(hashes)


def refuse_violations(database: Database, verification: str) -> None:
    """Refuse what does not pass its own ``verify.sql``.

    Raises
    ------
    KanonError
        With the first requirement that does not hold.
    """
    found = database.records(verification)
    if found:
        raise KanonError(
            f"table {found[0]['table_name']} would break {found[0]['requirement']} = {found[0]['required']:g} in the "
            "target: nothing was published; please report this as an error of kanon_duck"
        )

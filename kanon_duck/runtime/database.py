"""The only place that executes SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.runtime.arrow import array

SQL_FOLDER = Path(__file__).parents[1] / "sql"
if not SQL_FOLDER.is_dir():  # a source checkout: the wheel carries the folder inside the package
    SQL_FOLDER = Path(__file__).parents[2] / "sql"

Statement = str | exp.Expression

BATCH_ROWS, VECTOR_ROWS = 61_440, 2048
"""The most and the fewest rows of an Arrow table that one of DuckDB's threads reads at a time: half of a row group, and
one of DuckDB's vectors. If it reads and stores a large table in smaller pieces, DuckDB copies the rows once more to
fill row groups."""

READS_ARROW_IN_JOINS = int(duckdb.__version__.split(".")[0]) >= 2
"""Before 2.0, DuckDB may push a filter from one side of a join down to an Arrow table that does not support it."""


TOLD_LATER = (
    "Invalid unicode",
    "Expected Number of Columns",
    "Error when converting column",
    "Value with unterminated quote",
    "Maximum line size",
    "The CSV Parser state machine",
    "Candidate bindings",
    "Did you mean",
)
"""How lines of DuckDB's messages begin that tell the reason after the first line. Others are left out: they may hold
lines of data."""


class StatementError(KanonError):
    """DuckDB refused one of kanon_duck's statements. The message holds DuckDB's words and the statement."""

    @property
    def reason(self) -> str:
        """DuckDB's words, or a clearer sentence if they do not say what to do."""
        first, *later = str(self.__cause__).splitlines()
        if "read-only mode" in first:
            return "the database is open read-only: open it for writing to change anything"
        return ": ".join([first, *(line for line in later if line.startswith(TOLD_LATER))])


def _text(statement: Statement) -> str:
    """A statement as DuckDB reads it."""
    return statement if isinstance(statement, str) else statement.sql(dialect="duckdb")


@contextmanager
def _carrying(text: str) -> Iterator[None]:
    """Add the statement to an error of DuckDB; raise Ctrl-C, which DuckDB tells as a RuntimeError, as what it is."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error
    except duckdb.Error as error:
        raise StatementError(f"{error}\nin the statement: {shorten(text, 2000)}") from error


class Database:
    """The connection on which kanon_duck works: a cursor of its own, never the caller's connection.

    A statement is plain text written in kanon_duck, or a sqlglot expression if names or a user's text are part of it.
    Values are bound parameters.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def execute(self, statement: Statement, parameters: Sequence[Any] = ()) -> Database:
        """Run one statement (or a script without parameters).

        Raises
        ------
        StatementError
            With DuckDB's message and the statement.
        """
        text = _text(statement)
        with _carrying(text):
            self._cursor.execute(text, list(parameters) or None)
        return self

    def rows(self, statement: Statement, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, as tuples."""
        text = _text(statement)
        self.execute(text, parameters)
        with _carrying(text):  # a result may be computed only while it is read
            return self._cursor.fetchall()

    def records(self, statement: Statement, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """All rows of a query, as dictionaries by column name."""
        self.execute(statement, parameters)
        names = [column[0] for column in self._cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in self._cursor.fetchall()]

    def row(self, statement: Statement, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        rows = self.rows(statement, parameters)
        return rows[0] if rows else None

    def value(self, statement: Statement, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.row(statement, parameters)
        return None if row is None else row[0]

    def arrow(self, statement: Statement, parameters: Sequence[Any] = ()) -> pa.Table:
        """The result of a query as an Arrow table."""
        text = _text(statement)
        with _carrying(text):
            return self._cursor.sql(text, params=list(parameters) or None).to_arrow_table()

    def batches(self, statement: Statement) -> Iterator[pa.RecordBatch]:
        """The result of a query as Arrow batches, read one by one."""
        text = _text(statement)
        with _carrying(text):
            yield from self._cursor.sql(text).to_arrow_reader(BATCH_ROWS)

    def numpy(self, statement: Statement, parameters: Sequence[Any] = ()) -> dict[str, Any]:
        """The result of a query as NumPy arrays by column name; all columns must be numbers without NULLs."""
        table = self.arrow(statement, parameters)
        return {name: array(table[name]) for name in table.column_names}

    def register(self, name: str, table: pa.Table) -> None:
        """Let statements on this connection read an Arrow table under a name, until `unregister`.

        After an error there is no need to unregister, because the error ends the call and closes the connection.
        """
        rows = min(BATCH_ROWS, max(VECTOR_ROWS, -(-len(table) // 2)))  # two threads have something to read
        batches = table.combine_chunks().to_batches(max_chunksize=rows)
        arrow = pa.Table.from_batches(batches, table.schema)
        if READS_ARROW_IN_JOINS:
            self._cursor.register(name, arrow)
            return
        self._cursor.register(f"{name}_in_arrow", arrow)
        self.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} AS FROM {name}_in_arrow")
        self._cursor.unregister(f"{name}_in_arrow")

    def unregister(self, name: str) -> None:
        """Forget a registered Arrow table."""
        if READS_ARROW_IN_JOINS:
            self._cursor.unregister(name)
        else:
            self.execute(f"DROP TABLE temp.{name}")

    def interrupt(self) -> None:
        """Stop the statement that runs, if any; called from another thread."""
        self._cursor.interrupt()

    def close(self) -> None:
        """Close the cursor; an open transaction is rolled back."""
        self._cursor.close()


def open_file(path: Path, read_only: bool = False) -> Database:
    """A database file of its own, opened apart from the owner's database; `Database.close` closes it.

    Guarantee: what is read is the file that has this name now, also where this process still reads an older one, as
    DuckDB shares what `duckdb.connect` has opened, and not what is attached.

    Raises
    ------
    StatementError
        When DuckDB cannot open it.
    """
    with _carrying(f"-- open {path}"):
        if not read_only:
            return Database(duckdb.connect(str(path)))
        connection = duckdb.connect()
        try:
            literal = exp.Literal.string(str(path)).sql(dialect="duckdb")
            connection.execute(f"ATTACH {literal} AS opened_file (TYPE duckdb, READ_ONLY); USE opened_file")
        except duckdb.Error:
            connection.close()
            raise
        return Database(connection)


def script(name: str) -> str:
    """The text of a file of the ``sql`` folder."""
    return (SQL_FOLDER / name).read_text(encoding="utf-8")

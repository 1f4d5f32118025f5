"""The call of a procedure: its arguments, its transaction, and how it can be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from kanon_duck.runtime.database import Database

Row = dict[str, Any]

OURS = ("kanon_private", "kanon", "kanon_released", "kanon_history", "kanon_history_classes")
"""The schemas of kanon_duck; see ``sql/catalog.sql``."""


def no_checkpoint(share: float | None = None) -> None:
    """A checkpoint for work that nobody can interrupt: tests and short work."""


def no_phase(name: str) -> None:
    """A phase for work whose progress nobody watches."""


@dataclass
class Memory:
    """What a process remembers between calls: the members of the view that it worked on last.

    The members are a copy of a table in the database, together with that table's version. Whoever takes them must
    compare the version first.
    """

    state: Any = None

    def take(self) -> Any:
        """Return what is remembered, and forget it."""
        state, self.state = self.state, None
        return state


@dataclass(frozen=True)
class Call:
    """One call of a procedure. It runs in a transaction that is committed when the procedure returns.

    Attributes
    ----------
    database : Database
        An open transaction on a cursor of its own.
    arguments : mapping
        The arguments by name as JSON values; an option that was not given is absent or None.
    schema, catalog : str
        The caller's current schema and database, in which the caller's unqualified names are looked up.
    checkpoint : callable
        Long work calls it between its steps, with the share of the present phase that is done, in [0, 1], or None if
        that is not known. It raises `Cancelled` when the caller has interrupted the statement.
    phase : callable
        Long work calls it when a phase begins, with the phase's name (see `kanon_duck.runtime.progress`). It is a
        checkpoint too.
    memory : Memory
        Shared by all calls on one database.
    """

    database: Database
    arguments: Mapping[str, Any]
    schema: str = "main"
    catalog: str = "memory"
    checkpoint: Callable[[float | None], None] = no_checkpoint
    phase: Callable[[str], None] = no_phase
    memory: Memory = field(default_factory=Memory)

    def use_our_schemas(self) -> None:
        """Resolve unqualified names in DuckDB's own schema and in kanon_duck's schemas.

        Guarantee: a function in one of kanon_duck's statements is DuckDB's own, whatever macros the caller has. Without
        this, a macro ``min`` of the caller in ``main`` would come first. So these statements must name the caller's
        tables and views with their database and schema.
        """
        catalog = exp.to_identifier(self.catalog, quoted=True).sql(dialect="duckdb")
        ours = [f"{catalog}.{schema}" for schema in OURS]
        path = exp.Literal.string(",".join(["system.main", *ours])).sql(dialect="duckdb")
        self.database.execute(f"SET search_path = {path}")

    @contextmanager
    def in_callers_schema(self) -> Iterator[None]:
        """Resolve unqualified names as the caller's session does, for a statement that contains the caller's text.

        What kanon_duck adds to such a statement must call no function. After an error the old resolution is not
        restored, because the error ends the call.
        """
        self.database.execute(exp.Use(this=exp.table_(self.schema, db=self.catalog, quoted=True)))
        yield
        self.use_our_schemas()

    def begin_again(self) -> None:
        """Roll back everything that the call has done so far, and continue in a new transaction."""
        self.database.execute("ROLLBACK")
        self.database.execute("BEGIN TRANSACTION")
        self.use_our_schemas()

    def commit_so_far(self) -> None:
        """Commit what the call has done so far, and continue in a new transaction."""
        self.checkpoint(None)
        self.database.execute("COMMIT")
        self.database.execute("BEGIN TRANSACTION")

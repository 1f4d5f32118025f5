"""What a procedure is given when somebody calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from kanon_duck.runtime.database import Database

Row = dict[str, Any]

OURS = ("kanon_private", "kanon", "kanon_released", "kanon_history", "kanon_history_classes")
"""Schemas of ours; see ``sql/catalog.sql``."""


def no_checkpoint(share: float | None = None) -> None:
    """A checkpoint for work that nobody can interrupt (tests, and short work)."""


def no_phase(name: str) -> None:
    """A phase of work whose progress nobody watches."""


@dataclass
class Memory:
    """What a process remembers between calls: the members of the view it last worked on.

    It is a copy of what the database holds, and carries the version that this had: whoever takes it compares.
    """

    state: Any = None

    def take(self) -> Any:
        """Get what is remembered, and forget it."""
        state, self.state = self.state, None
        return state


@dataclass(frozen=True)
class Call:
    """One call of a procedure, inside the transaction that is committed when it returns.

    Attributes
    ----------
    database : Database
        An open transaction on a cursor of its own.
    arguments : mapping
        The arguments by name as JSON values; an option nobody typed is absent or None.
    schema : str
        Where the caller's unqualified names live: the caller's current schema ...
    catalog : str
        ... and current database.
    checkpoint : callable
        To be called between steps of long work, with the share of the present phase done so far, in [0, 1],
        where it is known. Raises `Cancelled` when the caller has interrupted the statement.
    phase : callable
        To be called where a phase of long work begins, with its name (see `kanon_duck.runtime.progress`).
        A checkpoint too.
    memory : Memory
        Shared by the calls on one database.
    """

    database: Database
    arguments: Mapping[str, Any]
    schema: str = "main"
    catalog: str = "memory"
    checkpoint: Callable[[float | None], None] = no_checkpoint
    phase: Callable[[str], None] = no_phase
    memory: Memory = field(default_factory=Memory)

    def use_our_schemas(self) -> None:
        """Resolve unqualified names in DuckDB's own schema and in ours.

        Guarantee: a function that a statement of ours names is DuckDB's own, whatever macros the caller's
        schemas have: a macro ``min`` of the caller's in ``main`` would come first otherwise. It follows that
        statements of ours name tables and views of the caller's with their database and schema.
        """
        catalog = exp.to_identifier(self.catalog, quoted=True).sql(dialect="duckdb")
        ours = [f"{catalog}.{schema}" for schema in OURS]
        path = exp.Literal.string(",".join(["system.main", *ours])).sql(dialect="duckdb")
        self.database.execute(f"SET search_path = {path}")

    @contextmanager
    def in_callers_schema(self) -> Iterator[None]:
        """Resolve unqualified names as the caller's session does, for a statement that holds the caller's text.

        What we add to such a statement calls no function. After an error nothing is put back: it ends the call.
        """
        self.database.execute(exp.Use(this=exp.table_(self.schema, db=self.catalog, quoted=True)))
        yield
        self.use_our_schemas()

    def begin_again(self) -> None:
        """Roll back what the call has done so far, and go on in a transaction that has done nothing."""
        self.database.execute("ROLLBACK")
        self.database.execute("BEGIN TRANSACTION")
        self.use_our_schemas()

    def commit_so_far(self) -> None:
        """Make what the call has done so far last, whatever comes after it."""
        self.checkpoint(None)
        self.database.execute("COMMIT")
        self.database.execute("BEGIN TRANSACTION")

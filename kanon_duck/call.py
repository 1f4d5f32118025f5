"""What a procedure is given when somebody calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kanon_duck.sql import Database

Row = dict[str, Any]


def no_checkpoint(share: float | None = None) -> None:
    """A checkpoint for work that nobody can interrupt (tests, and short work)."""


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
        To be called between steps of long work, with the share done so far in [0, 1] where it is known.
        Raises `Cancelled` when the caller has interrupted the statement.
    """

    database: Database
    arguments: Mapping[str, Any]
    schema: str = "main"
    catalog: str = "memory"
    checkpoint: Callable[[float | None], None] = no_checkpoint

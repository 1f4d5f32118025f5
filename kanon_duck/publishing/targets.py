"""Tells what a target text means: a file, a folder, a PostgreSQL database, or a place in an attached catalog."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import Content
from kanon_duck.publishing.duckdb_file import is_published, publish_duckdb_file
from kanon_duck.publishing.files import refuse_folder
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call

KINDS = "a file that ends in .duckdb"
"""What a target may be, for messages."""

DUCKDB_ENDINGS = (".duckdb", ".ddb", ".db")


@dataclass(frozen=True)
class Target:
    """Where masked views are published.

    Attributes
    ----------
    text : str
        As it is recorded and shown: a path in full, and never a password.
    kind : str
    write : callable
        Writes releases there, from the call, the releases, and the storage version or None.
    is_ours : callable
        Whether what is there now was published by kanon_duck, or nothing is there.
    is_missing : callable
        Whether nothing is there, as far as that can be told without a connection.
    """

    text: str
    kind: str
    write: Callable[[Call, list[Content], str | None], None]
    is_ours: Callable[[], bool]
    is_missing: Callable[[], bool]


def read_target(call: Call, text: str) -> Target:
    """What a target text means.

    Raises
    ------
    KanonError
        When it is none that can be published into.
    """
    path = Path(os.path.realpath(os.path.expanduser(text)))
    if path.suffix.lower() in DUCKDB_ENDINGS and not text.endswith("/"):
        refuse_folder(path)
        _refuse_open_database(call, path)
        return Target(
            str(path),
            "duckdb",
            lambda call, contents, version: publish_duckdb_file(call, path, contents, version),
            lambda: not path.exists() or is_published(path),
            lambda: not path.exists(),
        )
    raise KanonError(f"target is {read.shown(text)}: name {KINDS}")


def _refuse_open_database(call: Call, path: Path) -> None:
    """Refuse the file of a database that is open on this connection, above all the owner's own.

    Raises
    ------
    KanonError
    """
    opened = call.database.rows("SELECT database_name, path FROM duckdb_databases() WHERE path IS NOT NULL")
    for name, file in opened:
        if path.exists() and os.path.exists(file) and os.path.samefile(path, file):
            raise KanonError(
                f"target {path} is the file of database {name}, which is open here: name another file, or detach it"
            )

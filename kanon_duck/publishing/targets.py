"""Tells what a target text means: a file, a folder, a PostgreSQL database, or a place in an attached catalog."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kanon_duck.catalog.views import MaskedView
from kanon_duck.errors import KanonError
from kanon_duck.publishing import attached, duckdb_file, parquet
from kanon_duck.publishing.content import Content
from kanon_duck.publishing.csv_file import publish_csv
from kanon_duck.publishing.duckdb_file import publish_duckdb_file
from kanon_duck.publishing.files import refuse_file, refuse_folder
from kanon_duck.publishing.parquet import file_in, publish_parquet, publish_parquet_folder
from kanon_duck.publishing.postgresql import SCHEMES, has_secrets, is_ours, publish_postgresql, without_secrets
from kanon_duck.publishing.verify import is_verification, verification_of
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call

KINDS = (
    "a file that ends in .duckdb, .parquet or .csv, a folder with / at the end for Parquet, "
    "postgresql://user@host/database, or a schema of an attached database as in lake.main"
)
"""What a target may be, for messages."""

NO_PASSWORD_KEPT = (
    "the password in the target is not kept: whatever publishes again (publish_all, refresh) takes it from PGPASSWORD, "
    "or from the file that PGPASSFILE names"
)
"""What the owner is told who has typed a password."""


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
    warnings : list of str
    keeps_others : bool
        Whether tables of masked views that a call does not name stay there.
    refuse_unwritable : callable
        Raises `KanonError` where it is known before anything is written that nothing can be.
    """

    text: str
    kind: str
    write: Callable[[Call, list[Content], str | None], None]
    is_ours: Callable[[list[MaskedView]], bool]
    warnings: list[str] = field(default_factory=list)
    keeps_others: bool = False
    refuse_unwritable: Callable[[], None] = lambda: None


def read_target(call: Call, text: str) -> Target:
    """What a target text means.

    Raises
    ------
    KanonError
        When it is none that can be published into.
    """
    if text.lower().startswith(SCHEMES):
        return _postgresql(text)
    if re.search(r"://|password\s*=", text, re.IGNORECASE):
        raise KanonError(f"target is no address that can be published into: name {KINDS}")  # it may hold a password
    path = Path(os.path.realpath(os.path.expanduser(text)))
    if text.endswith("/"):
        return _parquet_folder(path)
    kind = path.suffix.lower()
    if kind not in FILES:
        return _attached(call, text)
    _refuse_other_verification(verification_of(path))
    return replace(FILES[kind](call, path), refuse_unwritable=partial(refuse_folder, path))


def _duckdb_file(call: Call, path: Path) -> Target:
    _refuse_open_database(call, path)
    return Target(
        str(path),
        "duckdb",
        lambda call, contents, version: publish_duckdb_file(call, path, contents, version),
        lambda _: not path.exists() or duckdb_file.is_published(path),
    )


def _parquet_file(_: Call, path: Path) -> Target:
    _refuse_patterns(path)
    return Target(
        str(path),
        "parquet",
        lambda call, contents, version: publish_parquet(call, path, _one(path, contents, version)),
        lambda _: not path.exists() or parquet.is_published(path),
    )


def _csv_file(_: Call, path: Path) -> Target:
    _refuse_patterns(path)
    return Target(
        str(path),
        "csv",
        lambda call, contents, version: publish_csv(call, path, _one(path, contents, version)),
        lambda _: not path.exists() or is_verification(verification_of(path)),
    )


FILES = dict.fromkeys((".duckdb", ".ddb", ".db"), _duckdb_file) | {
    ".parquet": _parquet_file,
    ".csv": _csv_file,
}
"""Kinds of files by the ends of their names."""


def _parquet_folder(folder: Path) -> Target:
    _refuse_patterns(folder)
    _refuse_other_verification(folder / "verify.sql")

    def is_ours(views: list[MaskedView]) -> bool:
        files = [file_in(folder, view.view) for view in views]
        return all(not file.exists() or parquet.is_published(file) for file in files)

    return Target(
        f"{folder}/",
        "parquet",
        lambda call, contents, version: publish_parquet_folder(call, folder, _current(folder, contents, version)),
        is_ours,
        refuse_unwritable=partial(refuse_file, folder),
    )


def _refuse_other_verification(verification: Path) -> None:
    """Refuse a target whose ``verify.sql`` would take the place of a file of somebody's own.

    Raises
    ------
    KanonError
    """
    if verification.exists() and not is_verification(verification):
        raise KanonError(
            f"target would put its check into {verification}, which holds something that kanon_duck has not published: "
            "name another target, or remove what is there"
        )


def _refuse_patterns(path: Path) -> None:
    """Refuse a path that DuckDB, reading the file back, would take for a pattern.

    Raises
    ------
    KanonError
    """
    for letter in "*?[":
        if letter in str(path):
            raise KanonError(f"target {path} has a {letter}, by which DuckDB means many files: name another path")


def _postgresql(url: str) -> Target:
    text = without_secrets(url)
    return Target(
        text,
        "postgresql",
        lambda call, contents, version: publish_postgresql(call, url, _current(text, contents, version)),
        lambda views: is_ours(url, [view.view for view in views]),
        [NO_PASSWORD_KEPT] if has_secrets(url) else [],
        keeps_others=True,
    )


def _attached(call: Call, text: str) -> Target:
    place = attached.attached_place(call, text)
    if place is None:
        raise KanonError(f"target is {read.shown(text)}, and no database of that name is attached: name {KINDS}")
    shown = ".".join([*place[:-1], f'"{place[-1]}"']) if f".{place[-1].lower()}" in FILES else names.display(place)
    return Target(
        shown,
        "attached",
        lambda call, contents, version: attached.publish_attached(
            call, shown, place, _current(shown, contents, version)
        ),
        lambda views: attached.is_ours(call, place, [view.view for view in views]),
        keeps_others=len(place) == 2,
    )


def _one(path: Path, contents: list[Content], version: str | None) -> Content:
    """The one release that a file of one table holds.

    Raises
    ------
    KanonError
        When there are several.
    """
    [first, *others] = _current(path, contents, version)
    if others:
        raise KanonError(
            f"target {path} holds one table, but view_name names {len(others) + 1} masked views: name a .duckdb file, "
            "or a folder with / at the end"
        )
    return first


def _current(path: object, contents: list[Content], version: str | None) -> list[Content]:
    """The current releases, where a kind of target holds nothing else.

    Raises
    ------
    KanonError
        When something was asked for that only DuckDB files have.
    """
    if version is not None:
        raise KanonError(f"storage_version is {read.shown(version)}, but target {path} is no DuckDB file: leave it out")
    if not all(content.is_current for content in contents):
        raise KanonError(f"releases is 'all', but target {path} is no DuckDB file: only these hold earlier releases")
    return contents


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

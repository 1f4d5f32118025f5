"""Publishes into Parquet: one file, or a folder with a file for each masked view."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import MARK, Content, model_text
from kanon_duck.publishing.flat_files import copy_to_files
from kanon_duck.publishing.verify import verification_of
from kanon_duck.runtime.call import Call

COMPRESSION = "zstd"

KEY = "kanon_duck"
"""The key in a file's metadata by which it is known to be published."""


def publish_parquet(call: Call, path: Path, content: Content) -> None:
    """Write a release into one file; its metadata tell view, model, release and date."""
    copy_to_files(call, {path: content}, verification_of(path), _options, _relation)


def publish_parquet_folder(call: Call, folder: Path, contents: list[Content]) -> None:
    """Write each release into a file of the folder, and remove files of masked views that are no longer named.

    Each file is replaced at once; readers of several may see one release of one view beside another of the next.
    """
    folder.mkdir(exist_ok=True)
    paths = {file_in(folder, content.table): content for content in contents}
    copy_to_files(call, paths, folder / "verify.sql", _options, _relation)
    for path in folder.glob("*.parquet"):
        if path not in paths and is_published(path):
            path.unlink()


def file_in(folder: Path, view: str) -> Path:
    """The file of a masked view in a folder.

    Raises
    ------
    KanonError
        When the view's name cannot be that of a file.
    """
    if "/" in view or "\\" in view or "\0" in view or view.startswith("."):
        raise KanonError(
            f"view_name is {view}, which cannot be the name of a file: publish it into one whose name you choose"
        )
    return folder / f"{view}.parquet"


def is_published(path: Path) -> bool:
    """Whether a file is one that kanon_duck has published."""
    try:
        return KEY.encode() in (parquet.read_metadata(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def _options(content: Content) -> str:
    """Options of COPY: compression, and what is told of the release."""
    told = {
        KEY: f"{MARK}{content.release}",
        "kanon_view": content.view.name,
        "kanon_release": str(content.release),
        "kanon_released_at": content.released_at.isoformat(sep=" "),
        "kanon_model": model_text(content.model),
    }
    pairs = ", ".join(f"{key}: {exp.Literal.string(value).sql(dialect='duckdb')}" for key, value in told.items())
    return f"FORMAT parquet, COMPRESSION {COMPRESSION}, KV_METADATA {{{pairs}}}"


def _relation(content: Content, path: str) -> exp.Expression:
    return exp.Table(this=exp.func("read_parquet", exp.Literal.string(path), dialect="duckdb"))

"""Writes a file new beside the old one and lets it take the old one's place at once, or not at all."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kanon_duck.errors import KanonError
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import StatementError

NEW = ".kanon-new"
"""How names of files end that are being written."""

LEFT_OVER_SECONDS = 3600
"""After this long without a write such a file is what a process has left that was killed."""

REMEDIES = {
    errno.ENOENT: "its folder does not exist: make it, or name another place",
    errno.ENOTDIR: "its folder is a file: name another place",
    errno.EACCES: "it cannot be written there: ask for the right to, or name another place",
    errno.EPERM: "it cannot be written there: ask for the right to, or name another place",
    errno.EROFS: "that place is read-only: name another one",
    errno.ENOSPC: "there is no space left: make some, or name another place",
    errno.EDQUOT: "the quota is used up: make space, or name another place",
    errno.EFBIG: "the file would be larger than this process may write (ulimit -f): raise that, or name another place",
    errno.EISDIR: "there is a folder of that name: name a file",
}
"""What an error of the system means, and what to do about it."""


def refuse_folder(path: Path) -> None:
    """Refuse the path of a file where there is a folder, or whose own folder is missing or cannot be written.

    Raises
    ------
    KanonError
    """
    if path.is_dir():
        raise _unwritable(path, REMEDIES[errno.EISDIR])
    if not path.parent.is_dir():
        raise _unwritable(path, REMEDIES[errno.ENOTDIR if path.parent.exists() else errno.ENOENT])


def refuse_file(folder: Path) -> None:
    """Refuse the path of a folder where there is a file, or whose own folder is missing.

    Raises
    ------
    KanonError
    """
    if folder.exists() and not folder.is_dir():
        raise _unwritable(folder, "there is a file of that name: name a folder")
    if not folder.parent.is_dir():
        raise _unwritable(folder, REMEDIES[errno.ENOENT])


@contextmanager
def new_files(call: Call, *paths: Path, logs: Sequence[str] = ()) -> Iterator[list[Path]]:
    """Let the body write files under other names; in the end they take the place of the old ones, in the given order.

    Guarantee: a reader sees the old file or the new one, each whole, whatever happens to this process; readers that
    have the old one open keep it. What the body writes is on the disk before it takes any place, and is removed
    where the body fails. What stands beside the old target as its log never stands beside the new one.

    Parameters
    ----------
    call : Call
    *paths : Path
        The target is the last one.
    logs : sequence of str
        What is added to the target's name for the files of its log.

    Raises
    ------
    KanonError
        With the target and what to do, when the system or DuckDB cannot write.
    """
    target = paths[-1]
    written = [path.with_name(f".{path.name}.{uuid.uuid4().hex}{NEW}") for path in paths]
    try:
        for path in paths:
            _remove_left_over(path)
        yield written
        for new, path in zip(written, paths, strict=True):
            _to_disk(new)
            if path.exists():
                shutil.copymode(path, new)
        call.checkpoint(None)
        _remove_logs(target, logs)
        for new, path in zip(written, paths, strict=True):
            os.replace(new, path)
        _remove_logs(target, logs)  # who writes into the old file may have made it anew
        _to_disk(target.parent)
    except OSError as error:
        raise _unwritable(target, REMEDIES.get(error.errno or 0, f"{error.strerror or error}")) from error
    except StatementError as error:
        raise _unwritable(target, _told(error)) from error
    finally:
        for new in written:
            new.unlink(missing_ok=True)
            _remove_logs(new, logs)


def _remove_logs(path: Path, logs: Sequence[str]) -> None:
    for end in logs:
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


def _told(error: StatementError) -> str:
    """What DuckDB says of a file that it cannot write, in the words of `REMEDIES` where they fit."""
    for number, remedy in REMEDIES.items():
        if os.strerror(number) in str(error.__cause__):
            return remedy
    return error.reason


def _unwritable(path: Path, why: str) -> KanonError:
    return KanonError(f"target {path} was not published, and what was there stays as it was: {why}")


def _to_disk(path: Path) -> None:
    """Wait until what was written is on the disk; Windows knows no such thing for folders."""
    if os.name == "nt" and path.is_dir():
        return
    number = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _remove_left_over(path: Path) -> None:
    """Remove what killed processes have left of a file."""
    for old in path.parent.glob(f".{glob.escape(path.name)}.*{NEW}*"):
        if time.time() - old.stat().st_mtime > LEFT_OVER_SECONDS:
            old.unlink(missing_ok=True)

"""Where compiled kernels are kept, also when they were compiled ahead into a folder that cannot be written now.

Numba keeps what it compiles in the folder that ``NUMBA_CACHE_DIR`` names, else beside the source, else in the user's
home. It does not look into a folder that it cannot write. So if one holds kernels compiled ahead, as in an image or an
installation for all users, this process gets a folder of its own with links to them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numba import config, njit
from numba.core.event import EventStatus, install_recorder

_of_process: tempfile.TemporaryDirectory[str] | None = None
"""The folder of this process, gone when it ends; None where numba has a better one."""


def find_kept_kernels() -> None:
    """Let numba read kernels that were compiled ahead, and keep new ones at least as long as this process runs."""
    global _of_process
    given = config.CACHE_DIR
    chosen = _folder()
    if chosen is not None and (not given or chosen.is_relative_to(given)):
        return
    _of_process = tempfile.TemporaryDirectory(prefix="kanon_duck_")
    config.CACHE_DIR = _of_process.name
    own = _folder()
    assert own is not None
    ahead = [Path(given, own.name)] if given else []
    ahead += [] if chosen else [Path(__file__).parent / "__pycache__"]
    compiled = next((files for folder in ahead if (files := [*folder.glob("*.nbi"), *folder.glob("*.nbc")])), [])
    for file in compiled:
        (own / file.name).symlink_to(file)  # numba never writes through a link: it puts a new file in its place
    if chosen is not None and not compiled:
        config.CACHE_DIR = given
        _of_process.cleanup()
        _of_process = None


def kept_in() -> Path:
    """The folder of compiled kernels."""
    folder = _folder()
    assert folder is not None, "find_kept_kernels has made sure that there is one"
    return folder


def kept_for_others() -> bool:
    """Whether later processes find what this one compiles."""
    return _of_process is None


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The kernels that are compiled while the body runs, because they were not kept; a list that grows."""
    compiled: list[str] = []
    with install_recorder("numba:compile") as recorder:
        yield compiled
    compiled += [
        event.data["dispatcher"].py_func.__name__ for _, event in recorder.buffer if event.status == EventStatus.START
    ]


def _folder() -> Path | None:
    """The folder that numba chooses for kernels; None where it can write nowhere."""
    try:
        return Path(njit(cache=True)(_nothing).stats.cache_path)
    except RuntimeError:
        return None


def _nothing() -> None:
    """A function of this package to ask about."""

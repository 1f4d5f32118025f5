"""Tells the command line what a call could not do, also where the call itself goes well.

``CALL kanon.refresh_all()`` goes well although one of the masked views could not be refreshed, and says so in a row. A
statement need not show that row or its columns, so whoever must know listens here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_listening: list[list[str]] = []


def note(name: str) -> None:
    """Tell whoever listens that a masked view was not refreshed, or that a target was not published."""
    for heard in _listening:
        heard.append(name)


@contextmanager
def listen() -> Iterator[list[str]]:
    """Hear the names that calls of this process note while the block runs: of masked views, and texts of targets."""
    heard: list[str] = []
    _listening.append(heard)
    try:
        yield heard
    finally:
        _listening[:] = [other for other in _listening if other is not heard]

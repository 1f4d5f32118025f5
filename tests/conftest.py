from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import kanon_duck


@pytest.fixture(scope="session", autouse=True)
def answer_to_control_c() -> None:
    """A shell starts background jobs deaf to Ctrl-C, and the processes that tests start would inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, which are too large for the repository."""
    checkout = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("KANON_DUCK_DATA", checkout.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}: set KANON_DUCK_DATA to their folder")
    return folder


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with kanon_duck in it."""
    with kanon_duck.connect(":memory:") as opened:
        yield opened

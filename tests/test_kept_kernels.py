"""Kernels that were compiled ahead are used where nothing can be written, and after warm-up a refresh compiles nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kanon_duck
from tests.test_command_line import run

WORK = """
import sys, tempfile
written = tempfile.TemporaryFile

def refuse(*, dir):  # as a file system does that is read-only
    if any(dir.startswith(folder) for folder in sys.argv[2:]):
        raise OSError("read-only file system")
    return written(dir=dir)

tempfile.TemporaryFile = refuse
from kanon_duck.kernels.cache import compilations, kept_for_others, kept_in
import numpy
from kanon_duck.kernels.row_lists import fill_lists
with compilations() as compiled:
    labels = numpy.zeros(1, sys.argv[1])
    fill_lists(labels, numpy.full(1, -1, labels.dtype), labels.copy())
print(kept_in(), kept_for_others(), *compiled, sep="\\n")
"""


def work(kind: str, *unwritable: str | Path, **environment: str) -> tuple[Path, bool, list[str]]:
    """Let another process use a kernel: where kernels are kept then, whether for others, and what it compiled."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", WORK, kind, *map(str, unwritable)],
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    folder, for_others, *compiled = done.stdout.splitlines()
    return Path(folder), for_others == "True", compiled


def contents(folder: Path) -> dict[str, int]:
    return {str(file): file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}


def test_a_folder_of_kernels_that_cannot_be_written(tmp_path: Path) -> None:
    ahead = {"NUMBA_CACHE_DIR": str(tmp_path / "ahead")}
    folder, for_others, compiled = work("int64", **ahead)
    assert (folder.parent, for_others, compiled) == (tmp_path / "ahead", True, ["fill_lists"])
    before = contents(tmp_path)

    folder, for_others, compiled = work("int64", tmp_path / "ahead", **ahead)
    assert (for_others, compiled) == (False, [])
    assert not folder.exists()

    _, for_others, compiled = work("int32", tmp_path / "ahead", **ahead)
    assert (for_others, compiled) == (False, ["fill_lists"])
    assert contents(tmp_path) == before


def test_a_folder_without_kernels_does_not_take_the_place_of_a_better_one(tmp_path: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "empty"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    package = Path(kanon_duck.__file__).parent
    folder, for_others, compiled = work("int64", tmp_path / "empty", package, **environment)
    assert (folder.is_relative_to(tmp_path / "home"), for_others, compiled) == (True, True, ["fill_lists"])


def test_an_installation_for_all_users(tmp_path: Path) -> None:
    shutil.copytree(
        Path(kanon_duck.__file__).parent, tmp_path / "kanon_duck", ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "home")}
    folder, for_others, compiled = work("int64", **environment)
    assert (folder, for_others, compiled) == (tmp_path / "kanon_duck/kernels/__pycache__", True, ["fill_lists"])
    folder, for_others, compiled = work("int64", tmp_path, **environment)
    assert (folder.is_relative_to(tmp_path), for_others, compiled) == (False, False, [])


NIGHT = """
import sys
from rich.console import Console
import kanon_duck
from kanon_duck.kernels.cache import compilations
from kanon_duck.shell.demo import run_demo
with compilations() as compiled:
    run_demo(kanon_duck.connect(), Console(file=sys.stderr))
print("compiled:", *compiled)
"""


@pytest.mark.timeout(900)  # where nothing has been compiled yet
def test_after_warm_up_nothing_compiles() -> None:
    done = run("warm-up")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("secure: ")
    night = subprocess.run([sys.executable, "-c", NIGHT], capture_output=True, text=True, check=True)
    assert night.stdout.splitlines()[-1] == "compiled:"

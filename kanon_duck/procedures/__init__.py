"""The SQL procedures, one file each with the same name: it reads the arguments, calls other folders, returns rows."""

from __future__ import annotations

from importlib import import_module

from kanon_duck.runtime.runner import Procedure


def procedure(verb: str) -> Procedure:
    """The function that carries out a verb. Its file is loaded by the first call: some load a compiler."""
    return import_module(f"kanon_duck.procedures.{verb}").run

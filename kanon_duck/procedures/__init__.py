"""One file per SQL verb, of the same name: read the arguments, call the core, return rows."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.runner import Procedure


def procedure(verb: str) -> Procedure:
    """The function that carries out a verb. Its file is loaded by the first call: some load a compiler."""
    return partial(_carry_out, import_module(f"kanon_duck.procedures.{verb}").run)


def _carry_out(run: Procedure, call: Call) -> list[Row]:
    """Carry out a verb in a database whose triggers let the owner write; if they had not, the warnings say so."""
    from kanon_duck.maintenance.triggers import mend_triggers  # not before a call: it loads more than an import should

    told = mend_triggers(call)
    rows = run(call)
    return [row | {"warnings": told + row["warnings"]} if "warnings" in row else row for row in rows]

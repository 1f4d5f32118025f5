"""One file per SQL verb: read the arguments, call the core, return rows."""

from __future__ import annotations

from kanon_duck.runner import Procedure

PROCEDURES: dict[str, Procedure] = {}

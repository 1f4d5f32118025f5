"""One file per SQL verb: read the arguments, call the core, return rows."""

from __future__ import annotations

from kanon_duck.procedures import (
    check,
    create_hierarchy,
    create_masked_view,
    drop_hierarchy,
    drop_masked_view,
    explain,
    extend_hierarchy,
    forget,
    optimize,
    pending,
    quality,
    rebuild,
    refresh,
    refresh_all,
    waiting,
)
from kanon_duck.runner import Procedure

PROCEDURES: dict[str, Procedure] = {
    "check": check.run,
    "create_hierarchy": create_hierarchy.run,
    "create_masked_view": create_masked_view.run,
    "drop_hierarchy": drop_hierarchy.run,
    "drop_masked_view": drop_masked_view.run,
    "explain": explain.run,
    "extend_hierarchy": extend_hierarchy.run,
    "forget": forget.run,
    "optimize": optimize.run,
    "pending": pending.run,
    "quality": quality.run,
    "rebuild": rebuild.run,
    "refresh": refresh.run,
    "refresh_all": refresh_all.run,
    "waiting": waiting.run,
}
"""Every verb of the SQL interface that Python carries out."""

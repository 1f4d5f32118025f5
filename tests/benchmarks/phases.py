"""How long the phases of create_masked_view take, measured from outside: its functions are wrapped for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

FUNCTIONS = {
    "reading": ["procedures.create_masked_view.take_snapshot"],
    "encoding": ["maintenance.from_scratch.encode"],
    "clustering: order": ["clustering.auto.order"],
    "clustering: cut": ["clustering.auto.cut"],
    "clustering: anneal": ["clustering.auto.anneal"],
    "generalizing and storing": ["maintenance.from_scratch.create_members", "maintenance.from_scratch.create_classes"],
    "releasing": ["maintenance.from_scratch.make_current"],
    "checking": [
        "procedures.create_masked_view.check_kept",
        "maintenance.from_scratch.create_diversity",
        "release.make_current.class_sizes",
    ],
    "committing": ["runtime.runner.Instance.finish"],
}
"""The functions of each phase, by the place in ``kanon_duck`` where they are looked up."""


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Seconds of each phase, filled in while calls are made; a phase within another does not count for the outer."""
    seconds = dict.fromkeys(FUNCTIONS, 0.0)
    running: list[str] = []

    def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            running.append(phase)
            started = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                elapsed = time.perf_counter() - started
                running.pop()
                seconds[phase] += elapsed
                if running:
                    seconds[running[-1]] -= elapsed

        return wrapper

    with ExitStack() as patches:
        for phase, functions in FUNCTIONS.items():
            for place in functions:
                holder_name, name = place.rsplit(".", 1)
                holder = resolve_name(f"kanon_duck.{holder_name}")
                patches.enter_context(patch.object(holder, name, timed(phase, getattr(holder, name))))
        yield seconds

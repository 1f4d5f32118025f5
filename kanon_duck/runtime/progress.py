"""Shows a progress bar on standard error for calls of more than two seconds, in a terminal or notebook."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table

PHASES = {"reading": 6, "encoding": 9, "clustering": 62, "generalizing": 5, "writing": 6, "releasing": 12}
"""The phases of making a release, in their order, with the approximate percentage of the time that each takes."""

PATIENCE_SECONDS = 2.0
"""Seconds before a call shows the bar."""

WIDTH = 60
CONTROL_C = 2
"""Width of the ^C that a terminal writes behind the bar."""

_terminal = threading.RLock()  # of the main thread too, where the handler of Ctrl-C may interrupt a drawing
_bar: tuple[Console, int] | None = None
"""The console that shows a bar now, and the bar's width."""


@dataclass
class Progress:
    """How far a call is. The work updates it, and the statement that waits for the work shows it.

    Attributes
    ----------
    phase : str or None
        None until the work begins: a call that waits for another call has nothing to show.
    share : float or None
        Share of the whole call that is done, in [0, 1]; None if it is not known. It never falls.
    """

    phase: str | None = None
    share: float | None = None
    started: float = field(default_factory=time.monotonic)

    def begin(self, phase: str) -> None:
        """Note that a phase begins."""
        self.phase = phase
        if phase in PHASES:
            self.done(0.0)

    def done(self, share: float) -> None:
        """Note the share of the present phase that is done."""
        if self.phase in PHASES:
            names = list(PHASES)
            before = sum(PHASES[name] for name in names[: names.index(self.phase)])
            whole = (before + PHASES[self.phase] * share) / sum(PHASES.values())
            self.share = max(self.share or 0.0, whole)


@contextmanager
def shown(progress: Progress) -> Iterator[None]:
    """Show the bar while the body runs. Only one bar is shown at a time, also if several threads make calls.

    Guarantee: the bar is gone when the body ends, and a failure to show it never reaches the caller. So a statement
    that shows the bar only during its beats leaves nothing on the screen, however it ends.
    """
    ours = _draw(progress)
    try:
        yield
    finally:
        if ours:
            clear()


def clear() -> None:
    """Remove the bar from the screen at once, if there is one."""
    global _bar
    with _terminal:
        if _bar is not None:
            console, width = _bar
            _bar = None
            _write(console, f"\r{' ' * (width + CONTROL_C)}\r")


def _draw(progress: Progress) -> bool:
    """Put the bar on the screen; False if nobody can see it or another bar is there."""
    global _bar
    if progress.phase is None or time.monotonic() - progress.started < PATIENCE_SECONDS:
        return False
    with _terminal:
        if _bar is not None:
            return False
        with suppress(Exception):  # standard error may be closed, missing, or anything that somebody put there
            console = _console()
            if console is not None:
                width = min(WIDTH, console.width - CONTROL_C - 1)
                line = _line(console, width, progress)
                _bar = console, width  # first: whatever of it gets written is to be cleared
                _write(console, f"\r{line}")
        return _bar is not None


def _console() -> Console | None:
    """Standard error if it belongs to a terminal or a notebook, else None."""
    console = Console(stderr=True)
    if console.is_jupyter:
        return Console(stderr=True, force_jupyter=False, force_terminal=True, width=WIDTH + CONTROL_C + 1)
    seen = sys.stderr.isatty() and not console.is_dumb_terminal and not os.environ.get("CI")
    return console if seen else None


def _line(console: Console, width: int, progress: Progress) -> str:
    """The bar as text with colours, on one line."""
    seconds = time.monotonic() - progress.started
    row = Table.grid(expand=True, padding=(0, 1))
    row.add_column(width=max(map(len, PHASES)), no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(justify="right", width=9, no_wrap=True)
    share = "" if progress.share is None else f"{progress.share:.0%} "
    bar = ProgressBar(1.0, progress.share or 0.0, pulse=progress.share is None)
    row.add_row(progress.phase, bar, f"{share}{seconds:.0f} s")
    with console.capture() as capture:
        console.print(row, width=width, end="")
    return capture.get().rstrip("\n")


def _write(console: Console, text: str) -> None:
    with suppress(Exception):
        console.file.write(text)
        console.file.flush()

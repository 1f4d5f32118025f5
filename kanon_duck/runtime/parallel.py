"""Independent pieces of work on a few threads, with a caller who may interrupt."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

from numba import get_num_threads

Checkpoint = Callable[[float | None], None]
"""Told the share of the work that is done, or None; raises when the work is to stop."""


def part(checkpoint: Checkpoint, first: float, last: float) -> Checkpoint:
    """A checkpoint for a part of the work: its shares from 0 to 1 are those from first to last of the whole."""
    return lambda share: checkpoint(None if share is None else first + (last - first) * share)


Given = TypeVar("Given")
Made = TypeVar("Made")


def each(work: Callable[[Given], Made], pieces: Iterable[Given]) -> list[Made]:
    """What short work makes of each piece, on as many threads as numba is allowed; it must not matter on which."""
    with ThreadPoolExecutor(max_workers=get_num_threads()) as threads:
        return list(threads.map(work, pieces))


def in_turn(work: Callable[..., Made], pieces: Iterable[tuple[Any, ...]]) -> Iterator[Made]:
    """What short work makes of each piece, one after the other, while other threads work on the next ones.

    At most one piece more than there are threads is taken before its turn.
    """
    with ThreadPoolExecutor(max_workers=get_num_threads()) as threads:
        waiting: deque[Future[Made]] = deque()
        for piece in pieces:
            waiting.append(threads.submit(work, *piece))
            if len(waiting) > get_num_threads():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def in_background(work: Callable[..., Made], *arguments: Any) -> Iterator[Future[Made]]:
    """Short work on a thread of its own, while the caller does what leaves a processor idle; both must succeed."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        made = thread.submit(work, *arguments)
        yield made
        made.result()


PATIENCE = 0.05
"""Seconds between two looks at the checkpoint."""


def run(pieces: Sequence[Callable[[Callable[[], None]], None]], checkpoint: Checkpoint) -> None:
    """Carry out all pieces, on as many threads as numba is allowed.

    Parameters
    ----------
    pieces : sequence of functions
        Each gets a function ``pause`` to call about every tenth of a second; it raises when the piece
        is no longer wanted. Their order and their thread must not matter.
    checkpoint : function
        Called in the caller's thread. What it raises reaches the caller after all threads have come
        to rest.
    """
    stop = Event()

    def pause() -> None:
        if stop.is_set():
            raise CancelledError

    with ThreadPoolExecutor(max_workers=get_num_threads()) as threads:
        waiting = {threads.submit(piece, pause) for piece in pieces}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=PATIENCE, return_when=FIRST_EXCEPTION)
                for finished in done:
                    finished.result()
                checkpoint(1 - len(waiting) / len(pieces))
        except BaseException:
            stop.set()
            threads.shutdown(wait=True, cancel_futures=True)
            raise

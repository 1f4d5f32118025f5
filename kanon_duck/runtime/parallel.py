"""Runs independent pieces of work on a few threads while the caller can still interrupt."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

from numba import get_num_threads

Checkpoint = Callable[[float | None], None]
"""Called with the share of the work that is done, or None; it raises an exception if the work should stop."""


def part(checkpoint: Checkpoint, first: float, last: float) -> Checkpoint:
    """A checkpoint for a part of the work: it maps shares of the part, 0 to 1, to shares first to last of the whole."""
    return lambda share: checkpoint(None if share is None else first + (last - first) * share)


Given = TypeVar("Given")
Made = TypeVar("Made")


def each(work: Callable[[Given], Made], pieces: Iterable[Given]) -> list[Made]:
    """Apply short work to each piece, on as many threads as numba may use. It must not matter on which thread."""
    with ThreadPoolExecutor(max_workers=get_num_threads()) as threads:
        return list(threads.map(work, pieces))


def in_turn(work: Callable[..., Made], pieces: Iterable[tuple[Any, ...]]) -> Iterator[Made]:
    """Apply short work to each piece and return the results in order, while other threads work on the next pieces.

    At most one more piece than there are threads is started before its result is asked for.
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
    """Do short work on a thread of its own while the body runs, which leaves a processor idle; both must succeed."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        made = thread.submit(work, *arguments)
        yield made
        made.result()


PATIENCE = 0.05
"""Seconds between two calls of the checkpoint."""


def run(pieces: Sequence[Callable[[Callable[[], None]], None]], checkpoint: Checkpoint) -> None:
    """Carry out all pieces, on as many threads as numba may use.

    Parameters
    ----------
    pieces : sequence of functions
        Each gets a function ``pause`` and calls it about every tenth of a second; ``pause`` raises an exception
        when the piece is no longer wanted. The order of the pieces and their threads must not matter.
    checkpoint : function
        Called in the caller's thread. An exception that it raises reaches the caller after all threads have
        stopped.
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

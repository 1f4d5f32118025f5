"""The first refresh of the view ``benchmark`` in a new process.

    python -m tests.benchmarks.one_refresh DATABASE

prints what `Refreshed` holds as JSON. As in ``one_call``, nothing is loaded before the clock runs.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.one_call import printed_by, release


@dataclass(frozen=True)
class Refreshed:
    """A refresh in a new process.

    Attributes
    ----------
    start : float
        Seconds to import kanon_duck and open the database.
    seconds : float
        Of the refresh.
    processor : float
        Processor seconds of all threads from the start of the process to the end of the refresh.
    """

    start: float
    seconds: float
    processor: float


def refresh_in_new_process(database: Path) -> Refreshed:
    """Refresh the view of a database file that no other process has open."""
    return Refreshed(**printed_by("tests.benchmarks.one_refresh", [str(database)]))


def _measure(database: str) -> Refreshed:
    """What the new process does."""
    started = time.perf_counter()
    import kanon_duck

    with kanon_duck.connect(database) as connection:
        start = time.perf_counter() - started
        begun = time.process_time()
        refreshed = release(connection, "refresh")
        return Refreshed(start, refreshed.seconds, begun + refreshed.processor)


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(sys.argv[1]))))

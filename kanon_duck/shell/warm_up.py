"""Compiles the kernels ahead of time: it makes and refreshes masked views of made-up people, of every usual kind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import kanon_duck
from kanon_duck.kernels.cache import compilations

ROWS = 2_000

_PEOPLE = """
    SELECT number AS id, CAST(hash(number) % 77 AS INTEGER) AS age,
           CAST(hash(3 * number) % 900_000 AS INTEGER) AS income,
           CAST(41_000 + hash(7 * number) % 100 AS VARCHAR) AS zip, 'disease ' || hash(11 * number) % 5 AS diagnosis
    FROM range({first}, {stop}) AS numbers(number)"""


class Kind(NamedTuple):
    """A kind of masked view whose work has machine code of its own.

    Attributes
    ----------
    name : str
    quasi_identifiers, options : str
        As SQL.
    """

    name: str
    quasi_identifiers: str
    options: str


_SMALL, _LARGE = "{'age': 'numeric', 'zip': 'zip'}", "{'income': 'numeric'}"
"""Quasi-identifiers whose codes take two bytes, and some whose codes take four, as those of a tree of 65,535 nodes."""

# more values than twice k make classes of more than 2k rows, which have a kernel of their own
KINDS = (
    Kind("secure", _SMALL, "k => 2, l => 4"),
    Kind("secure, with made-up rows", _SMALL, "k => 2, l => 4, on_delete => 'counterfeit'"),
    Kind("secure, large domains", _LARGE, "k => 2, l => 4"),
    Kind("k alone", _SMALL, "k => 5, secure => false"),
    Kind("k alone, large domains", _LARGE, "k => 5, secure => false"),
    Kind("other models", _SMALL, "k => 2, l => 4, secure => false"),
    Kind("t-closeness", _SMALL, "k => 5, t => 0.5, secure => false"),
)


class Warmed(NamedTuple):
    """What the views of one kind have compiled."""

    name: str
    compiled: int
    seconds: float


def warm_up() -> Iterator[Warmed]:
    """Compile what the views of each kind use, unless it has been compiled before, and say so after each."""
    with kanon_duck.connect() as connection:
        connection.execute("CALL kanon.create_hierarchy('zip', prefix => 5)").fetchall()
        for number, kind in enumerate(KINDS):
            started = time.monotonic()
            with compilations() as compiled:
                for statement in _statements(f"people_{number}", f"masked_{number}", kind):
                    connection.execute(statement).fetchall()
            yield Warmed(kind.name, len(compiled), time.monotonic() - started)


def _statements(source: str, view: str, kind: Kind) -> list[str]:
    """Make a masked view, change its source, and do with it what is done at night."""
    return [
        f"CREATE TABLE {source} AS {_PEOPLE.format(first=0, stop=ROWS)}",
        f"CALL kanon.create_masked_view('{view}', source => '{source}', key => 'id', sensitive => ['diagnosis'], "
        f"quasi_identifiers => {kind.quasi_identifiers}, {kind.options})",
        f"DELETE FROM {source} WHERE id % 37 = 0",
        f"UPDATE {source} SET age = age + 1, income = income + 1 WHERE id % 41 = 0",
        f"INSERT INTO {source} {_PEOPLE.format(first=ROWS, stop=ROWS * 21 // 20)}",
        f"CALL kanon.refresh('{view}')",
        f"CALL kanon.optimize('{view}')",
        f"CALL kanon.rebuild('{view}')",
        f"FROM kanon.check('{view}')",
        f"FROM kanon.inference_channels('{view}')",
    ]

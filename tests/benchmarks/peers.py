"""Partitions of other tools, measured by our measure.

The tools run in the Python that KANON_DUCK_PEERS names (this one where it is not set), each in a process of
its own; see ``peer_process``. A tool that is not installed there is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

PYTHON = os.environ.get("KANON_DUCK_PEERS", sys.executable)
PATIENCE_SECONDS = 600
WIDTHS = {"age": (5, 10, 20, 40), "education_num": (2, 4, 8)}
"""Widths of the intervals that a tool without numeric attributes generalizes numbers to, on Adult."""


@dataclass(frozen=True)
class Partition:
    """What a tool made of a table.

    Attributes
    ----------
    tool, version : str
    seconds : float
        Of the wall clock, in its own process, without starting it.
    labels : int64, shape (rows,)
        Class of each row of the table by rising ``id``; -1 for a row it left out.
    """

    tool: str
    version: str
    seconds: float
    labels: NDArray[np.int64]


def partition(
    connection: duckdb.DuckDBPyConnection, table: str, names: list[str], k: int, tool: str, suppression: float = 0.0
) -> Partition | None:
    """Let a tool cluster a table with the quasi-identifiers of Adult; None where the tool is not installed.

    Parameters
    ----------
    tool : {"anonypy", "anjana"}
    suppression : float
        Percent of the rows that anjana may leave out.
    """
    columns = {
        name: [value for (value,) in connection.execute(f"SELECT {name} FROM {table} ORDER BY id").fetchall()]
        for name in names
    }
    request = {
        "tool": tool,
        "k": k,
        "suppression": suppression,
        "columns": columns,
        "hierarchies": {name: _levels(connection, name, values) for name, values in columns.items()},
    }
    process = subprocess.run(
        [PYTHON, str(Path(__file__).with_name("peer_process.py"))],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    answer = json.loads(process.stdout)
    if answer is None:
        return None
    return Partition(tool, answer["version"], answer["seconds"], np.array(answer["classes"]))


def _levels(connection: duckdb.DuckDBPyConnection, name: str, values: list[Any]) -> list[list[Any]]:
    """The hierarchy of a column, level by level, for each of its values."""
    if name in WIDTHS:
        numbers = sorted(set(values))
        intervals = [
            [f"[{n // width * width}, {n // width * width + width})" for n in numbers] for width in WIDTHS[name]
        ]
        return [numbers, *intervals, ["*"] * len(numbers)]
    levels: dict[int, dict[str, str]] = {}
    for leaf, level, ancestor in connection.execute(
        "SELECT leaf, level, ancestor FROM kanon.hierarchy_nodes WHERE hierarchy = ? ORDER BY level", [name]
    ).fetchall():
        levels.setdefault(level, {})[leaf] = ancestor
    # leaves that hang higher have no ancestor on the last levels: the root stands for them
    return [[levels[level].get(leaf, "*") for leaf in levels[0]] for level in levels]

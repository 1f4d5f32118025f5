"""Clusters a table with another tool, in a process of its own: the tools need other versions of packages than ours.

    python tests/benchmarks/peer_process.py < request > answer

Both are JSON. The request has ``tool`` (anonypy or anjana), ``k``, ``columns`` (name -> values), ``hierarchies``
(name -> levels, each with an ancestor for every value; level 0 are the values) and ``suppression`` (percent of the
rows that may be left out, anjana). The answer has ``version``, ``seconds`` and ``classes``, one for each row and -1
for a row left out; it is null where the tool is not installed. Needs the tool alone, not kanon_duck.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import sys
import time
from typing import Any

import pandas as pd


def anonypy(frame: pd.DataFrame, request: dict[str, Any]) -> list[int]:
    """The Mondrian of anonypy; text is categorical there, and needs no hierarchies."""
    from anonypy.mondrian import Mondrian

    names = list(frame.columns)
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype("category")
    classes = [-1] * len(frame)
    for number, rows in enumerate(Mondrian(frame, names).partition(request["k"])):
        for row in rows:
            classes[row] = number
    return classes


def anjana(frame: pd.DataFrame, request: dict[str, Any]) -> list[int]:
    """Full-domain generalization by anjana; rows that it generalizes alike are a class."""
    from anjana.anonymity import k_anonymity

    names = list(frame.columns)
    hierarchies = {name: dict(enumerate(levels)) for name, levels in request["hierarchies"].items()}
    numbered = frame.assign(row=range(len(frame)))
    released = k_anonymity(numbered, [], names, request["k"], request["suppression"], hierarchies)
    classes = [-1] * len(frame)
    for row, number in zip(released["row"], released.groupby(names, sort=False).ngroup(), strict=True):
        classes[row] = int(number)
    return classes


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    """What the process prints."""
    tool = request["tool"]
    if importlib.util.find_spec(tool) is None:
        return None
    frame = pd.DataFrame(request["columns"])
    started = time.perf_counter()
    classes = {"anonypy": anonypy, "anjana": anjana}[tool](frame, request)
    seconds = time.perf_counter() - started
    return {"version": importlib.metadata.version(tool), "seconds": seconds, "classes": classes}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # the tools talk
        answered = answer(json.load(sys.stdin))
    json.dump(answered, sys.stdout)

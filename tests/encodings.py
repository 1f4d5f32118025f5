"""Encodings of small tables from plain Python values, and of Adult."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kanon_duck.encoding import LANES, Encoding


@dataclass(frozen=True)
class Numeric:
    """A numeric quasi-identifier: its domain, and its weight."""

    low: int
    high: int
    weight: float = 1.0


@dataclass(frozen=True)
class Tree:
    """A categorical quasi-identifier: parent of each node but the root, and its weight."""

    parents: Mapping[str, str]
    weight: float = 1.0


QuasiIdentifier = Numeric | Tree


def ancestors(tree: Tree, node: str) -> list[str]:
    """The node itself, its parent, and so on to the root."""
    path = [node]
    while path[-1] in tree.parents:
        path.append(tree.parents[path[-1]])
    return path


def leaves(tree: Tree) -> list[str]:
    """The ground values in depth-first order."""
    inner = set(tree.parents.values())
    return sorted((node for node in tree.parents if node not in inner), key=lambda leaf: ancestors(tree, leaf)[::-1])


def heights(tree: Tree) -> dict[str, int]:
    """Height of the subtree below each node."""
    result: dict[str, int] = {}
    for leaf in leaves(tree):
        for height, node in enumerate(ancestors(tree, leaf)):
            result[node] = max(height, result.get(node, 0))
    return result


def encode(
    rows: Sequence[Sequence[Any]], quasi_identifiers: Sequence[QuasiIdentifier], dtype: type = np.uint16
) -> Encoding:
    """The encoding of rows of ints, strings (leaves) and None."""
    null = int(np.iinfo(dtype).max)
    columns: list[list[int]] = []
    caps: list[int] = []
    weights: list[float] = []
    attributes: list[int] = []
    for attribute, quasi_identifier in enumerate(quasi_identifiers):
        values = [row[attribute] for row in rows]
        if isinstance(quasi_identifier, Numeric):
            domain = quasi_identifier.high - quasi_identifier.low
            columns.append([null if value is None else value - quasi_identifier.low for value in values])
            caps.append(domain)
            weights.append(quasi_identifier.weight / domain if domain else 0.0)
            attributes.append(attribute)
            continue
        height_of = heights(quasi_identifier)
        height = max(height_of.values(), default=0)
        for level in range(height):
            generalized = {
                leaf: [node for node in ancestors(quasi_identifier, leaf) if height_of[node] <= level][-1]
                for leaf in leaves(quasi_identifier)
            }
            order = {node: position for position, node in enumerate(dict.fromkeys(generalized.values()))}
            columns.append([null if value is None else order[generalized[value]] for value in values])
            caps.append(1)
            weights.append(quasi_identifier.weight / height)
            attributes.append(attribute)
    used = len(columns)
    width = -(-max(used, 1) // LANES) * LANES
    codes = np.zeros((len(rows), width), dtype)
    if used:
        codes[:, :used] = np.array(columns, dtype).T
    return Encoding(
        codes=codes,
        caps=np.array(caps + [0] * (width - used), dtype),
        weights=np.array(weights + [0.0] * (width - used), np.float32),
        columns=used,
        attributes=np.array(attributes, np.int64),
        numeric=np.array([isinstance(item, Numeric) for item in quasi_identifiers], bool),
    )


def adult(shared_data: Path) -> Encoding:
    """Adult without rows that have missing values, with the quasi-identifiers of Truta & Campan 2007."""
    names = {"age": 0, "education_num": 4, "workclass": 1, "marital_status": 5, "occupation": 6, "race": 8}
    names |= {"sex": 9, "native_country": 13}
    folder = shared_data / "adult"
    with (folder / "adult.data").open(encoding="utf-8", newline="") as file:
        records = [record for record in csv.reader(file, skipinitialspace=True) if record and "?" not in record]
    values: list[list[Any]] = [
        [int(record[column]) if column in (0, 4) else record[column] for column in names.values()]
        for record in records
    ]
    quasi_identifiers: list[QuasiIdentifier] = [
        Numeric(min(row[column] for row in values), max(row[column] for row in values)) for column in (0, 1)
    ]
    for name in list(names)[2:]:
        parents: dict[str, str] = {}
        for line in (folder / f"adult_{name}.txt").read_text(encoding="utf-8").split():
            path = line.split(";")
            parents |= dict(zip(path, path[1:]))
        quasi_identifiers.append(Tree(parents))
    return encode(values, quasi_identifiers)

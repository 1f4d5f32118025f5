"""Encodings of small tables from plain Python values, and of Adult."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels import LANES


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


def prefix_tree(values: Sequence[str]) -> Tree:
    """The tree of values of one length, of which each level hides one more character from the right."""
    parents = {}
    for value in values:
        masked = [value[: len(value) - hidden] + "*" * hidden for hidden in range(len(value) + 1)]
        parents |= dict(zip(masked, masked[1:], strict=False))
    return Tree(parents)


def categorical_shares(low: NDArray[Any], high: NDArray[Any], encoding: Encoding) -> NDArray[np.float64]:
    """Share that each class loses of each categorical quasi-identifier.

    The share is the height of the lowest common ancestor of the class over the height of the hierarchy
    (Definition 4 of Truta & Campan 2007): the number of level columns that are not constant over the number
    of level columns; 0 for a hierarchy of height 0.

    Parameters
    ----------
    low, high : shape (m, width)
        Boxes of the m classes.
    encoding : Encoding
        Says which column belongs to which quasi-identifier.

    Returns
    -------
    float64, shape (m, number of quasi-identifiers)
        In [0, 1]; 0 for numeric quasi-identifiers, whose share depends on the bounds that are released.
    """
    shares = np.zeros((low.shape[0], encoding.numeric.size))
    for attribute in np.flatnonzero(~encoding.numeric):
        levels = np.flatnonzero(encoding.attributes == attribute)
        height_of_ancestor = np.count_nonzero(low[:, levels] != high[:, levels], axis=1)
        shares[:, attribute] = height_of_ancestor / max(1, levels.size)
    return shares


def shares(low: NDArray[Any], high: NDArray[Any], encoding: Encoding) -> NDArray[np.float64]:
    """Share that each class loses of each quasi-identifier, when numbers are encoded one to one."""
    result = categorical_shares(low, high, encoding)
    for attribute in np.flatnonzero(encoding.numeric):
        column = int(np.flatnonzero(encoding.attributes == attribute)[0])
        domain = int(encoding.caps[column])
        ranges = high[:, column].astype(np.int64) - low[:, column]
        result[:, attribute] = np.minimum(ranges, domain) / max(1, domain)
    return result


@st.composite
def trees(draw: st.DrawFn, exact: bool = False) -> Tree:
    """Trees of up to 12 nodes, unbalanced as a rule; ``exact``: of height 1, 2 or 4."""
    parents = {str(node): str(draw(st.integers(0, node - 1))) for node in range(1, draw(st.integers(2, 12)))}
    tree = Tree(parents, 1.0 if exact else draw(st.sampled_from([1.0, 0.3, 2.0])))
    if exact and max(heights(tree).values()) not in (1, 2, 4):
        return Tree({"1": "0", "2": "0", "3": "1", "4": "1"})
    return tree


@st.composite
def tables(
    draw: st.DrawFn, min_rows: int = 1, max_rows: int = 30, exact: bool = False
) -> tuple[list[tuple[Any, ...]], list[QuasiIdentifier]]:
    """Small tables with NULLs and many equal values, and their quasi-identifiers.

    ``exact``: losses per row are small multiples of a power of 1/2, so that single precision adds them
    without rounding.
    """
    numbers = st.sampled_from([1, 2, 8, 64]) if exact else st.sampled_from([0, 1, 7, 100])
    quasi_identifiers: list[QuasiIdentifier] = []
    for is_numeric in draw(st.lists(st.booleans(), min_size=1, max_size=4)):
        if is_numeric:
            low = draw(st.integers(-5, 5))
            weight = 1.0 if exact else draw(st.sampled_from([1.0, 0.7]))
            quasi_identifiers.append(Numeric(low, low + draw(numbers), weight))
        else:
            quasi_identifiers.append(draw(trees(exact)))
    values = [
        st.none() | (st.integers(item.low, item.high) if isinstance(item, Numeric) else st.sampled_from(leaves(item)))
        for item in quasi_identifiers
    ]
    return draw(st.lists(st.tuples(*values), min_size=min_rows, max_size=max_rows)), quasi_identifiers


def adult(shared_data: Path) -> Encoding:
    """Adult without rows that have missing values, with the quasi-identifiers of Truta & Campan 2007."""
    names = {"age": 0, "education_num": 4, "workclass": 1, "marital_status": 5, "occupation": 6, "race": 8}
    names |= {"sex": 9, "native_country": 13}
    folder = shared_data / "adult"
    with (folder / "adult.data").open(encoding="utf-8", newline="") as file:
        records = [record for record in csv.reader(file, skipinitialspace=True) if record and "?" not in record]
    values: list[list[Any]] = [
        [int(record[column]) if column in (0, 4) else record[column] for column in names.values()] for record in records
    ]
    quasi_identifiers: list[QuasiIdentifier] = [
        Numeric(min(row[column] for row in values), max(row[column] for row in values)) for column in (0, 1)
    ]
    for name in list(names)[2:]:
        parents: dict[str, str] = {}
        for line in (folder / f"adult_{name}.txt").read_text(encoding="utf-8").split():
            path = line.split(";")
            parents |= dict(zip(path, path[1:], strict=False))
        quasi_identifiers.append(Tree(parents))
    return encode(values, quasi_identifiers)


TABLE_1 = [
    (25, "41076", "Male"),
    (40, "41935", "Female"),
    (35, "12345", "Male"),
    (55, "33333", "Male"),
    (33, "41733", "Female"),
    (42, "41076", "Male"),
    (38, "41933", "Male"),
]
"""Table 1 of Truta & Campan 2007."""

TABLE_1_QUASI_IDENTIFIERS = [
    Numeric(25, 55),
    prefix_tree([row[1] for row in TABLE_1]),
    Tree({"Male": "*", "Female": "*"}),
]

"""Slow, obvious reference implementations on plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tests.encodings import QuasiIdentifier, Tree, ancestors, heights

Rows = Sequence[Sequence[Any]]


def lowest_common_ancestor(values: Sequence[str], tree: Tree) -> str:
    """The first node on the way from a value to the root that is an ancestor of all values."""
    paths = [ancestors(tree, value) for value in values]
    return next(node for node in paths[0] if all(node in path for path in paths))


def share(values: Sequence[Any], quasi_identifier: QuasiIdentifier) -> Fraction:
    """Share of a quasi-identifier that a class with these values loses."""
    if isinstance(quasi_identifier, Tree):
        extent = max(heights(quasi_identifier).values(), default=0)
    else:
        extent = quasi_identifier.high - quasi_identifier.low
    if extent == 0:  # a single value: nothing to lose
        return Fraction(0)
    if any(value is None for value in values):
        return Fraction(0 if all(value is None for value in values) else 1)
    if isinstance(quasi_identifier, Tree):
        node = lowest_common_ancestor(values, quasi_identifier)
        return Fraction(heights(quasi_identifier)[node], extent)
    return Fraction(max(values) - min(values), extent)


def loss_per_row(rows: Rows, quasi_identifiers: Sequence[QuasiIdentifier]) -> Fraction:
    """What each row of one class loses, weighted."""
    return sum(
        (
            Fraction(quasi_identifier.weight) * share([row[j] for row in rows], quasi_identifier)
            for j, quasi_identifier in enumerate(quasi_identifiers)
        ),
        Fraction(0),
    )


def classes(labels: Sequence[int]) -> list[list[int]]:
    """Rows of each class, by class."""
    return [[row for row, label in enumerate(labels) if label == this] for this in range(max(labels) + 1)]


def information_loss(rows: Rows, labels: Sequence[int], quasi_identifiers: Sequence[QuasiIdentifier]) -> Fraction:
    """Total information loss of a partition."""
    return sum(
        (len(members) * loss_per_row([rows[row] for row in members], quasi_identifiers) for members in classes(labels)),
        Fraction(0),
    )


def k_member(
    n: int,
    k: int,
    generator: np.random.Generator,
    next_seed: str,
    increase: Callable[[list[int], int], Any],
    loss: Callable[[list[int]], Any],
) -> list[int]:
    """Greedy k-member: ``increase(members, row)`` per row of a class, ``loss(members)`` total of a class."""
    row = int(generator.integers(n))
    left_over_order = [int(position) for position in generator.permutation(n % k)]
    unassigned = list(range(n))
    result: list[list[int]] = []
    while len(unassigned) >= k:
        reference = row
        if next_seed == "last_added" or result:  # max and min return the first of equal rows
            row = max(unassigned, key=lambda candidate: increase([reference], candidate))
        unassigned.remove(row)
        members = [row]
        while len(members) < k:
            best = min(unassigned, key=lambda candidate: increase(members, candidate))
            unassigned.remove(best)
            members.append(best)
            if next_seed == "last_added":
                row = best
        result.append(members)
    for row in [unassigned[position] for position in left_over_order]:
        best_class = min(result, key=lambda members: loss([*members, row]) - loss(members))
        best_class.append(row)
    return labels_of(result, n)


def labels_of(partition: Sequence[Sequence[int]], n: int) -> list[int]:
    """Class of each row."""
    labels = [-1] * n
    for label, members in enumerate(partition):
        for row in members:
            labels[row] = label
    return labels


def distance_from_centroid(
    rows: Rows, members: Sequence[int], row: int, quasi_identifiers: Sequence[QuasiIdentifier]
) -> np.float32:
    """Distance of a row from the centroid of a cluster, in single precision, attribute by attribute."""
    total = np.float32(0)
    for j, quasi_identifier in enumerate(quasi_identifiers):
        values = [rows[member][j] for member in members]
        value = rows[row][j]
        if isinstance(quasi_identifier, Tree):
            tree = Tree(quasi_identifier.parents)
            height = max(heights(tree).values(), default=0)
            added = height * (share([*values, value], tree) - share(values, tree))
            for _ in range(int(added)):
                total = np.float32(total + np.float32(quasi_identifier.weight / height))
            continue
        domain = quasi_identifier.high - quasi_identifier.low
        weight = np.float32(quasi_identifier.weight / domain if domain else 0.0)
        known = [item for item in values if item is not None]
        if 0 < len(known) < len(values) or (not known and value is None):
            difference = np.float32(0)
        elif not known or value is None:
            difference = np.float32(domain)
        else:
            mean = np.float32(sum(item - quasi_identifier.low for item in known) / len(known))
            difference = abs(np.float32(value - quasi_identifier.low) - mean)
        total = np.float32(total + weight * difference)
    return total


def oka(rows: Rows, quasi_identifiers: Sequence[QuasiIdentifier], k: int, generator: np.random.Generator) -> list[int]:
    """One-pass k-means."""
    n = len(rows)
    seeds = [int(row) for row in generator.permutation(n)[: n // k]]
    refill_order = [int(row) for row in generator.permutation(n)]
    clusters = [[seed] for seed in seeds]

    def sort_key(row: int) -> list[Any]:
        key: list[Any] = []
        for value, quasi_identifier in zip(rows[row], quasi_identifiers, strict=True):
            path = ancestors(quasi_identifier, value)[::-1] if value and isinstance(quasi_identifier, Tree) else value
            key.append((value is None, path if value is not None else 0))
        return key

    def distance(members: Sequence[int], row: int) -> np.float32:
        return distance_from_centroid(rows, members, row, quasi_identifiers)

    for row in sorted(range(n), key=sort_key):
        if row not in seeds:
            closest = min(clusters, key=lambda members: np.float32(len(members)) * distance(members, row))
            closest.append(row)

    given_up = []
    for members in clusters:
        if len(members) > k:
            far = sorted(members, key=lambda row: (-distance(members, row), row))[: len(members) - k]
            given_up += far
            members[:] = [row for row in members if row not in far]
    for row in refill_order:
        if row in given_up:
            small = [members for members in clusters if len(members) < k] or clusters
            closest = min(small, key=lambda members: np.float32(len(members)) * distance(members, row))
            closest.append(row)
    return labels_of(clusters, n)

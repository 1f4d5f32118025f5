"""What a release must show, recomputed from its source and from who is in which class, slowly and on plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests import oracle
from tests.encodings import Numeric, QuasiIdentifier, Tree

Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Person:
    """A row of the source: its quasi-identifiers, and what is released of it as it is."""

    quasi: tuple[Any, ...]
    sensitive: Any
    kept: Any


def ends(value: int | None, step: int) -> tuple[int | None, int | None]:
    """The multiples of a step next to a number."""
    return (None, None) if value is None else (value // step * step, -(-value // step) * step)


def numeric_cells(values: Sequence[int | None], domain: Numeric, step: int) -> tuple[Cells, Fraction]:
    """The three cells of a numeric quasi-identifier, and the share of it that is lost."""
    if all(value is None for value in values):
        return (None, None, None), Fraction(0)
    reached = [end for value in values for end in ends(value, step)]
    if None in reached:
        return ("*", None, None), Fraction(1)
    low, high = min(reached), max(reached)
    if low <= domain.low and high >= domain.high and low < high:
        return ("*", None, None), Fraction(1)
    text = str(low) if low == high else f"[{low}, {high}]"
    return (text, low, high), min(oracle.share(reached, domain), Fraction(1))


def categorical_cells(values: Sequence[str | None], tree: Tree) -> tuple[Cells, Fraction]:
    """The cell of a categorical quasi-identifier, and the share of it that is lost."""
    if all(value is None for value in values):
        return (None,), Fraction(0)
    if None in values:
        return ("*",), Fraction(1)
    return (oracle.lowest_common_ancestor(values, tree),), oracle.share(values, tree)


def generalization(
    people: Sequence[Person], quasi_identifiers: Sequence[QuasiIdentifier], step: int
) -> tuple[Cells, Fraction]:
    """All cells of a class in the order of its quasi-identifiers, and its total information loss."""
    cells: Cells = ()
    loss = Fraction(0)
    for place, quasi_identifier in enumerate(quasi_identifiers):
        values = [person.quasi[place] for person in people]
        if isinstance(quasi_identifier, Numeric):
            more, share = numeric_cells(values, quasi_identifier, step)
        else:
            more, share = categorical_cells(values, quasi_identifier)
        cells += more
        loss += share
    return cells, len(people) * loss


def released(
    classes: Collection[Sequence[Person]], quasi_identifiers: Sequence[QuasiIdentifier], step: int
) -> tuple[Counter[Cells], Fraction]:
    """The rows that readers see, each as often as it is there, and the total information loss."""
    rows: Counter[Cells] = Counter()
    total = Fraction(0)
    for people in classes:
        cells, loss = generalization(people, quasi_identifiers, step)
        rows.update((*cells, person.sensitive, person.kept) for person in people)
        total += loss
    return rows, total


def figures(rows: Counter[Cells], k: int) -> dict[str, Any]:
    """What the row of a release says of the rows that readers see."""
    sizes: Counter[Cells] = Counter()
    illnesses: dict[Cells, Counter[Any]] = {}
    for row, count in rows.items():
        cells, sensitive = row[:-2], row[-2]
        sizes[cells] += count
        illnesses.setdefault(cells, Counter())[sensitive] += count
    total = sum(sizes.values())
    return {
        "rows": total,
        "classes": len(sizes),
        "k_achieved": min(sizes.values()),
        "discernibility": sum(size**2 for size in sizes.values()),
        "average_class_size": total / len(sizes) / k,
        "l_achieved": min(len(counts) for counts in illnesses.values()),
        "max_frequency": max(max(counts.values()) / sum(counts.values()) for counts in illnesses.values()),
    }

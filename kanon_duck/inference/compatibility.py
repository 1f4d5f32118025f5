"""Tells how the regions of two classes lie to each other (Definition 6 of Byun et al. 2006).

The region of a class has one part for each quasi-identifier: an interval of an ordered type, the set of values that a
label covers, or everything.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import exp

from kanon_duck.runtime.database import Database

Part: TypeAlias = "tuple[Any, Any] | frozenset[str | None] | None"
"""Both ends of an interval, values below a label, or None for everything."""

Region = list[Part]

MISSING: Part = frozenset([None])
"""The part of a class all of whose people have NULL."""


def relation(first: Region, second: Region) -> str | None:
    """How the region of a class of the earlier release lies to one of the later.

    Returns
    -------
    str or None
        'identical'; 'more general' where the second holds the first; 'overlapping' where neither is so and all parts
        meet; None where the classes are not compatible.
    """
    if first == second:
        return "identical"
    if all(_holds(other, one) for one, other in zip(first, second, strict=True)):
        return "more general"
    if all(_meet(one, other) for one, other in zip(first, second, strict=True)):
        return "overlapping"
    return None


def _holds(outer: Part, inner: Part) -> bool:
    """Whether a part holds another."""
    if outer is None or outer is inner or outer == inner:  # sets of equal labels are one, and long to compare
        return True
    if isinstance(outer, tuple) and isinstance(inner, tuple):
        return bool(outer[0] <= inner[0] and inner[1] <= outer[1])
    return isinstance(outer, frozenset) and isinstance(inner, frozenset) and inner <= outer


def _meet(one: Part, other: Part) -> bool:
    """Whether two parts have something in common."""
    if one is None or other is None:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return bool(one[0] <= other[1] and other[0] <= one[1])
    return isinstance(one, frozenset) and isinstance(other, frozenset) and not one.isdisjoint(other)


def part_of_numbers(label: str | None, low: Any, high: Any) -> Part:
    """The part that the three cells of a numeric quasi-identifier stand for."""
    if low is not None:
        return (low, high)
    return None if label is not None else MISSING


def below_labels(database: Database, hierarchy: str, column: str, relation: str, values: str) -> dict[str | None, Part]:
    """The part that each label of a column stands for.

    Parameters
    ----------
    hierarchy : str
    column, relation : str
        Where the labels are.
    values : str
        SQL for a relation with a column ``value``: what there is below them.
    """
    name = exp.Literal.string(hierarchy).sql(dialect="duckdb")
    found: dict[str | None, Part] = {}
    for label, below in database.rows(
        f"SELECT label, list(DISTINCT CAST(value AS VARCHAR)) FILTER (covered) FROM ("
        f"SELECT label, value, kanon.covers({name}, label, value) AS covered "
        f"FROM (SELECT DISTINCT {column} AS label FROM {relation}) CROSS JOIN (SELECT DISTINCT value FROM {values})) "
        "GROUP BY label"
    ):
        found[label] = frozenset(below or []) if label is not None else MISSING
    return found

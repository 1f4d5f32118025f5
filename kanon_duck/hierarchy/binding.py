"""Binds a hierarchy to the values of a column: the codes of each level, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.hierarchy import store
from kanon_duck.runtime.arrow import array, filled, in_one_piece, numbers, texts
from kanon_duck.runtime.database import Database

NO_CODE = -1

FLAT = "flat"
"""The hierarchy that always exists: every value is a child of the root."""


@dataclass(frozen=True)
class BoundHierarchy:
    """A hierarchy over the distinct values that occur.

    Attributes
    ----------
    height : int
        Height of the hierarchy, whatever values occur.
    root : str
        Label of the root.
    values : pyarrow.Array
        The distinct values in depth-first order; values that `extended` has added come after them.
    level_codes : int64, shape (len(values), height)
        Two values have the same code in column h if they have the same highest ancestor-or-self of height at
        most h. Codes are dense per column and rise in the order in which the values were bound. So the height of the
        lowest common ancestor of a set of values is the number of columns that are not constant on the set.
    level_labels : list of pyarrow.Array
        For each column the label of each code. If the lowest common ancestor of some values has height
        h < ``height``, its label is the label of any of their codes in column h; otherwise it is the root.
    missing : list of str
        The values without a leaf, and values that the rule cannot handle, sorted.
    """

    height: int
    root: str
    values: pa.Array
    level_codes: NDArray[np.int64]
    level_labels: list[pa.Array]
    missing: list[str]


def canonical_text(column: exp.Expression, duckdb_type: str) -> exp.Expression:
    """The text by which values and leaves are matched, whatever their types.

    34, 34.0 and '34' are all '34'; a zoned timestamp is shown in UTC; booleans are 'true' and 'false'.

    Parameters
    ----------
    column : Expression
        The column or expression.
    duckdb_type : str
        Its type as DuckDB spells it; text is its own canonical text.
    """
    if duckdb_type == "VARCHAR":
        return column.copy()
    return exp.Dot(
        this=exp.to_identifier("kanon_private"),
        expression=exp.Anonymous(this="canonical_text", expressions=[column.copy()]),
    )


def bind(database: Database, hierarchy: str, values: Sequence[str] | pa.Array | pa.ChunkedArray) -> BoundHierarchy:
    """Bind a hierarchy to the distinct canonical texts of a column (without NULL).

    Raises
    ------
    KanonError
        When there is no such hierarchy.
    """
    given = values if isinstance(values, pa.Array | pa.ChunkedArray) else texts(values)
    leaves = (in_one_piece(given) if isinstance(given, pa.ChunkedArray) else given).cast(pa.large_string())
    if hierarchy.lower() == FLAT:
        return _bind_flat(leaves)
    stored = store.existing(database, hierarchy)
    bind_kind = _bind_tree if stored["kind"] in store.TREES else _bind_rule
    return bind_kind(database, stored, leaves)


def height(database: Database, hierarchy: str) -> int:
    """Height of a hierarchy."""
    return 1 if hierarchy.lower() == FLAT else int(store.existing(database, hierarchy)["height"])


def root(database: Database, hierarchy: str) -> str:
    """Label of a hierarchy's root."""
    return "*" if hierarchy.lower() == FLAT else str(store.existing(database, hierarchy)["root"])


Level = tuple[NDArray[np.int64], pa.Array]
"""Code of each value on a level, and the label of each code."""


def _bind_flat(leaves: pa.Array) -> BoundHierarchy:
    """Every value is a child of the root."""
    is_root = pc.equal(leaves, texts(["*"])[0])
    values = leaves.filter(pc.invert(is_root))
    values = values.take(pc.array_sort_indices(values))
    return _bound(1, "*", values, [_coded(values)], leaves.filter(is_root))


def _bind_tree(database: Database, stored: dict[str, Any], leaves: pa.Array) -> BoundHierarchy:
    """Each value has the path that is stored with its leaf."""
    found = _read(database, _TREE, stored, leaves)
    known = pc.is_valid(found["labels"])
    missing = found["leaf"].filter(pc.invert(known))
    levels = _levels(found["labels"].filter(known), stored["height"])
    return _bound(stored["height"], stored["root"], found["leaf"].filter(known), levels, missing)


def _bind_rule(database: Database, stored: dict[str, Any], leaves: pa.Array) -> BoundHierarchy:
    """Each value has the labels that the rule makes of it.

    Values with the same label on level 1 have the same labels above it, so these are made from one of the values.
    """
    label, order = _RULES[stored["kind"]]
    lowest = _LOWEST.format(own=label.format(level=0), parent=label.format(level=1), order=order)
    found = _read(database, lowest, stored, leaves)
    known = pc.is_valid(found["own"])
    missing = found["leaf"].filter(pc.invert(known))
    values = found["leaf"].filter(known)
    parents, _ = _coded(found["parent"].filter(known))
    first_children = values.take(numbers(np.flatnonzero(np.diff(parents, prepend=-1))))
    higher = _HIGHER.format(label=label.format(level="CAST(level AS INTEGER)"), order=order)
    above = _levels(_read(database, higher, stored, first_children)["labels"], stored["height"] - 1)
    levels = [_coded(found["own"].filter(known)), *((codes[parents], labels) for codes, labels in above)]
    return _bound(stored["height"], stored["root"], values, levels, missing)


# heights rise along a path, so the highest ancestor of height at most h is the last with one
_TREE = """
    SELECT given.leaf, CASE WHEN leaves.leaf IS NOT NULL THEN list_transform(range(stored.height), lambda h:
        leaves.path[len(list_filter(leaves.heights, lambda height: height <= h))]) END AS labels
    FROM kanon_values AS given
    CROSS JOIN (SELECT * FROM kanon_private.hierarchies WHERE hierarchy = ?) AS stored
    LEFT JOIN kanon_private.hierarchy_leaves AS leaves
        ON leaves.hierarchy = stored.hierarchy AND leaves.leaf = given.leaf
    ORDER BY leaves.position
"""

_RULES = {
    "prefix": (
        "kanon_private.prefix_label(given.leaf, stored.height, {level})",
        "rpad(given.leaf, stored.height, ' ')",
    ),
    "intervals": (
        "kanon_private.interval_label(given.leaf, stored.widths, stored.decimals, {level})",
        "TRY_CAST(given.leaf AS DECIMAL(38, 18))",
    ),
    "dates": (
        "kanon_private.date_label(given.leaf, stored.periods, {level})",
        "epoch_us(kanon_private.date_moment(given.leaf))",
    ),
}
"""For each kind of rule, SQL for the label of a value (NULL if the rule cannot handle it), and SQL for an order of the
values in which equal labels stand together at every level."""

_LOWEST = """
    SELECT given.leaf, {own} AS own, {parent} AS parent
    FROM kanon_values AS given CROSS JOIN (SELECT * FROM kanon_private.hierarchies WHERE hierarchy = ?) AS stored
    ORDER BY {order}, given.leaf
"""

_HIGHER = """
    SELECT list_transform(range(1, stored.height), lambda level: {label}) AS labels
    FROM kanon_values AS given CROSS JOIN (SELECT * FROM kanon_private.hierarchies WHERE hierarchy = ?) AS stored
    ORDER BY {order}, given.leaf
"""


def _read(database: Database, query: str, stored: dict[str, Any], leaves: pa.Array) -> dict[str, pa.Array]:
    """What a query finds about values and a stored hierarchy, by column."""
    database.register("kanon_values", pa.table({"leaf": leaves}))
    found = database.arrow(query, [stored["hierarchy"]])
    database.unregister("kanon_values")
    return {name: in_one_piece(found[name]) for name in found.column_names}


def _levels(paths: pa.Array, height: int) -> list[Level]:
    """The levels of labels that are listed for each value."""
    labels = paths.flatten()
    return [_coded(labels.take(numbers(np.arange(level, len(labels), height)))) for level in range(height)]


def _coded(labels: pa.Array) -> Level:
    """Number the labels of a level in depth-first order, in which equal labels stand together."""
    starts = np.ones(len(labels), bool)
    starts[1:] = array(pc.not_equal(labels[1:], labels[:-1]))
    return np.cumsum(starts) - 1, labels.take(numbers(np.flatnonzero(starts))).cast(pa.large_string())


def _bound(height: int, root: str, values: pa.Array, levels: list[Level], missing: pa.Array) -> BoundHierarchy:
    """A hierarchy from its levels, over values in depth-first order."""
    level_codes = np.empty((len(values), height), np.int64)
    for level, (codes, _) in enumerate(levels):
        level_codes[:, level] = codes
    return BoundHierarchy(
        height=height,
        root=root,
        values=values.cast(pa.large_string()),
        level_codes=level_codes,
        level_labels=[labels for _, labels in levels],
        missing=sorted(missing.to_pylist()),
    )


def extended(known: BoundHierarchy, new: BoundHierarchy) -> BoundHierarchy:
    """The same hierarchy over more values, whose numbers and codes follow the existing ones.

    Parameters
    ----------
    known, new : BoundHierarchy
        Two parts of one hierarchy, over different values.
    """
    codes = np.empty_like(new.level_codes)
    labels = []
    for level, (old_labels, new_labels) in enumerate(zip(known.level_labels, new.level_labels, strict=True)):
        # a level never has the same label twice, so labels tell which codes there are already
        code = array(filled(pc.index_in(new_labels, old_labels), NO_CODE))
        fresh = code == NO_CODE
        code = np.where(fresh, len(old_labels) + np.cumsum(fresh) - 1, code)
        codes[:, level] = code[new.level_codes[:, level]]
        labels.append(pa.concat_arrays([old_labels, new_labels.take(numbers(np.flatnonzero(fresh)))]))
    return BoundHierarchy(
        height=known.height,
        root=known.root,
        values=pa.concat_arrays([known.values, new.values]),
        level_codes=np.concatenate([known.level_codes, codes]),
        level_labels=labels,
        missing=new.missing,
    )


def in_given_order(bound: BoundHierarchy, values: pa.Array) -> BoundHierarchy:
    """The same hierarchy with its values in another order, and numbers and codes that follow this order.

    Guarantee: given the values of a hierarchy that `extended` has made step by step, the codes are the same again.
    """
    codes = bound.level_codes[array(pc.index_in(values, bound.values))]
    labels = []
    for level, known in enumerate(bound.level_labels):
        first_places = np.full(len(known), len(codes))
        np.minimum.at(first_places, codes[:, level], np.arange(len(codes)))
        order = np.argsort(first_places)  # of the codes, as they come
        codes[:, level] = np.argsort(order)[codes[:, level]]
        labels.append(known.take(numbers(order)))
    return replace(bound, values=values, level_codes=codes, level_labels=labels)


def resembling_leaves(database: Database, hierarchy: str, missing: Sequence[str]) -> dict[str, str]:
    """For each value without a leaf, a leaf from which it differs only by blanks or Unicode form."""
    database.register("kanon_values", pa.table({"leaf": texts(missing)}))
    alike = dict(
        database.rows(
            "SELECT given.leaf, min(leaves.leaf) FROM kanon_values AS given "
            "JOIN kanon_private.hierarchy_leaves AS leaves "
            "ON kanon_private.bare_text(leaves.leaf) = kanon_private.bare_text(given.leaf) "
            "WHERE lower(leaves.hierarchy) = lower(?) GROUP BY given.leaf ORDER BY given.leaf",
            [hierarchy],
        )
    )
    database.unregister("kanon_values")
    return alike


def remedy(database: Database, hierarchy: str, missing: Sequence[str]) -> str:
    """What the owner can do about values without a leaf, as part of a message."""
    stored = store.existing(database, hierarchy)
    if stored["kind"] in store.TREES:
        return "extend the hierarchy"
    longest = max(len(value.rstrip(" ")) for value in missing)
    if stored["kind"] == "prefix" and longest > stored["height"]:
        return f"create a hierarchy with a longer prefix, as in prefix => {longest},"
    return "use a hierarchy made from levels or edges"

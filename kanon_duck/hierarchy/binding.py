"""A hierarchy bound to the values of a column: the level columns of the encoding, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.arrow import array, filled, numbers, texts
from kanon_duck.hierarchy import store
from kanon_duck.sql import Database

NO_CODE = -1


FLAT = "flat"
"""The hierarchy that is always there: every value a child of the root."""


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
        The distinct values in depth-first order; those that `extended` has added stand behind.
    level_codes : int64, shape (len(values), height)
        Column h tells values apart by their highest ancestor-or-self of height at most h; codes are
        dense per column and rise in the order in which the values have come. So the height of the lowest
        common ancestor of a set of values is the number of columns that are not constant on it.
    level_labels : list of pyarrow.Array
        For each column the label of each code. When the lowest common ancestor has height
        h < ``height``, its label is that of any member's code in column h; else it is the root.
    missing : list of str
        The values without a leaf, or that the rule cannot take, sorted.
    """

    height: int
    root: str
    values: pa.Array
    level_codes: NDArray[np.int64]
    level_labels: list[pa.Array]
    missing: list[str]


def canonical_text(column: exp.Expression, duckdb_type: str) -> exp.Expression:
    """The text by which data and leaves are matched, whatever the type of either.

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
    leaves = values if isinstance(values, pa.Array | pa.ChunkedArray) else texts(values)
    database.register("kanon_values", pa.table({"leaf": leaves}))
    if hierarchy.lower() == FLAT:
        height, root, selection, parameters = 1, "*", _FLAT, []
    else:
        stored = store.existing(database, hierarchy)
        height, root, parameters = stored["height"], stored["root"], [hierarchy]
        selection = _TREE if stored["kind"] in store.TREES else _RULE
    bound = database.arrow(selection, parameters)
    database.unregister("kanon_values")
    known = pc.is_valid(bound["labels"])
    missing = sorted(bound["leaf"].filter(pc.invert(known)).to_pylist())
    bound = bound.filter(known)
    return _with_codes(height, root, bound["leaf"].combine_chunks(), bound["labels"].combine_chunks(), missing)


def height(database: Database, hierarchy: str) -> int:
    """Height of a hierarchy."""
    return 1 if hierarchy.lower() == FLAT else int(store.existing(database, hierarchy)["height"])


def root(database: Database, hierarchy: str) -> str:
    """Label of a hierarchy's root."""
    return "*" if hierarchy.lower() == FLAT else str(store.existing(database, hierarchy)["root"])


_FLAT = """
    SELECT leaf, CASE WHEN leaf <> '*' THEN [leaf] END AS labels FROM kanon_values ORDER BY leaf
"""

# heights rise along a path, so the highest ancestor of height at most h is the last with one
_TREE = """
    SELECT given.leaf, CASE WHEN leaves.leaf IS NOT NULL THEN list_transform(range(stored.height), lambda h:
        leaves.path[len(list_filter(leaves.heights, lambda height: height <= h))]) END AS labels
    FROM kanon_values AS given
    CROSS JOIN (SELECT * FROM kanon_private.hierarchies WHERE lower(hierarchy) = lower(?)) AS stored
    LEFT JOIN kanon_private.hierarchy_leaves AS leaves
        ON leaves.hierarchy = stored.hierarchy AND leaves.leaf = given.leaf
    ORDER BY leaves.position
"""

_RULE = """
    SELECT given.leaf, CASE WHEN kanon_private.rule_label(stored.kind, stored.height, stored.widths,
            stored.decimals, stored.periods, given.leaf, 0) IS NOT NULL
        THEN list_transform(range(stored.height), lambda level: kanon_private.rule_label(stored.kind,
            stored.height, stored.widths, stored.decimals, stored.periods, given.leaf, level::INTEGER))
        END AS labels
    FROM kanon_values AS given
    CROSS JOIN (SELECT * FROM kanon_private.hierarchies WHERE lower(hierarchy) = lower(?)) AS stored
    ORDER BY kanon_private.rule_order(stored.kind, given.leaf),
        CASE stored.kind WHEN 'prefix' THEN rpad(given.leaf, stored.height, ' ') END, given.leaf
"""


def _with_codes(height: int, root: str, leaves: pa.Array, labels: pa.Array, missing: list[str]) -> BoundHierarchy:
    """Number the labels of each level along the depth-first order, where equal labels stand together."""
    count = len(leaves)
    coded = labels.flatten().cast(pa.large_string()).dictionary_encode()
    table = array(coded.indices).reshape(count, height)
    starts = np.ones((count, height), dtype=bool)
    starts[1:] = table[1:] != table[:-1]
    return BoundHierarchy(
        height=height,
        root=root,
        values=leaves.cast(pa.large_string()),
        level_codes=np.cumsum(starts, axis=0, dtype=np.int64) - 1,
        level_labels=[coded.dictionary.take(numbers(table[starts[:, level], level])) for level in range(height)],
        missing=missing,
    )


def extended(known: BoundHierarchy, new: BoundHierarchy) -> BoundHierarchy:
    """The same hierarchy over further values, which get numbers and codes after those that there are.

    Parameters
    ----------
    known, new : BoundHierarchy
        Of one hierarchy, over values that do not overlap.
    """
    codes = np.empty_like(new.level_codes)
    labels = []
    for level, (old_labels, new_labels) in enumerate(zip(known.level_labels, new.level_labels, strict=True)):
        # a level never has the same label twice, so labels tell which codes there are already
        code = array(filled(pc.index_in(new_labels, old_labels), -1))
        fresh = code < 0
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
    """The same with its values in another order, which gives them, and the labels above them, other numbers.

    Guarantee: a hierarchy that `extended` has made step by step gets the same codes again from its values.
    """
    codes = bound.level_codes[array(pc.index_in(values, bound.values))]
    labels = []
    for level, known in enumerate(bound.level_labels):
        _, first_places = np.unique(codes[:, level], return_index=True)
        order = np.argsort(first_places)  # of the codes, as they come
        codes[:, level] = np.argsort(order)[codes[:, level]]
        labels.append(known.take(numbers(order)))
    return replace(bound, values=values, level_codes=codes, level_labels=labels)


def resembling_leaves(database: Database, hierarchy: str, missing: Sequence[str]) -> dict[str, str]:
    """For values without a leaf: the leaf from which they differ only by blanks or Unicode form."""
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
    """What the owner can do about the hierarchy of values without a leaf."""
    stored = store.existing(database, hierarchy)
    if stored["kind"] in store.TREES:
        return "extend the hierarchy"
    longest = max(len(value.rstrip(" ")) for value in missing)
    if stored["kind"] == "prefix" and longest > stored["height"]:
        return f"create a hierarchy with a longer prefix, as in prefix => {longest},"
    return "use a hierarchy made from levels or edges"

"""Builds a checked tree from edges: every leaf with its path, in depth-first order.

`build` reads a table (child, parent), as `kanon_duck.hierarchy.edges` makes it. The tree's own table has the columns of
``kanon_private.hierarchy_leaves``: position, leaf, path, heights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kanon_duck.errors import KanonError
from kanon_duck.runtime.database import Database

LONGEST_WRITTEN = 1000
"""Labels of a path that are looked up for a message."""


def written(path: Sequence[str]) -> str:
    """A path for messages: of a long one its first labels, how many there are, and the last."""
    if len(path) <= 12:
        return " → ".join(path)
    return f"{' → '.join(path[:6])} → … ({len(path)} labels in all) → {path[-1]}"


@dataclass(frozen=True)
class Tree:
    """A tree's root, size and height (the length of its longest path), and the temporary table of its leaves."""

    table: str
    root: str
    leaves: int
    nodes: int
    height: int


def build(database: Database, argument: str, edges: str) -> Tree:
    """Check that the edges of a table form one tree, and lay it out.

    Guarantees: one root; every label has one parent and one path to the root; labels are unique, so
    a label names one node; siblings stand in the order of their labels, so the same edges always give
    the same order and an extension keeps the order of what was there.

    Raises
    ------
    KanonError
        Naming what is wrong: no rows, two roots, two parents (both paths), a cycle, a label '*' below
        the root, two leaves that differ only by blanks or Unicode form.
    """
    nodes = database.value(f"SELECT count(DISTINCT child) FROM {edges}")
    if nodes == 0:
        raise KanonError(f"{argument}: the hierarchy is empty; give at least one value with its path")
    _refuse_second_root(database, argument, edges)
    _refuse_second_parent(database, argument, edges)
    database.execute(_REACHED.format(edges=edges))
    if database.value("SELECT count(*) FROM temp.kanon_reached") < nodes:
        _refuse_cycle(database, argument, edges)
    database.execute(_HEIGHTS.format(edges=edges))
    database.execute(_TREE.format(edges=edges))
    _refuse_star_below_root(database, argument)
    _refuse_lookalikes(database, argument)
    leaves, height = database.rows("SELECT count(*), max(len(path)) - 1 FROM temp.kanon_tree")[0]
    root = database.value(f"SELECT child FROM {edges} WHERE parent IS NULL")
    return Tree("temp.kanon_tree", root, leaves, nodes, height)


_REACHED = """
    CREATE OR REPLACE TEMPORARY TABLE kanon_reached AS
    WITH RECURSIVE reached AS (
        SELECT child AS label FROM {edges} WHERE parent IS NULL
        UNION ALL
        SELECT edges.child FROM reached JOIN {edges} AS edges ON edges.parent = reached.label
    )
    SELECT label FROM reached
"""

_HEIGHTS = """
    CREATE OR REPLACE TEMPORARY TABLE kanon_heights AS
    WITH RECURSIVE climbs AS (
        SELECT child AS label, 0 AS height FROM {edges}
        WHERE child NOT IN (SELECT parent FROM {edges} WHERE parent IS NOT NULL)
        UNION
        SELECT edges.parent, climbs.height + 1
        FROM climbs JOIN {edges} AS edges ON edges.child = climbs.label
        WHERE edges.parent IS NOT NULL
    )
    SELECT label, max(height) AS height FROM climbs GROUP BY label
"""

# Lists compare element by element and no leaf's path begins another's, so the order of root-first paths
# is depth-first.
_TREE = """
    CREATE OR REPLACE TEMPORARY TABLE kanon_tree AS
    WITH RECURSIVE nodes AS (
        SELECT edges.child, edges.parent, heights.height
        FROM {edges} AS edges JOIN temp.kanon_heights AS heights ON heights.label = edges.child
    ),
    down AS (
        SELECT child AS label, height, [child] AS path, [height] AS heights FROM nodes WHERE parent IS NULL
        UNION ALL
        SELECT nodes.child, nodes.height,
            list_append(down.path, nodes.child), list_append(down.heights, nodes.height)
        FROM down JOIN nodes ON nodes.parent = down.label
    )
    SELECT
        row_number() OVER (ORDER BY path) AS position,
        label AS leaf, list_reverse(path) AS path, list_reverse(heights) AS heights
    FROM down
    WHERE height = 0
    ORDER BY position
"""


def _refuse_second_root(database: Database, argument: str, edges: str) -> None:
    roots = database.rows(f"SELECT child FROM {edges} WHERE parent IS NULL ORDER BY child LIMIT 2")
    if len(roots) == 2:
        raise KanonError(
            f"{argument}: '{roots[0][0]}' and '{roots[1][0]}' are both roots; a hierarchy has one, so give "
            "them a common parent such as '*'"
        )


def _refuse_second_parent(database: Database, argument: str, edges: str) -> None:
    found = database.row(
        f"SELECT child, min(parent), max(parent) FROM {edges} GROUP BY child HAVING count(*) > 1 ORDER BY child LIMIT 1"
    )
    if found is not None:
        label, first, second = found
        raise KanonError(
            f"{argument}: '{label}' has two parents ({_path_up(database, edges, label, first)} and "
            f"{_path_up(database, edges, label, second)}); give it one, or two names that tell them apart"
        )


def _refuse_cycle(database: Database, argument: str, edges: str) -> None:
    parents = dict(
        database.rows(
            f"SELECT child, parent FROM {edges} "
            "WHERE child NOT IN (SELECT label FROM temp.kanon_reached) ORDER BY child"
        )
    )
    path = dict.fromkeys([next(iter(parents))])
    label = parents[next(iter(parents))]
    while label not in path:
        path[label] = None
        label = parents[label]
    labels = list(path)
    cycle = labels[labels.index(label) :]
    raise KanonError(f"{argument}: {written([*cycle, label])} is a cycle; every label must lead up to the root")


def _refuse_star_below_root(database: Database, argument: str) -> None:
    path = database.row("SELECT path FROM temp.kanon_tree WHERE list_contains(path[:-2], '*') LIMIT 1")
    if path is not None:
        raise KanonError(f"{argument}: '*' stands below the root in {written(path[0])}; it can only name the root")


def _refuse_lookalikes(database: Database, argument: str) -> None:
    found = database.row(
        "SELECT min(leaf), max(leaf) FROM temp.kanon_tree "
        "GROUP BY kanon_private.bare_text(leaf) HAVING count(*) > 1 ORDER BY 1 LIMIT 1"
    )
    if found is not None:
        raise KanonError(
            f"{argument}: the values {found[0]!r} and {found[1]!r} differ only by blanks or Unicode form; keep one"
        )


def _path_up(database: Database, edges: str, label: str, parent: str) -> str:
    """The path from a label by way of one of its parents, as far as it goes."""
    path = [label, parent]
    while True:
        above = database.value(f"SELECT min(parent) FROM {edges} WHERE child = ?", [path[-1]])
        if above is None:
            return written(path)
        path.append(above)
        if above in path[:-1] or len(path) == LONGEST_WRITTEN:
            return written(path)

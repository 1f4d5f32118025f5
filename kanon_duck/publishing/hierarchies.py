"""The part of the hierarchies that readers need for what was released, with the functions that read it."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from kanon_duck.hierarchy import FLAT, canonical_text
from kanon_duck.publishing.content import Content
from kanon_duck.runtime.database import Database, script

PRIVATE, OF_READERS = "kanon_private.", "kanon_readers."
"""The schema of the functions' own parts, and its name in what is published, which holds nothing private."""


def reader_functions() -> list[str]:
    """Scripts that make the tables of hierarchies and the functions of readers."""
    return [script(name).replace(PRIVATE, OF_READERS) for name in ("hierarchies.sql", "readers.sql")]


def released_part(database: Database, contents: list[Content]) -> tuple[pa.Table, pa.Table]:
    """The rows of ``hierarchies`` and ``hierarchy_leaves`` for some releases.

    Guarantee: of a tree only the leaves below a released label other than the root are there. That is what
    ``kanon.covers`` needs to answer for every released label as it does beside the masked view; a leaf that nothing
    released stands for is not told. A rule has no leaves.
    """
    selects = [_labels(content, column, hierarchy) for content in contents for column, hierarchy in _used(content)]
    labels = " UNION ".join(selects) or "SELECT NULL::VARCHAR AS hierarchy, NULL::VARCHAR AS label LIMIT 0"
    database.execute(f"CREATE OR REPLACE TEMPORARY TABLE kanon_labels AS {labels}")
    leaves = database.arrow(
        """
        WITH below AS (
            SELECT DISTINCT nodes.hierarchy, nodes.position
            FROM (
                SELECT hierarchy, position, unnest(path[:-2]) AS label FROM kanon_private.hierarchy_leaves
            ) AS nodes
            JOIN temp.kanon_labels AS labels
                ON lower(labels.hierarchy) = lower(nodes.hierarchy) AND labels.label = nodes.label
        )
        SELECT leaves.hierarchy, row_number() OVER (PARTITION BY leaves.hierarchy ORDER BY leaves.position) AS position,
               leaves.leaf, leaves.path, leaves.heights
        FROM kanon_private.hierarchy_leaves AS leaves SEMI JOIN below USING (hierarchy, position) ORDER BY 1, 2
        """
    )
    database.register("kanon_leaves", leaves)
    hierarchies = database.arrow(
        """
        SELECT stored.hierarchy, stored.kind, stored.root, stored.height,
               CASE WHEN stored.leaves IS NOT NULL THEN coalesce(part.leaves, 0) END AS leaves,
               CASE WHEN stored.nodes IS NOT NULL THEN coalesce(part.nodes, 0) END AS nodes,
               stored.widths, stored.decimals, stored.periods
        FROM kanon_private.hierarchies AS stored
        LEFT JOIN (
            SELECT hierarchy, count(DISTINCT position) AS leaves, count(DISTINCT label) AS nodes
            FROM (SELECT hierarchy, position, unnest(path) AS label FROM kanon_leaves) AS nodes GROUP BY hierarchy
        ) AS part ON part.hierarchy = stored.hierarchy
        WHERE lower(stored.hierarchy) IN (SELECT lower(name) FROM (SELECT unnest(?::VARCHAR[]) AS name) AS used)
        ORDER BY 1
        """,
        [sorted({hierarchy for content in contents for _, hierarchy in _used(content)})],
    )
    database.unregister("kanon_leaves")
    database.execute("DROP TABLE temp.kanon_labels")
    return hierarchies, leaves


def _used(content: Content) -> list[tuple[str, str]]:
    """The released columns whose values stand in a hierarchy, each with it."""
    quasi = [(name, declared["type"]) for name, declared in content.view.quasi_identifiers.items()]
    sensitive = [(each.name, each.hierarchy) for each in content.model.attributes if each.hierarchy is not None]
    return [(name, used) for name, used in quasi + sensitive if used not in ("numeric", FLAT)]


def _labels(content: Content, column: str, hierarchy: str) -> str:
    """SQL for the different labels of a column."""
    text = canonical_text(exp.column(column, quoted=True), content.types[column])
    labels = exp.select(exp.Literal.string(hierarchy).as_("hierarchy"), text.as_("label"))
    return labels.from_(content.rows.subquery("released")).sql(dialect="duckdb")

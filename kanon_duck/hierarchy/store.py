"""Finds, writes and removes the stored hierarchies."""

from __future__ import annotations

from typing import Any

from kanon_duck.errors import KanonError
from kanon_duck.hierarchy.tree import Tree
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database

RESERVED = ("flat", "numeric")
"""Words that cannot name a hierarchy, because they have another meaning in its place."""

TREES = ("levels", "edges")
"""The kinds that are stored leaf by leaf; the others are rules."""


def name_argument(call: Call) -> str:
    """The name of the hierarchy that a call is about.

    Raises
    ------
    KanonError
        When it is not a text or a reserved word.
    """
    name = call.arguments.get("hierarchy")
    if not isinstance(name, str) or not name.strip():
        raise KanonError(f"hierarchy: {read.shown(name)} is not a name; write a text such as 'zip'")
    if name.lower() in RESERVED:
        raise KanonError(
            f"hierarchy: '{name}' is a reserved word with a meaning of its own, not a hierarchy to create, "
            "extend or drop; choose another name"
        )
    return name


def find(database: Database, name: str) -> dict[str, Any] | None:
    """The stored hierarchy of that name, in any case, as its row of ``kanon_private.hierarchies``."""
    found = database.records("SELECT * FROM kanon_private.hierarchies WHERE lower(hierarchy) = lower(?)", [name])
    return found[0] if found else None


def existing(database: Database, name: str) -> dict[str, Any]:
    """Like `find`, but an unknown name raises KanonError."""
    found = find(database, name)
    if found is None:
        raise KanonError(
            f"hierarchy: there is no hierarchy '{name}'; FROM kanon.hierarchies lists them, "
            "CALL kanon.create_hierarchy makes one"
        )
    return found


def users(database: Database, hierarchy: str) -> list[str]:
    """Names of the masked views that use a hierarchy, in order."""
    return [
        name
        for (name,) in database.rows(
            "SELECT DISTINCT view_name FROM kanon_private.hierarchy_uses "
            "WHERE lower(hierarchy) = lower(?) ORDER BY view_name",
            [hierarchy],
        )
    ]


def write(
    database: Database,
    name: str,
    kind: str,
    height: int,
    root: str = "*",
    leaves: int | None = None,
    nodes: int | None = None,
    widths: list[int] | None = None,
    decimals: int | None = None,
    periods: list[str] | None = None,
) -> Row:
    """Store a hierarchy's own row; returns it as the procedures show it."""
    database.execute(
        "INSERT INTO kanon_private.hierarchies BY NAME "
        "SELECT ? AS hierarchy, ? AS kind, ? AS height, ? AS root, "
        "?::BIGINT AS leaves, ?::BIGINT AS nodes, ?::BIGINT[] AS widths, ?::INTEGER AS decimals, "
        "?::VARCHAR[] AS periods",
        [name, kind, height, root, leaves, nodes, widths, decimals, periods],
    )
    return {"hierarchy": name, "kind": kind, "leaves": leaves, "nodes": nodes, "height": height}


def remove(database: Database, name: str) -> None:
    """Remove a hierarchy and its leaves."""
    for table in ("hierarchies", "hierarchy_leaves"):
        database.execute(f"DELETE FROM kanon_private.{table} WHERE lower(hierarchy) = lower(?)", [name])


def write_tree(database: Database, name: str, kind: str, built: Tree) -> Row:
    """Store the tree that `tree.build` laid out."""
    database.execute(
        "INSERT INTO kanon_private.hierarchy_leaves BY NAME "
        f"SELECT ? AS hierarchy, position, leaf, path, heights FROM {built.table} ORDER BY position",
        [name],
    )
    return write(database, name, kind, built.height, built.root, built.leaves, built.nodes)


def shown(stored: dict[str, Any]) -> Row:
    """A stored hierarchy as the procedures show it."""
    return {column: stored[column] for column in ("hierarchy", "kind", "leaves", "nodes", "height")}

"""CALL kanon.extend_hierarchy: adds leaves to a hierarchy, from levels or edges; existing paths stay."""

from __future__ import annotations

from dataclasses import replace

from kanon_duck.catalog.views import find_view, record_extension
from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import store, tree
from kanon_duck.hierarchy.edges import read_edges, read_levels
from kanon_duck.release.classes import restate_shares
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Add leaves (and labels above them) to a tree; returns its row of ``kanon.hierarchies``.

    Paths that exist stay as they are, so what masked views have released keeps its meaning. A label may get
    higher; what it loses in the next releases is told by its new height.

    Raises
    ------
    KanonError
        When the hierarchy is a rule, the addition would change an existing path, or it would change the
        height while a masked view uses the hierarchy.
    """
    found = store.existing(call.database, store.name_argument(call))
    name, kind = found["hierarchy"], found["kind"]
    if kind not in store.TREES:
        raise KanonError(
            f"hierarchy: '{name}' is a rule ({kind}) and takes every value it can take already; "
            "only hierarchies made from levels or edges are extended"
        )
    given = [source for source in store.TREES if call.arguments.get(source) is not None]
    if len(given) != 1:
        raise KanonError(
            f"hierarchy '{name}': {' and '.join(given) or 'no source'} given; write exactly one of edges, levels"
        )
    argument = given[0]
    new_edges = (read_levels if argument == "levels" else read_edges)(call, call.arguments[argument])
    extended = tree.build(call.database, argument, _with_existing_edges(call, name, new_edges))
    _refuse_changed_paths(call, name, argument, extended)
    views = store.users(call.database, name)
    if views and extended.height != found["height"]:
        raise KanonError(
            f"{argument}: the height of '{name}' would change from {found['height']} to {extended.height}, "
            f"but the masked view {', '.join(views)} uses it; add leaves at the depth there is, "
            "or drop the view first"
        )
    store.remove(call.database, name)
    written = store.write_tree(call.database, name, kind, extended)
    record_extension(call.database, views, name)
    for view_name in views:
        view = find_view(replace(call, arguments={"view_name": view_name}, schema="main"))
        for place, declared in enumerate(view.quasi_identifiers.values()):
            if declared["type"] == name:
                restate_shares(call.database, view.number, place, name)
    return [written]


def _with_existing_edges(call: Call, name: str, new_edges: str) -> str:
    """The table of new edges and the tree's own; the parents of new labels may be known only there."""
    call.database.execute(
        "CREATE OR REPLACE TEMPORARY TABLE kanon_all_edges AS "
        "WITH existing AS (SELECT DISTINCT unnest(path) AS child, unnest(path[2:] || [NULL]) AS parent "
        "FROM kanon_private.hierarchy_leaves WHERE hierarchy = ?) "
        "SELECT child, parent FROM existing "
        f"UNION SELECT child, parent FROM {new_edges} "
        "WHERE parent IS NOT NULL OR child NOT IN (SELECT child FROM existing)",
        [name],
    )
    return "temp.kanon_all_edges"


def _refuse_changed_paths(call: Call, name: str, argument: str, extended: tree.Tree) -> None:
    changed = call.database.row(
        "SELECT leaves.path FROM kanon_private.hierarchy_leaves AS leaves "
        f"LEFT JOIN {extended.table} AS tree ON tree.leaf = leaves.leaf "
        "WHERE leaves.hierarchy = ? AND tree.path IS DISTINCT FROM leaves.path "
        "ORDER BY leaves.position LIMIT 1",
        [name],
    )
    if changed is not None:
        raise KanonError(
            f"{argument}: the path {tree.written(changed[0])} of '{name}' would change; an extension only adds leaves"
        )

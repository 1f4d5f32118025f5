"""CALL kanon.create_hierarchy: makes a hierarchy from prefixes, levels, edges, intervals or dates."""

from __future__ import annotations

from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import rules, store, tree
from kanon_duck.hierarchy.edges import read_edges, read_levels
from kanon_duck.runtime.call import Call, Row

SOURCES = ("prefix", "levels", "edges", "intervals", "dates")


def run(call: Call) -> list[Row]:
    """Make a hierarchy from exactly one source; returns its row of ``kanon.hierarchies``.

    Raises
    ------
    KanonError
        When the name is reserved or taken, not exactly one source is given, or the source is not a
        hierarchy.
    """
    name = store.name_argument(call)
    taken = store.find(call.database, name)
    if taken is not None:
        raise KanonError(
            f"hierarchy: '{taken['hierarchy']}' exists already; drop it first with "
            "CALL kanon.drop_hierarchy, or choose another name"
        )
    given = [kind for kind in SOURCES if call.arguments.get(kind) is not None]
    if len(given) != 1:
        raise KanonError(
            f"hierarchy '{name}': {' and '.join(given) or 'no source'} given; write exactly one of {', '.join(SOURCES)}"
        )
    kind = given[0]
    argument = call.arguments[kind]
    if kind in store.TREES:
        edges = (read_levels if kind == "levels" else read_edges)(call, argument)
        call.checkpoint(None)
        return [store.write_tree(call.database, name, kind, tree.build(call.database, kind, edges))]
    rule = {"prefix": rules.prefix, "intervals": rules.intervals, "dates": rules.dates}[kind](argument)
    return [store.write(call.database, name, kind, **rule)]

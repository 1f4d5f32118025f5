"""CALL kanon.drop_hierarchy: drops a hierarchy that no masked view uses."""

from __future__ import annotations

from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import store
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Remove a hierarchy that no masked view uses; returns the row it had.

    Raises
    ------
    KanonError
        When there is no such hierarchy or a masked view uses it.
    """
    found = store.existing(call.database, store.name_argument(call))
    views = store.users(call.database, found["hierarchy"])
    if views:
        raise KanonError(
            f"hierarchy: '{found['hierarchy']}' is used by the masked view {', '.join(views)}; drop the view first"
        )
    store.remove(call.database, found["hierarchy"])
    return [store.shown(found)]

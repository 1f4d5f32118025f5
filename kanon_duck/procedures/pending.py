"""FROM kanon.pending: changes of the source that are not in the current release yet."""

from __future__ import annotations

from kanon_duck.catalog.views import find_view
from kanon_duck.maintenance.refresh import find_changes
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """How many rows of the source were inserted, updated and deleted since the members were written."""
    *_, found = find_changes(call, find_view(call))
    return [
        {"change": "insert", "rows": found.inserted},
        {"change": "update", "rows": found.updated},
        {"change": "delete", "rows": found.deleted},
    ]

"""CALL kanon.refresh: makes the next release of a masked view from the changes of its source."""

from __future__ import annotations

from kanon_duck.catalog.views import find_view
from kanon_duck.maintenance.refresh import refresh
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Bring a masked view up to date, or tell what that would do."""
    return [refresh(call, find_view(call), read.boolean(call.arguments, "dry_run", False))]

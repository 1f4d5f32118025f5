"""CALL kanon.drop_masked_view: readers lose the view and its released rows; the private history stays."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.reading import readers
from kanon_duck.catalog.views import derived_views, find_view, new_version, record_drop, record_state, view_named
from kanon_duck.errors import KanonError
from kanon_duck.maintenance.triggers import remove_triggers
from kanon_duck.release.history import retire_released_rows
from kanon_duck.release.shown import shows_released_rows
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Drop a masked view. Its members and history stay, for checks of later views over the same source.

    Raises
    ------
    KanonError
        When another masked view reads it, or derives from it.
    """
    view = find_view(call)
    derived = [each.name for each in derived_views(call, view)]
    if derived:
        raise KanonError(
            f"masked view {view.name} is what {', '.join(derived)} derives from: drop that first, since it has no "
            "releases without it"
        )
    reading = readers(call, view)
    if reading:
        raise KanonError(
            f"masked view {view.name} is read by {', '.join(reading)}: drop that first, "
            "or give it another source with CALL kanon.rebuild"
        )
    if shows_released_rows(call.database, call.catalog, view):  # else it is the owner's by now, and stays
        masked_view = exp.table_(view.view, db=view.schema, catalog=call.catalog, quoted=True)
        call.database.execute(exp.Drop(tables=[masked_view], kind="VIEW"))
    retire_released_rows(call.database, view)
    if view.capture == "trigger":
        remove_triggers(call, view.number)
    record_drop(call.database, view)
    if view.derive_from is not None:  # what processes remember of the parent knows of the view
        record_state(call.database, view_named(call, view.derive_from).number, members_version=new_version())
    return [{"view_name": view.name, "releases": view.release}]

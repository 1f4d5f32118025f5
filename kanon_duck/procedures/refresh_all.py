"""CALL kanon.refresh_all: refreshes every masked view of the database, each after those that its source reads."""

from __future__ import annotations

from kanon_duck.catalog.reading import all_views
from kanon_duck.catalog.views import MaskedView, view_named
from kanon_duck.errors import KanonError, RecordedError
from kanon_duck.maintenance.refresh import refresh, row_of_derived, series_views
from kanon_duck.maintenance.without_release import failed
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Bring every masked view up to date; what stands in the way of one is told in its row.

    Each view is a transaction of its own: an interrupt leaves those that were finished before it.
    """
    views = all_views(call)
    answers: dict[str, Row] = {}
    for view in views:
        if view.name in answers:  # it was released together with another
            continue
        parent = view if view.derive_from is None else view_named(call, view.derive_from)
        together = series_views(call, parent)
        answers |= _refresh(call, together)
        call.commit_so_far()
    return [answers[view.name] for view in views]


def _refresh(call: Call, together: list[MaskedView]) -> dict[str, Row]:
    """The answers of one refresh, by name of the view and of those derived from it, or why there is none."""
    view, *derived = together
    try:
        row = refresh(call, view, dry_run=False)
        return {view.name: row} | {each.name: row_of_derived(call, each, row) for each in derived}
    except RecordedError as error:
        return {each.name: failed(call, each, error) for each in together}
    except KanonError as error:
        call.begin_again()
        return {each.name: failed(call, each, error) for each in together}

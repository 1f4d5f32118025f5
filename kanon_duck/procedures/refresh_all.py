"""CALL kanon.refresh_all: refreshes every masked view of the database, each after those that its source reads."""

from __future__ import annotations

from kanon_duck.catalog.reading import all_views
from kanon_duck.catalog.views import MaskedView
from kanon_duck.errors import KanonError, RecordedError
from kanon_duck.maintenance.refresh import refresh
from kanon_duck.maintenance.without_release import failed
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Bring every masked view up to date; what stands in the way of one is told in its row.

    Each view is a transaction of its own: an interrupt leaves those that were finished before it.
    """
    answers = []
    for view in all_views(call):
        answers.append(_refresh(call, view))
        call.commit_so_far()
    return answers


def _refresh(call: Call, view: MaskedView) -> Row:
    """The answer of one refresh, or why there is none."""
    try:
        return refresh(call, view, dry_run=False)
    except RecordedError as error:
        return failed(call, view, error)
    except KanonError as error:
        call.begin_again()
        return failed(call, view, error)

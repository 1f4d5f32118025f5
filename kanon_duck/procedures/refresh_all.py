"""CALL kanon.refresh_all: refreshes every masked view of the database, one after the other."""

from __future__ import annotations

from dataclasses import replace

from kanon_duck.catalog.views import MaskedView, find_view
from kanon_duck.errors import KanonError, RecordedError
from kanon_duck.maintenance.refresh import refresh
from kanon_duck.maintenance.without_release import failed
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Bring every masked view up to date; what stands in the way of one is told in its row.

    Each view is a transaction of its own: an interrupt leaves those that were finished before it.
    """
    names = [name for (name,) in call.database.rows("SELECT name FROM kanon.masked_views")]
    answers = []
    for name in names:
        view = find_view(replace(call, arguments={"view_name": name}, schema="main"))
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

"""Answers a call that makes no release, and records the reason in the catalog."""

from __future__ import annotations

from typing import Any

from kanon_duck.catalog.views import MaskedView, derived_views, record_state, release_row
from kanon_duck.errors import KanonError, RecordedError
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.release.members import held_back
from kanon_duck.runtime import shortfalls
from kanon_duck.runtime.call import Call, Row


def no_release(call: Call, view: MaskedView, cause: str, warnings: list[str], **state: Any) -> Row:
    """The release there is, with a cause that says why there is no new one.

    Parameters
    ----------
    state
        What `kanon.masked_views` is to say of the view.
    """
    record_state(call.database, view.number, **state)
    _record_of_derived(call, view, **state)
    return standing(call, view, cause, warnings)


def _record_of_derived(call: Call, view: MaskedView, status: str, reason: str | None, **_: Any) -> None:
    """Masked views that are derived from one have its releases: what stands in its way stands in theirs."""
    for derived in derived_views(call, view):
        record_state(call.database, derived.number, status=status, reason=reason)


def standing(call: Call, view: MaskedView, cause: str, warnings: list[str]) -> Row:
    """The row of the release there is, with nobody changed, and who waits or is left out now."""
    row = release_row(call.database, view.name, view.release)
    row |= dict.fromkeys(("inserted", "updated", "deleted", "moved"), 0)
    row["waiting"], row["suppressed"] = held_back(call.database, view.number)
    return row | {"cause": cause, "warnings": warnings, "seconds": 0.0}


def unchanged(call: Call, view: MaskedView, warnings: list[str]) -> Row:
    """What readers see stays as it is."""
    return no_release(call, view, "unchanged", warnings, status="current", reason=None)


def held(call: Call, view: MaskedView, model: PrivacyModel) -> Row:
    """No class can be made of the people that are left: readers keep the last release."""
    few = f"fewer than {model.k} rows are left that can be shown"
    if not model.on_size_alone:
        few = "the rows that are left make no class that satisfies the models"
    reason = f"{few}: release {view.release} stays until there are more"
    call.begin_again()
    shortfalls.note(view.name)
    return no_release(call, view, "held", [reason], status="held", reason=reason)


def undo_dry_run(call: Call, row: Row) -> Row:
    """Undo everything, and say what the answer would have been."""
    call.begin_again()
    if row["cause"] in ("unchanged", "held"):
        return row
    return row | {"cause": f"dry run: {row['cause']}", "warnings": [*row["warnings"], "a dry run: nothing was changed"]}


def broken(call: Call, view: MaskedView, error: KanonError) -> RecordedError:
    """The source cannot be read as it was at the release: nothing is done, and the catalog says why."""
    call.checkpoint(None)  # an interrupt is no fault of the source
    call.begin_again()
    record_state(call.database, view.number, status="broken", reason=error.reason)
    _record_of_derived(call, view, "broken", error.reason)
    return RecordedError(f"{error.reason} (release {view.release} stays as it is)")


def refused(call: Call, view: MaskedView, error: KanonError) -> RecordedError:
    """The check has refused the next release: readers keep the last one, and the catalog says why."""
    call.begin_again()
    record_state(call.database, view.number, status="stale", reason=error.reason)
    _record_of_derived(call, view, "stale", error.reason)
    return RecordedError(f"{error.reason} (release {view.release} stays as it is)")


def failed(call: Call, view: MaskedView, error: KanonError) -> Row:
    """A view that could not be refreshed while others are: the release there is, and why."""
    shortfalls.note(view.name)
    return standing(call, view, "failed", [error.reason])

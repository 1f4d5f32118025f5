"""CALL kanon.refresh: makes the next release of a masked view from the changes of its source."""

from __future__ import annotations

from kanon_duck.catalog.views import MaskedView, find_view, view_named
from kanon_duck.errors import KanonError
from kanon_duck.maintenance.refresh import refresh, series_views
from kanon_duck.publishing.publication import publish, stale
from kanon_duck.publishing.record import publications
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime import shortfalls
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Bring a masked view up to date, or tell what that would do; afterwards publish it where it was published before.

    Views that are released together are published together.

    Guarantee: the refresh is committed before anything is published, so a target that fails never loses it.
    """
    dry_run = read.boolean(call.arguments, "dry_run", False)
    then_publish = read.boolean(call.arguments, "publish", False)
    if dry_run and then_publish:
        raise KanonError("dry_run and publish are both true: a dry run makes nothing that could be published")
    view = find_view(call)
    row = refresh(call, view, dry_run)
    if then_publish:
        call.commit_so_far()
        row |= {"warnings": [*row["warnings"], *_publish(call, find_view(call))]}
    return [row]


def _publish(call: Call, view: MaskedView) -> list[str]:
    """Publish a masked view, and those that were released with it, where each was published before.

    Returns
    -------
    list of str
        What stood in the way, as warnings.
    """
    warnings = []
    if not any(view.name in each.views for each in publications(call.database)):
        warnings = [
            f"publish is true, but {view.name} was never published: CALL kanon.publish('{view.name}', ...) first"
        ]
    parent = view if view.derive_from is None else view_named(call, view.derive_from)
    for publication in stale(call, series_views(call, parent)):
        try:
            warnings += publish(call, publication)[0]["warnings"]
        except KanonError as error:
            call.begin_again()
            shortfalls.note(publication.target)
            warnings.append(f"{error.reason}; CALL kanon.publish_all() tries again")
        call.commit_so_far()
    return warnings

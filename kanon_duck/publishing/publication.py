"""Publishes masked views into a target, and brings what was published up to date."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from kanon_duck.catalog.views import MaskedView, find_view
from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import Content, current, earlier, refuse_same_names
from kanon_duck.publishing.record import (
    Publication,
    are_recorded,
    publication_rows,
    publications,
    record_publication,
)
from kanon_duck.publishing.targets import Target, read_target
from kanon_duck.runtime import shortfalls
from kanon_duck.runtime.call import Call, Row

FILE_KINDS = ("duckdb", "parquet", "csv")

COMPARABLE = "{} is not secure: who reads all of its releases can compare them; vulnerable_rows counts what they tell"


def publish(call: Call, publication: Publication) -> list[Row]:
    """Let a target hold the named masked views, and nothing else; it keeps what it held where that fails.

    Guarantee: the record is written after the target. So where the record is lost (a kill in between), the target
    counts as stale and is published again; it never counts as newer than it is.

    Returns
    -------
    list of dict
        One row per view, as of ``kanon.publications``, with ``rows``, ``warnings`` and ``seconds``.

    Raises
    ------
    KanonError
        With the target and what to do.
    """
    started = time.perf_counter()
    views = [_view(call, name) for name in publication.views]
    refuse_same_names(views)
    target = read_target(call, publication.target)
    publication = replace(publication, target=target.text)
    try:
        warnings = _write(call, target, publication, views)
    except KanonError:
        shortfalls.note(target.text)
        raise
    return _answers(call, target, views, warnings, time.perf_counter() - started)


def _write(call: Call, target: Target, publication: Publication, views: list[MaskedView]) -> list[str]:
    """Write a target and then its record; returns what the owner should know."""
    target.refuse_unwritable()
    if not are_recorded(call.database, target.text, views) and not target.is_ours(views):
        raise KanonError(
            f"target {target.text} holds something that kanon_duck has not published (or cannot be read now): name "
            "another target, or remove what is there"
        )
    warnings = target.warnings + _standing_warnings(target, publication, views)
    contents = _contents(call, publication, views)
    target.write(call, contents, publication.storage_version)
    call.use_our_schemas()
    record_publication(call.database, target.kind, publication, views, target.keeps_others)
    return warnings


def stale(call: Call, of_views: list[MaskedView] | None = None) -> list[Publication]:
    """What was published and is not up to date, all or that of some masked views; nor is a file that is gone."""
    outdated = {target for (target,) in call.database.rows("SELECT target FROM kanon.publications WHERE stale")}
    named = None if of_views is None else {view.name for view in of_views}
    found = []
    for each in publications(call.database):
        if not each.views or (named is not None and named.isdisjoint(each.views)):
            continue
        if each.target in outdated or _is_missing(each):
            found.append(each)
    return found


def failed(call: Call, publication: Publication, error: KanonError) -> list[Row]:
    """The rows of a target that could not be brought up to date."""
    shortfalls.note(publication.target)
    rows = publication_rows(call.database, publication.target)
    return [row | {"stale": True, "rows": None, "warnings": [error.reason], "seconds": 0.0} for row in rows]


def _view(call: Call, name: str) -> MaskedView:
    return find_view(replace(call, arguments={"view_name": name}))


def _is_missing(publication: Publication) -> bool:
    """Whether a file or folder is gone; of databases that is not asked."""
    return publication.kind in FILE_KINDS and not Path(publication.target).exists()


def _contents(call: Call, publication: Publication, views: list[MaskedView]) -> list[Content]:
    """The releases that the target will hold: the current ones first."""
    contents = [current(call, view) for view in views]
    if publication.releases == "all":
        contents += [content for view in views for content in earlier(call, view)]
    return contents


def _standing_warnings(target: Target, publication: Publication, views: list[MaskedView]) -> list[str]:
    """What the owner should know of every publication like this."""
    becomes = "stays in the target as it was" if target.keeps_others else "is no longer in the target"
    warnings = [f"{name}, which was dropped, {becomes}" for name in publication.dropped]
    if publication.releases == "all":
        warnings += [COMPARABLE.format(view.name) for view in views if not view.secure and view.release > 1]
    return warnings


def _answers(call: Call, target: Target, views: list[MaskedView], warnings: list[str], seconds: float) -> list[Row]:
    rows = {
        view.name: call.database.value(
            "SELECT rows FROM kanon_private.releases WHERE view_number = ? AND release = ?", [view.number, view.release]
        )
        for view in views
    }
    return [
        row | {"rows": rows[row["view_name"]], "warnings": warnings, "seconds": seconds}
        for row in publication_rows(call.database, target.text)
        if row["view_name"] in rows
    ]

"""What the commands refresh, publish, check, channels and status find of each masked view.

Each function yields one finding for each view: a dictionary whose names and their order do not change, because programs
read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb

from kanon_duck.errors import KanonError
from kanon_duck.runtime import shortfalls
from kanon_duck.runtime.arguments import one_of
from kanon_duck.shell.script import error_message, run_in_thread

Finding = dict[str, Any]

NOT_WELL = ("held", "broken")
"""What ``status`` is of a masked view that needs its owner."""

NOT_REFRESHED = ("failed", "held")
"""What ``cause`` is of a masked view that could not be refreshed."""

REFRESHED = (
    "released_at", "cause", "rows", "classes", "waiting", "suppressed", "inserted", "updated", "deleted", "moved",
    "counterfeits", "vulnerable_rows", "information_loss_per_row", "warnings", "seconds",
)  # fmt: skip
"""What a finding of `refresh_views` holds beside what every finding does."""

STATUS = ("released_at", "rows", "waiting", "checked_at", "refresh_recommended")
"""What a finding of `status_of_views` holds beside what every finding does."""

PUBLISHED = ("target", "kind", "release", "published_at", "stale", "warnings")
"""What a finding of `publish_views` holds of each target."""

_FAILED = """
    SELECT view_name, released_at, 'failed' AS cause, rows, classes, waiting, suppressed, 0 AS inserted, 0 AS updated,
           0 AS deleted, 0 AS moved, counterfeits, vulnerable_rows, information_loss_per_row, [?] AS warnings,
           CAST(0 AS DOUBLE) AS seconds
    FROM kanon.releases WHERE view_name = ? ORDER BY release DESC LIMIT 1"""


def refresh_views(connection: duckdb.DuckDBPyConnection, typed: Sequence[str]) -> Iterator[Finding]:
    """Refresh masked views: those that somebody has typed, in that order, or all, each after those that it reads.

    A view that cannot be refreshed does not keep the others from it.

    Raises
    ------
    KanonError
        When there is no masked view of a name, or none at all.
    """
    names = _named(connection, typed)
    if typed:
        answers = [_refreshed(connection, name) for name in names]
    else:
        answers = _records(connection, "CALL kanon.refresh_all()")
    views = _views(connection)
    for answer in answers:
        view = views[answer["view_name"]]
        refreshed = answer["cause"] not in NOT_REFRESHED
        reason = view["reason"] if refreshed else "; ".join(answer["warnings"])
        yield _finding(view, refreshed, reason) | {name: answer[name] for name in REFRESHED}


def publish_views(connection: duckdb.DuckDBPyConnection, typed: Sequence[str], target: str | None) -> Iterator[Finding]:
    """Publish masked views into a target, or publish again whatever is not up to date where none is named.

    Raises
    ------
    KanonError
        As `refresh_views`, and when there is no target yet.
    duckdb.Error
        When the text of the target means none that can be published into.
    """
    names = _named(connection, typed)
    if target is None:
        answers = _records(connection, "CALL kanon.publish_all()")
    else:
        answers = _published_into(connection, names, target)
    recorded = [row | {"warnings": []} for row in _records(connection, "FROM kanon.publications")]
    published = {(row["view_name"], row["target"]): row for row in [*recorded, *answers] if row["view_name"] in names}
    if not published:
        raise KanonError("nothing has been published yet: name masked views, and with --to where they go")
    views = _views(connection)
    for name in names:
        targets = [{each: row[each] for each in PUBLISHED} for row in published.values() if row["view_name"] == name]
        if targets:
            failed = [warning for each in targets if each["stale"] for warning in each["warnings"]]
            yield _finding(views[name], not failed, "; ".join(failed) or views[name]["reason"]) | {"targets": targets}


def check_views(connection: duckdb.DuckDBPyConnection, typed: Sequence[str]) -> Iterator[Finding]:
    """Recompute what masked views promise from what readers see of them. Raises as `refresh_views`."""
    return _asked(connection, typed, "FROM kanon.check(?)", "requirements", _broken_requirements)


def channels_of_views(connection: duckdb.DuckDBPyConnection, typed: Sequence[str]) -> Iterator[Finding]:
    """List what the releases of each masked view reveal together. Raises as `refresh_views`.

    Guarantee: keys of people are left out. What runs at night is written into logs and mails.
    """
    question = "FROM kanon.inference_channels(?) SELECT * EXCLUDE (keys)"
    return _asked(connection, typed, question, "channels", _number_of_channels)


def status_of_views(connection: duckdb.DuckDBPyConnection, typed: Sequence[str]) -> Iterator[Finding]:
    """Say what `kanon.masked_views` says; nothing is computed. Raises as `refresh_views`."""
    views = _views(connection)
    for name in _named(connection, typed):
        view = views[name]
        yield _finding(view, True, view["reason"]) | {name: view[name] for name in STATUS}


def _asked(
    connection: duckdb.DuckDBPyConnection,
    typed: Sequence[str],
    question: str,
    answer: str,
    what_is_wrong: Callable[[list[Finding]], str | None],
) -> Iterator[Finding]:
    """A finding for each view with the rows that a question returns of it."""
    names = _named(connection, typed)
    views = _views(connection)
    for name in names:
        try:
            rows = _records(connection, question, [name])
            wrong = what_is_wrong(rows)
        except duckdb.Error as error:
            rows, wrong = [], error_message(error)
        yield _finding(views[name], wrong is None, wrong or views[name]["reason"]) | {answer: rows}


def _broken_requirements(rows: list[Finding]) -> str | None:
    """The requirements that a release does not satisfy."""
    of = [row["requirement"] + (f" of {row['attribute']}" if row["attribute"] else "") for row in rows]
    broken = [
        f"{name} is {row['achieved']:g}, required {row['required']:g}"
        for name, row in zip(of, rows, strict=True)
        if not row["passed"]
    ]
    return "; ".join(broken) or None


def _number_of_channels(rows: list[Finding]) -> str | None:
    """How many channels there are, and about how many people at most they tell."""
    if not rows:
        return None
    most = max(row["victims"] for row in rows)
    return f"its releases together tell too much: {len(rows)} channels, one of them about {most} people"


def _finding(view: Finding, ok: bool, reason: str | None) -> Finding:
    """What every finding says first."""
    return {
        "view_name": view["name"],
        "ok": ok and view["status"] not in NOT_WELL,
        "status": view["status"],
        "reason": reason,
        "release": view["release"],
    }


def _refreshed(connection: duckdb.DuckDBPyConnection, name: str) -> Finding:
    """The row of a refresh, made up from the last release where it fails."""
    try:
        [row] = _records(connection, "CALL kanon.refresh(?)", [name])
    except duckdb.Error as error:
        [row] = _records(connection, _FAILED, [error_message(error), name])
    return row


def _published_into(connection: duckdb.DuckDBPyConnection, names: list[str], target: str) -> list[Finding]:
    """The rows of a publication; made up from what is recorded of the target where it cannot be written."""
    with shortfalls.listen() as heard:
        try:
            return _records(connection, "CALL kanon.publish(?, ?)", [names, target])
        except duckdb.Error as error:
            if not heard:
                raise
            failed = {"target": heard[0], "stale": True, "warnings": [error_message(error)]}
    recorded = _records(connection, "FROM kanon.publications WHERE target = ?", [failed["target"]])
    known = {row["view_name"]: row for row in recorded}
    return [dict.fromkeys(PUBLISHED) | {"view_name": name} | known.get(name, {}) | failed for name in names]


def _named(connection: duckdb.DuckDBPyConnection, typed: Sequence[str]) -> list[str]:
    """The masked views that somebody has typed, as `kanon.masked_views` names them; all where nothing was typed."""
    known = list(_views(connection))
    if not known:
        raise KanonError("the database has no masked views: CALL kanon.create_masked_view makes one")
    return [one_of("VIEW", name, known, "masked view") for name in typed] or known


def _views(connection: duckdb.DuckDBPyConnection) -> dict[str, Finding]:
    """The rows of `kanon.masked_views` by name."""
    return {row["name"]: row for row in _records(connection, "FROM kanon.masked_views")}


def _records(connection: duckdb.DuckDBPyConnection, statement: str, parameters: Sequence[Any] = ()) -> list[Finding]:
    """The rows of a statement, which Ctrl-C can stop."""

    def run() -> list[Finding]:
        cursor = connection.execute(statement, list(parameters))
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return run_in_thread(connection, run)

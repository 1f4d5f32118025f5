"""CALL kanon.forget: old releases are erased from what can be read, or one person from the private history."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from kanon_duck.catalog.keys import read_key
from kanon_duck.catalog.reading import views_over
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import changes_table, members_table, stays_table
from kanon_duck.catalog.views import MaskedView, find_view, record_first_release, stored_settings
from kanon_duck.errors import KanonError
from kanon_duck.publishing.record import Publication, publications
from kanon_duck.release.history import forget_before
from kanon_duck.release.stays import Erased, erase_person, has_history
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Erase the rows that only releases before some release have, or what is kept of one person who has left, or both.

    The releases' rows of ``kanon.releases`` stay. What is erased can no longer be queried, but its bytes stay in the
    database file until somebody rewrites it: the answer says so, and what else stays.
    """
    view = find_view(call)
    arguments = call.arguments
    if arguments.get("before_release") is None and arguments.get("key") is None:
        raise KanonError(
            "before_release is missing: name the first release that stays, as in before_release => 5, or the key of a "
            "person who has left, as in key => 4711"
        )
    first, rows, notes = view.first_release, 0, []
    if arguments.get("before_release") is not None:
        first, rows, note = _forget_releases(call, view)
        notes.append(note)
    if arguments.get("key") is not None:
        erased, note = _forget_person(call, view, arguments["key"])
        rows += erased
        notes.append(note)
    notes += [_published(view, each) for each in publications(call.database) if view.name in each.views]
    file = call.database.value("SELECT path FROM duckdb_databases() WHERE database_name = ?", [call.catalog])
    return [
        {
            "view_name": view.name,
            "first_release": first,
            "forgotten_releases": first - view.first_release,
            "forgotten_rows": rows,
            "file": file,
            "note": "; ".join([*notes, _of_file(call.catalog, file)]),
        }
    ]


def _forget_releases(call: Call, view: MaskedView) -> tuple[int, int, str]:
    """Erase old releases: the first that stays, how many rows are gone, and what stays."""
    before = read.integer(call.arguments, "before_release", None, 1)
    if before > view.release:
        raise KanonError(
            f"before_release is {before}, but {view.name} is at release {view.release}, which always stays: "
            f"name at most {view.release}"
        )
    rows = forget_before(call, view, before)
    first = max(before, view.first_release)
    record_first_release(call.database, view, first)
    if not view.key:
        return first, rows, "the rows can no longer be queried"
    return (
        first,
        rows,
        "the rows can no longer be queried; for checks of later releases, the private history still holds who was in "
        f"which class, and with which values, people who have left included ({stays_table(view.number)}): "
        f"CALL kanon.forget('{view.name}', key => ...) erases one of them",
    )


def _forget_person(call: Call, view: MaskedView, given: Any) -> tuple[int, str]:
    """Erase one person from the private history: how many rows that concerns, and what is weaker for it."""
    key = read_key(view, given)
    stored, settings = stored_settings(call, view)
    _refuse_member(call, view, key)
    if not has_history(settings):
        return 0, f"masked view {view.name} has a unit: its private history holds no people who have left"
    with_triggers = settings.capture == "trigger"
    if with_triggers:  # of somebody who came and left between two refreshes
        call.database.execute(f"DELETE FROM {changes_table(view.number)} WHERE {_matches(view)}", key)
    erased = erase_person(call, view.number, settings, key)
    return erased.rows, _of_person(stored, view, settings, erased)


def _matches(view: MaskedView) -> str:
    """SQL for whether a row has the key that is bound."""
    return " AND ".join(f"CAST(key_{place} AS VARCHAR) = ?" for place in range(len(view.key)))


def _refuse_member(call: Call, view: MaskedView, key: list[str]) -> None:
    """Who is still in the source as the last refresh saw it cannot be erased.

    Raises
    ------
    KanonError
        When the person is.
    """
    if call.database.value(f"SELECT count(*) FROM {members_table(view.number)} WHERE {_matches(view)}", key):
        raise KanonError(
            f"key is {read.shown(call.arguments['key'])}, whom {view.name} still knows: delete the row from the source "
            f"and CALL kanon.refresh('{view.name}') first"
        )


def _of_person(call: Call, view: MaskedView, settings: Settings, erased: Erased) -> str:
    """What is weaker now, and where the person may still be."""
    others = [f"{name} (dropped)" if dropped else name for name, dropped in views_over(call, settings.source)]
    others = [name for name in others if name != view.name]
    also = f"; other masked views over this source keep their own history: {', '.join(others)}" if others else ""
    if not erased.rows:
        return f"the private history of {view.name} holds nobody with this key{also}"
    first, last = erased.first_release, erased.last_release
    releases = f" (releases {first} to {last})" if first is not None else ""
    values = (
        "what classes show stays, without whose it is, because the certificates of the others need it"
        if view.secure
        else "somebody without values stands in the person's place"
    )
    return (
        f"the person's number and values are erased from the private history{releases}; {values}; later checks "
        "(kanon.inference_channels, kanon.attack, vulnerable_rows, certificates) cannot tell what these releases say "
        "of this person, take missing values for one more value, and the person for somebody new on returning; the "
        f"released rows of earlier releases stay until before_release erases them{also}"
    )


def _published(view: MaskedView, publication: Publication) -> str:
    """What is still with readers, and how to be rid of it."""
    return (
        f"what was published into {publication.target} stays as it is until you publish again: "
        f"CALL kanon.publish('{view.name}', ...)"
    )


def _of_file(catalog: str, file: str | None) -> str:
    """What is still in the file, and how to be rid of it."""
    if file is None:
        return "the database is in memory: no file holds what is erased"
    name = exp.to_identifier(catalog, quoted=True).sql(dialect="duckdb")
    return (
        "the bytes of what is erased stay in the file, and in its backups and write-ahead log, until it is written "
        f"anew: ATTACH 'new.duckdb' AS rewritten; COPY FROM DATABASE {name} TO rewritten; then put the new file in the "
        "place of the old and erase that"
    )

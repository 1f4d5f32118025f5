"""CALL kanon.rebuild: makes all classes of a masked view again from scratch, with the same or other settings."""

from __future__ import annotations

import time
from dataclasses import replace

from kanon_duck.catalog.column_types import first_other_type
from kanon_duck.catalog.settings import Settings, read_settings, standing_warnings
from kanon_duck.catalog.views import (
    MaskedView,
    find_view,
    record_release,
    release_row,
    stored_call,
    stored_types,
)
from kanon_duck.errors import KanonError
from kanon_duck.intake.kept_columns import check_kept
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.maintenance.from_scratch import release_from_scratch
from kanon_duck.maintenance.last_release import compare_with_last, remember_last
from kanon_duck.maintenance.triggers import install_triggers, remove_triggers, trigger_source
from kanon_duck.maintenance.without_release import secure_message, undo_dry_run
from kanon_duck.privacy.feasibility import refuse_impossible
from kanon_duck.release.classes import end_all_classes
from kanon_duck.release.history import keep_history
from kanon_duck.release.shown import put_back
from kanon_duck.release.stays import end_versions
from kanon_duck.release.widening import widen
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row

OF_THE_CALL = ("view_name", "dry_run")
"""Arguments that are no settings."""

SWITCHES = ("secure", "independent")
"""Settings that are true or false; any other that is typed as false is taken off, as if it had never been typed."""


def run(call: Call) -> list[Row]:
    """Make the next release from scratch; what is not typed stays as it was, and columns keep their roles."""
    started = time.perf_counter()
    view = find_view(call)
    dry_run = read.boolean(call.arguments, "dry_run", False)
    told = put_back(call, view, dry_run)
    changed = _with_changes(call, view)
    settings = read_settings(changed, stored_types(call, view))
    _refuse_other_columns(call, view, settings)
    if settings.secure and not view.secure:
        raise KanonError(
            "secure is true, but readers could compare the releases so far: leave it out, or make another masked view"
        )
    if settings.secure:
        raise KanonError(secure_message(view))
    if settings.capture == "trigger":
        trigger_source(changed, settings)
    call.phase("reading")
    snapshot = take_snapshot(changed, settings)
    refuse_impossible(call.database, settings.model, snapshot.rows, snapshot.table)
    check_kept(call.database, settings, snapshot.table)
    widen(call, view, settings)
    last = remember_last(call.database, settings, view.number)
    ended = end_all_classes(call.database, view.number, view.release + 1)
    end_versions(call.database, settings, ended)
    keep_history(call.database, settings, ended)
    release, losses, found = release_from_scratch(
        changed, settings, snapshot.table, view.number, view.release + 1, "rebuild"
    )
    if view.capture == "trigger":
        remove_triggers(call, view.number)
    if settings.capture == "trigger":
        install_triggers(changed, settings, view.number)
    release |= compare_with_last(call.database, settings, view.number, last)
    warnings = standing_warnings(settings)
    if view.secure:
        warnings.append("secure => false: whoever has several releases can compare them")
    release |= {"warnings": warnings + found, "seconds": time.perf_counter() - started}
    record_release(call.database, view.number, release, losses)
    row = release_row(call.database, view.name, view.release + 1)
    row |= {"warnings": told + row["warnings"]}
    return [undo_dry_run(call, row) if dry_run else row]


def _with_changes(call: Call, view: MaskedView) -> Call:
    """The call that the settings were read from, with the options that are typed now in their place."""
    typed = {name: value for name, value in call.arguments.items() if value is not None and name not in OF_THE_CALL}
    stored = stored_call(call, view)
    before = dict(stored.arguments)
    if "method" in typed:  # what was set for another method means nothing for this one
        before |= dict.fromkeys(("effort", "method_options"))
    taken_off = [name for name, value in typed.items() if value is False and name not in SWITCHES]
    typed |= dict.fromkeys(taken_off)
    schema = call.schema if "source" in typed else stored.schema
    return replace(stored, arguments={**before, **typed}, schema=schema)


def _refuse_other_columns(call: Call, view: MaskedView, settings: Settings) -> None:
    """What readers see keeps its columns, their names and their types.

    Raises
    ------
    KanonError
        With the first column that would change.
    """
    before = {
        "key": view.key,
        "quasi_identifiers": list(view.quasi_identifiers),
        "sensitive": view.sensitive,
        "keep": view.keep,
    }
    roles = settings.roles()
    after = {
        "key": roles["key"],
        "quasi_identifiers": roles["quasi_identifier"],
        "sensitive": roles["sensitive"],
        "keep": roles["kept"],
    }
    for argument, columns in before.items():
        same = columns == after[argument] if argument == "key" else sorted(columns) == sorted(after[argument])
        if not same:
            raise KanonError(
                f"{argument} is {read.shown(after[argument])} and was {read.shown(columns)}: a rebuild keeps the "
                "columns that readers know; make another masked view"
            )
    for each in settings.quasi_identifiers:
        if (each.hierarchy is None) != (view.quasi_identifiers[each.name]["type"] == "numeric"):
            raise KanonError(
                f"quasi_identifiers.{each.name} would be released with other columns than before: "
                "make another masked view"
            )
    other = first_other_type(stored_types(call, view), settings)
    if other is not None:
        raise KanonError(
            f"{other}: a rebuild keeps the types that readers know; give it its type back, or make another masked view"
        )

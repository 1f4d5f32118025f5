"""CALL kanon.rebuild: makes all classes of a masked view again from scratch, with the same or other settings."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from kanon_duck.catalog.column_types import first_other_type
from kanon_duck.catalog.settings import Settings, read_settings, standing_warnings
from kanon_duck.catalog.views import (
    MaskedView,
    derived_views,
    domain_widths,
    find_view,
    follow_parent,
    record_release,
    record_settings,
    refuse_derived,
    release_row,
    settings_as_made,
    stored_call,
    stored_settings,
    stored_types,
)
from kanon_duck.clustering.declared import cluster
from kanon_duck.errors import KanonError
from kanon_duck.intake.kept_columns import check_kept
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.capture import compare
from kanon_duck.maintenance.from_scratch import release_from_scratch
from kanon_duck.maintenance.last_release import compare_with_last, remember_last
from kanon_duck.maintenance.refresh import series_views
from kanon_duck.maintenance.secure_refresh import encode_changes, release_changes
from kanon_duck.maintenance.triggers import install_triggers, remove_triggers, trigger_source
from kanon_duck.maintenance.without_release import undo_dry_run
from kanon_duck.privacy.feasibility import refuse_impossible
from kanon_duck.release.classes import end_all_classes
from kanon_duck.release.generalization import generalize
from kanon_duck.release.history import keep_history
from kanon_duck.release.shown import put_back
from kanon_duck.release.stays import end_versions
from kanon_duck.release.widening import widen
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row

OF_THE_CALL = ("view_name", "new_series", "dry_run")
"""Arguments that are no settings."""

OF_THE_SERIES = {
    "source": "source",
    "model": "k, l and p",
    "keep": "keep",
    "sensitive": "sensitive",
    "quasi_identifiers": "quasi_identifiers",
}
"""Settings that a secure series keeps, and what they are called."""

OF_SECURE_VIEWS = ("on_delete", "reserve", "patience")
"""Options that mean nothing without ``secure``."""

MUCH_WIDER = 10
"""Times that a domain may be as wide as before without a word."""

SWITCHES = ("secure", "independent")
"""Settings that are true or false; any other that is typed as false is taken off, as if it had never been typed."""


def run(call: Call) -> list[Row]:
    """Make the next release from scratch; what is not typed stays as it was, and columns keep their roles."""
    started = time.perf_counter()
    view = find_view(call)
    refuse_derived(view, "rebuild")
    dry_run = read.boolean(call.arguments, "dry_run", False)
    of_the_view = [warning for each in series_views(call, view) for warning in put_back(call, each, dry_run)]
    changed = _with_changes(call, view)
    settings = read_settings(changed, stored_types(call, view))
    _refuse_other_columns(call, view, settings)
    new_series = read.boolean(call.arguments, "new_series", False)
    if settings.secure and not view.secure and not new_series:
        raise KanonError(
            f"secure is true, but the releases of {view.name} so far can be compared: new_series => true begins a "
            "secure series with the next release, and says that earlier recipients may compare"
        )
    derived = derived_views(call, view)
    if derived and (new_series or not settings.secure):
        raise KanonError(
            f"{'new_series' if new_series else 'secure'} would end the series of {view.name}, from which "
            f"{', '.join(each.name for each in derived)} derives: drop that first"
        )
    if settings.capture == "trigger":
        trigger_source(changed, settings)
    if settings.secure and not new_series:
        row = _continue_series(call, changed, view, settings, started)
        row |= {"warnings": of_the_view + row["warnings"]}
        return [undo_dry_run(call, row) if dry_run else row]
    call.phase("reading")
    snapshot = take_snapshot(changed, settings)
    refuse_impossible(call.database, settings.model, snapshot.rows, snapshot.table)
    check_kept(call.database, settings, snapshot.table)
    widen(call, view, settings)
    before = domain_widths(call, view)
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
    warnings = standing_warnings(settings) + _widened(before, domain_widths(call, find_view(call)))
    if view.secure and not settings.secure:
        warnings.append("secure => false: whoever has several releases can compare them")
    if settings.secure:
        warnings.append(
            f"a new series begins: whoever has releases 1 to {view.release} can compare them with later ones"
        )
    release |= {"warnings": warnings + found, "seconds": time.perf_counter() - started}
    record_release(call.database, view.number, release, losses)
    row = release_row(call.database, view.name, view.release + 1)
    row |= {"warnings": of_the_view + row["warnings"]}
    return [undo_dry_run(call, row) if dry_run else row]


def _widened(before: dict[str, Fraction], after: dict[str, Fraction]) -> list[str]:
    """What the owner should know of domains that have become much wider."""
    return [
        f"the domain of {name} is {round(width / before[name])} times as wide as before, and all information loss of "
        f"{name} is told as a share of it: name a domain if values far outside the rest are not meant"
        for name, width in after.items()
        if 0 < MUCH_WIDER * before[name] < width
    ]


def _with_changes(call: Call, view: MaskedView) -> Call:
    """The call that the settings were read from, with the options that are typed now in their place."""
    typed = {name: value for name, value in call.arguments.items() if value is not None and name not in OF_THE_CALL}
    stored = stored_call(call, view)
    before = dict(stored.arguments)
    if "method" in typed:  # what was set for another method means nothing for this one
        before |= dict.fromkeys(("effort", "method_options"))
    if typed.get("secure") is False:
        before |= dict.fromkeys(OF_SECURE_VIEWS)
    taken_off = [name for name, value in typed.items() if value is False and name not in SWITCHES]
    typed |= dict.fromkeys(taken_off)
    schema = call.schema if "source" in typed else stored.schema
    return replace(stored, arguments={**before, **typed}, schema=schema)


def _continue_series(call: Call, changed: Call, view: MaskedView, settings: Settings, started: float) -> Row:
    """The next release of a secure series: what the rules allow, and what classes free of them would lose.

    Raises
    ------
    KanonError
        When a setting would be another that the series is proved safe for, or by which its people are encoded.
    """
    database = call.database
    stored, before = stored_settings(call, view)
    fixed = before.quasi_identifiers
    before = replace(before, quasi_identifiers=[replace(each, fixed_domain=None, fixed_bulk=None) for each in fixed])
    for name in OF_THE_SERIES:
        if getattr(settings, name) != getattr(before, name):
            raise KanonError(
                f"{OF_THE_SERIES[name]} would be others than those that the releases of {view.name} are proved safe "
                "for: new_series => true begins anew, and says that earlier recipients may compare"
            )
    settings = replace(settings, quasi_identifiers=fixed)
    version = record_settings(changed, view.number, settings, settings_as_made(database, view))
    for derived in derived_views(call, view):
        follow_parent(call, derived)
    call.phase("reading")
    found = compare(stored, settings, view.number)
    call.phase("encoding")
    if settings.weights != before.weights:
        call.memory.take()  # its codes have the weights of before
    state, batch = encode_changes(call, view, settings, found.table)
    view = replace(view, settings_version=version)
    row = release_changes(call, view, settings, state, batch, found.warnings, "rebuild", started)
    if before.capture == "trigger":
        remove_triggers(call, view.number)
    if settings.capture == "trigger":
        install_triggers(changed, settings, view.number)
    free = _loss_without_series(call, settings, view)
    if free is not None and free < row["information_loss_per_row"]:
        row["warnings"] = [
            *row["warnings"],
            f"classes free of the series would lose {free:.4g} a row instead of {row['information_loss_per_row']:.4g}: "
            "new_series => true begins anew, and says that earlier recipients may compare",
        ]
    return row


def _loss_without_series(call: Call, settings: Settings, view: MaskedView) -> float | None:
    """Information loss per row of the released people if they were clustered from scratch; None if they cannot be."""
    state = call.memory.state
    if state is None:
        return None
    call.phase("clustering")
    shown = state.microdata.take(np.flatnonzero(state.labels != NO_CLASS))
    labels = cluster(call, settings, shown).labels
    if np.all(labels == NO_CLASS):
        return None
    classes = generalize(shown, labels)
    return float(classes.sizes @ classes.shares.sum(axis=1) / classes.sizes.sum())


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
    if settings.has_counterfeits != view.has_counterfeits:
        raise KanonError(
            "secure, on_delete or reserve would make released rows of nobody, or end them, and so change the columns "
            "that readers know, by weight: make another masked view"
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

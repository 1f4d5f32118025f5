"""Makes a whole release from the rows of the source, for the first release and for a rebuild."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table
from kanon_duck.catalog.views import new_version, record_settings, record_state
from kanon_duck.clustering.declared import cluster
from kanon_duck.encoding.microdata import Microdata, NumericAttribute
from kanon_duck.inference.own_history import count_vulnerable
from kanon_duck.intake.encode import encode
from kanon_duck.intake.numeric_columns import steps_of
from kanon_duck.maintenance.secure_series import begin_series, contents, store_series
from kanon_duck.maintenance.state import SecureSeries, State, keep_in_mind
from kanon_duck.release.classes import create_classes, create_diversity, weigh_classes, with_contents
from kanon_duck.release.generalization import generalize
from kanon_duck.release.history import create_history
from kanon_duck.release.make_current import PeopleCounts, describe_release, in_force, make_current
from kanon_duck.release.members import create_members, held_back
from kanon_duck.release.slots import add_tuples, create_tuples, read_bounds, tuples_of
from kanon_duck.release.stays import create_membership
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.parallel import in_background

MANY_QUASI_IDENTIFIERS = 20
"""Beyond this many, classes of any size lose most of what they could tell."""


def release_from_scratch(
    call: Call, settings: Settings, snapshot: str, view_number: int, release: int, cause: str
) -> tuple[Row, dict[str, float], list[str]]:
    """Encode the snapshot, cluster it from scratch and make its release.

    Parameters
    ----------
    call : Call
        Its arguments are those that the settings were read from.
    settings : Settings
    snapshot : str
        Table of the source's rows, from `take_snapshot`.
    view_number, release : int
        Of the masked view, and of the release to be made.
    cause : str

    Returns
    -------
    dict
        The release as `describe_release` gives it, with nobody changed.
    dict
        Information loss of each quasi-identifier.
    list of str
        Warnings.
    """
    database = call.database
    call.phase("encoding")
    encoded = encode(database, settings, snapshot)
    microdata = encoded.microdata
    call.phase("clustering")
    labels, levels, warnings = cluster(call, settings, microdata)
    call.phase("generalizing")
    with in_background(generalize, microdata, labels, levels) as generalized:
        create_members(database, view_number, settings, encoded, labels)
    classes, series = generalized.result(), None
    if settings.secure:
        series = _begin_series(call, settings, view_number, microdata, labels, release)
        held = contents(series)
        people = held.people if settings.has_counterfeits else None
        classes = with_contents(classes, np.arange(len(classes.sizes)), held.rows, people)
    call.phase("writing")
    create_classes(database, view_number, microdata, classes, release)
    if settings.has_counterfeits:
        weigh_classes(database, view_number, release)
    call.phase("releasing")
    all_warnings = make_current(call, view_number, settings, release, release == 1)
    if release == 1:
        create_history(database, settings)
        create_membership(database, view_number, settings)
    create_diversity(database, view_number, settings)

    described = in_force(database, microdata.attributes, settings)
    domains = {
        attribute.name: list(map(str, steps_of(database, attribute, [*attribute.domain, *attribute.bulk])))
        for attribute in microdata.attributes
        if isinstance(attribute, NumericAttribute)
    }
    as_made = {"quasi_identifiers": json.dumps(described), "domains": json.dumps(domains)}
    version = record_settings(call, view_number, settings, as_made)
    members_version = new_version()
    waiting, suppressed = held_back(database, view_number)
    record_state(
        database, view_number, status="current", reason=None, waiting=waiting, refresh_recommended=None,
        members_version=members_version,
    )  # fmt: skip
    keep_in_mind(call, State(members_version, microdata, labels, np.ones(len(labels), bool), series=series))
    counterfeits = 0 if series is None else contents(series).counterfeits
    counts = PeopleCounts(waiting=waiting, suppressed=suppressed, counterfeits=counterfeits)
    row, losses = describe_release(database, view_number, settings, release, cause, counts)
    all_warnings += [*encoded.warnings, *warnings, *_costly(losses, row["rows"])]
    if settings.secure:
        row["vulnerable_rows"] = 0 if release == 1 else None  # of a new series, earlier releases are not looked at
    else:
        row["vulnerable_rows"], uncounted = count_vulnerable(call, view_number, settings, release, near=False)
        all_warnings += uncounted
    return row | {"settings_version": version}, losses, all_warnings


def _begin_series(
    call: Call, settings: Settings, view_number: int, microdata: Microdata, labels: NDArray[np.int64], release: int
) -> SecureSeries:
    """Put the classes of a first release into the terms of slots, and store these."""
    database, members = call.database, members_table(view_number)
    create_tuples(database, view_number, settings)
    add_tuples(database, view_number, settings, members)
    value = tuples_of(database, view_number, settings, members, "given.row")
    bounds = read_bounds(database, view_number, settings)
    series = begin_series(settings, microdata, value, labels, bounds, release, call.checkpoint)
    store_series(database, view_number, settings, series, microdata, None)
    return series


def _costly(losses: dict[str, float], rows: int) -> list[str]:
    """Names the quasi-identifiers that cost most, where there are too many for any class to tell much."""
    if len(losses) <= MANY_QUASI_IDENTIFIERS:
        return []
    worst = sorted(losses, key=lambda name: -losses[name])[:5]
    shown = ", ".join(f"{name} ({losses[name] / rows:.2f} per row)" for name in worst)
    return [f"{len(losses)} quasi-identifiers leave little to tell; those that cost most: {shown}"]

"""Makes a whole release from the rows of the source, for the first release and for a rebuild."""

from __future__ import annotations

import json

import numpy as np

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.views import new_version, record_settings, record_state
from kanon_duck.clustering.declared import cluster
from kanon_duck.encoding.microdata import NumericAttribute
from kanon_duck.inference.own_history import count_vulnerable
from kanon_duck.intake.encode import encode
from kanon_duck.maintenance.state import State, keep_in_mind
from kanon_duck.release.classes import create_classes, create_diversity
from kanon_duck.release.generalization import generalize
from kanon_duck.release.history import create_history
from kanon_duck.release.members import create_members
from kanon_duck.release.publish import PeopleCounts, describe_release, domain_steps, in_force, publish
from kanon_duck.release.stays import create_membership
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.parallel import in_background

MANY_QUASI_IDENTIFIERS = 20
"""Beyond this many, classes of any size lose most of what they could tell."""


def release_from_scratch(
    call: Call, settings: Settings, snapshot: str, view_number: int, release: int, cause: str
) -> tuple[Row, dict[str, float], list[str]]:
    """Encode the snapshot, cluster it from scratch and publish it.

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
    call.phase("writing")
    create_classes(database, view_number, microdata, generalized.result(), release)
    call.phase("publishing")
    publish(database, view_number, settings, call.catalog, release)
    if release == 1:
        create_history(database, settings)
        create_membership(database, view_number, settings)
    create_diversity(database, view_number, settings)

    described = in_force(database, microdata.attributes, settings)
    domains = {
        attribute.name: list(map(str, domain_steps(database, attribute)))
        for attribute in microdata.attributes
        if isinstance(attribute, NumericAttribute)
    }
    as_made = {"quasi_identifiers": json.dumps(described), "domains": json.dumps(domains)}
    version = record_settings(call, view_number, settings, as_made)
    members_version = new_version()
    record_state(
        database, view_number, status="current", reason=None, waiting=0, refresh_recommended=None,
        members_version=members_version,
    )  # fmt: skip
    keep_in_mind(call, State(members_version, microdata, labels, np.ones(len(labels), bool)))
    counts = PeopleCounts(suppressed=int(np.count_nonzero(labels < 0)))
    row, losses = describe_release(database, view_number, settings, release, cause, counts)
    told = [*encoded.warnings, *warnings, *_costly(losses, row["rows"])]
    if not settings.secure:
        row["vulnerable_rows"], uncounted = count_vulnerable(call, view_number, settings, release, near=False)
        told += uncounted
    return row | {"settings_version": version}, losses, told


def _costly(losses: dict[str, float], rows: int) -> list[str]:
    """Names the quasi-identifiers that cost most, where there are too many for any class to tell much."""
    if len(losses) <= MANY_QUASI_IDENTIFIERS:
        return []
    worst = sorted(losses, key=lambda name: -losses[name])[:5]
    shown = ", ".join(f"{name} ({losses[name] / rows:.2f} per row)" for name in worst)
    return [f"{len(losses)} quasi-identifiers leave little to tell; those that cost most: {shown}"]

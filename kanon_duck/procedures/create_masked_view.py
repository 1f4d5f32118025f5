"""CALL kanon.create_masked_view: settings and a source become release 1 of a masked view."""

from __future__ import annotations

import math
import time
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from kanon_duck.call import Call, Row
from kanon_duck.catalog import (
    next_view_number,
    now,
    record_release,
    record_view,
    refuse_taken,
    release_row,
    views_over,
)
from kanon_duck.clustering import METHODS
from kanon_duck.clustering.suppress import suppress
from kanon_duck.encoding import Encoding
from kanon_duck.generalization import generalize
from kanon_duck.kept import check_kept
from kanon_duck.loss import average_class_size, information_loss
from kanon_duck.microdata import encode, take_snapshot
from kanon_duck.release import diversity, in_force, publish, released_columns, store
from kanon_duck.settings import Settings, read_settings
from kanon_duck.sql import Database

MANY_QUASI_IDENTIFIERS = 20
"""Beyond this many, classes of any size lose most of what they could tell."""


def run(call: Call) -> list[Row]:
    """Make a masked view and its first release."""
    started = time.perf_counter()
    database = call.database
    settings = read_settings(call)
    refuse_taken(database, settings, call.catalog)
    call.phase("reading")
    rows = take_snapshot(call, settings)
    settings.model.refuse_too_few(rows)
    check_kept(database, settings)
    warnings = _warnings(database, settings)
    call.phase("encoding")
    microdata = encode(database, settings)

    call.phase("clustering")
    labels = _cluster(call, settings, microdata.encoding)
    call.phase("generalizing")
    classes = generalize(microdata, labels)
    per_attribute, loss = information_loss(classes.sizes, classes.shares)
    losses = dict(zip(settings.roles()["quasi_identifier"], map(float, per_attribute), strict=True))

    call.phase("writing")
    number = next_view_number(database)
    store(database, number, settings, microdata, labels, classes)
    call.phase("publishing")
    sizes = publish(database, number, settings, call.catalog)
    l_achieved, max_frequency = diversity(database, number, settings)
    released = {name for name, _ in released_columns(settings)}
    record_view(database, number, settings, in_force(microdata, settings, database))
    release = {
        "release": 1,
        "released_at": now(),
        "cause": "create",
        "rows": sizes.rows,
        "classes": sizes.classes,
        "waiting": 0,
        "suppressed": rows - sizes.rows,
        "inserted": sizes.rows,
        "updated": 0,
        "deleted": 0,
        "moved": 0,
        "counterfeits": 0,
        "k_achieved": sizes.smallest,
        "l_achieved": l_achieved,
        "max_frequency": max_frequency,
        "information_loss": loss,
        "information_loss_per_row": loss / sizes.rows,
        "discernibility": sizes.discernibility,
        "average_class_size": average_class_size(sizes.rows, sizes.classes, settings.model.k),
        "vulnerable_rows": None,
        "method": settings.method,
        "settings_version": 1,
        "not_released": [name for name in settings.columns if name not in released],
        "warnings": warnings + microdata.warnings + _costly(losses, sizes.rows),
        "seconds": time.perf_counter() - started,
    }
    record_release(database, number, release, losses)
    return [release_row(database, settings.name, 1)]


def _cluster(call: Call, settings: Settings, encoding: Encoding) -> NDArray[np.int64]:
    """The class of each row by the declared method, -1 for the rows left out."""
    options = dict(settings.method_options)
    if settings.method == "auto":
        options["effort"] = settings.effort
    generator = np.random.default_rng(settings.seed)
    labels = METHODS[settings.method](encoding, settings.model, generator, call.checkpoint, **options)
    limit = math.floor(Decimal(repr(settings.max_suppression)) * encoding.rows)  # 0.29 of 100 rows are 29
    return suppress(encoding, labels, settings.model.k, limit, call.checkpoint) if limit else labels


def _warnings(database: Database, settings: Settings) -> list[str]:
    """What the owner should know before anybody reads the view."""
    warnings = [f"{name} is released without l, p, alpha or t" for name in settings.sensitive]
    warnings += [f"{name} is released unchanged although it is linkable" for name in settings.allow_unsafe_keep]
    if not settings.independent:
        others = views_over(database, settings.source)
        for names, state in (
            ([name for name, dropped in others if not dropped], "over this source too"),
            ([name for name, dropped in others if dropped], "over this source and dropped"),
        ):
            if names:
                shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                warnings.append(
                    f"made {state}: {shown}; whoever has both can compare them; "
                    "independent => true says that this is meant"
                )
    return warnings


def _costly(losses: dict[str, float], rows: int) -> list[str]:
    """Names the quasi-identifiers that cost most, where there are too many for any class to tell much."""
    if len(losses) <= MANY_QUASI_IDENTIFIERS:
        return []
    worst = sorted(losses, key=lambda name: -losses[name])[:5]
    shown = ", ".join(f"{name} ({losses[name] / rows:.2f} per row)" for name in worst)
    return [f"{len(losses)} quasi-identifiers leave little to tell; those that cost most: {shown}"]

"""Runs the clustering that the settings of a masked view declare, then repair and suppression."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from kanon_duck.catalog.settings import Settings
from kanon_duck.clustering import METHODS
from kanon_duck.clustering.class_rows import without_gaps
from kanon_duck.clustering.repair import repair
from kanon_duck.clustering.result import Clustering
from kanon_duck.clustering.suppress import suppress
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.privacy.requirement import demand
from kanon_duck.runtime.call import Call


def most_left_out(settings: Settings, rows: int) -> int:
    """How many of some rows may be left out for quality: 29 where the share is 0.29 of 100."""
    return math.floor(Decimal(repr(settings.max_suppression)) * rows)


def cluster(call: Call, settings: Settings, microdata: Microdata, room: int | None = None) -> Clustering:
    """Classes of the rows by the declared method.

    At most ``room`` rows are left out for quality, by default and at most those that `most_left_out` allows.

    Guarantee: every class satisfies the declared models, whatever the method has left undone; where not even all rows
    together do, no row is in a class.
    """
    model, encoding = settings.model, microdata.encoding
    options = dict(settings.method_options)
    if settings.method == "auto":
        options["effort"] = settings.effort
    generator = np.random.default_rng(settings.seed)
    made = METHODS[settings.method](microdata, model, generator, call.checkpoint, **options)
    labels, levels, warnings = made if isinstance(made, Clustering) else Clustering(made)
    demanded = demand(model, microdata.sensitive)
    repaired = repair(encoding, labels, demanded, call.checkpoint)
    if repaired is not labels:
        labels = without_gaps(repaired)
    limit = most_left_out(settings, encoding.rows)
    if room is not None:
        limit = min(limit, room)
    if limit and np.any(labels != NO_CLASS):
        labels = suppress(encoding, labels, demanded, limit, call.checkpoint)
        # the values of the rows that are left are those that t-closeness compares with
        demanded = demand(model, microdata.sensitive, labels != NO_CLASS)
        labels = without_gaps(repair(encoding, labels, demanded, call.checkpoint))
    return Clustering(labels, levels, warnings)

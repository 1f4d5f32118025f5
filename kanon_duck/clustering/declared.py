"""Clustering as the settings of a masked view declare it."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from kanon_duck.call import Call
from kanon_duck.clustering import METHODS
from kanon_duck.clustering.suppress import suppress
from kanon_duck.encoding import Encoding
from kanon_duck.settings import Settings


def cluster(call: Call, settings: Settings, encoding: Encoding) -> NDArray[np.int64]:
    """The class of each row by the declared method, -1 for the rows left out."""
    options = dict(settings.method_options)
    if settings.method == "auto":
        options["effort"] = settings.effort
    generator = np.random.default_rng(settings.seed)
    labels = METHODS[settings.method](encoding, settings.model, generator, call.checkpoint, **options)
    limit = math.floor(Decimal(repr(settings.max_suppression)) * encoding.rows)  # 0.29 of 100 rows are 29
    return suppress(encoding, labels, settings.model.k, limit, call.checkpoint) if limit else labels

"""The static methods: each makes classes of the rows from scratch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.auto import auto
from kanon_duck.clustering.incognito import incognito
from kanon_duck.clustering.k_member import k_member
from kanon_duck.clustering.oka import oka
from kanon_duck.clustering.result import Clustering

METHODS: dict[str, Callable[..., NDArray[np.int64] | Clustering]] = {
    "auto": auto,
    "incognito": incognito,
    "k_member": k_member,
    "oka": oka,
}
"""By name: (microdata, model, generator, checkpoint, **options) -> class of each row, or a `Clustering`. A class of
those may fall short of what the model demands beyond k rows; `repair` comes after them."""

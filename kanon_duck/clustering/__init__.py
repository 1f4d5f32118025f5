"""The clustering methods by name; each makes classes of the rows from scratch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.auto import auto
from kanon_duck.clustering.enhanced_pk import enhanced_pk
from kanon_duck.clustering.greedy_pk import greedy_pk
from kanon_duck.clustering.incognito import incognito
from kanon_duck.clustering.k_member import k_member
from kanon_duck.clustering.mondrian import mondrian
from kanon_duck.clustering.oka import oka
from kanon_duck.clustering.result import Clustering
from kanon_duck.clustering.threshold import threshold
from kanon_duck.clustering.top_down import top_down
from kanon_duck.clustering.weighted_c_means import weighted_c_means

METHODS: dict[str, Callable[..., NDArray[np.int64] | Clustering]] = {
    "auto": auto,
    "k_member": k_member,
    "oka": oka,
    "mondrian": mondrian,
    "enhanced_pk": enhanced_pk,
    "greedy_pk": greedy_pk,
    "incognito": incognito,
    "top_down": top_down,
    "threshold": threshold,
    "weighted_c_means": weighted_c_means,
}
"""By name: (microdata, model, generator, checkpoint, **options) -> class of each row, or a `Clustering`. A class of
those may fall short of what the model demands beyond k rows; `repair` comes after them."""

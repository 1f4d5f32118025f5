"""Shared by the p-sensitive methods: strong values of rows, growing clusters, and rows that are left over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.class_rows import without_gaps
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.errors import KanonError
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.p_sensitive import Clusters, Rows, disperse
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.parallel import Checkpoint

SLICE = 2**20
"""Rows compared with a cluster between two checkpoints: some hundredths of a second."""


def rows_of(microdata: Microdata, model: PrivacyModel, sensitive_weights: Mapping[str, Any]) -> Rows:
    """The rows as the kernels take them.

    Where only ``l`` is set it stands for p: both count different values.

    Parameters
    ----------
    microdata : Microdata
    model : PrivacyModel
    sensitive_weights : mapping
        Weight of sensitive attributes in Div and Hom (Definitions 11 and 12), by name; 1 for those not named. Their
        sum need not be 1.

    Raises
    ------
    KanonError
        Where neither p nor l is set, or for a weight that is none, or is of no sensitive attribute.
    """
    p = model.p or model.l
    if p is None or microdata.sensitive is None:
        raise KanonError("p is missing: this method makes classes of p different sensitive values, so set p (or l)")
    known = [attribute.name for attribute in model.attributes]
    for name, weight in sensitive_weights.items():
        if name not in known:
            raise KanonError(
                f"method_options.sensitive_weights names {shown(name)}, which is no sensitive column: "
                f"there are {', '.join(known)}"
            )
        if isinstance(weight, bool) or not 1e-6 <= weight <= 1e6:  # 0 would hide what a cluster lacks
            raise KanonError(
                f"method_options.sensitive_weights.{name} is {shown(weight)}: it must be a number from 0.000001 "
                "to 1000000"
            )
    strong = [np.unique(values, return_inverse=True)[1] for values in microdata.sensitive.strong]
    encoding = microdata.encoding
    return Rows(
        codes=np.ascontiguousarray(encoding.codes[:, : encoding.columns]),
        caps=encoding.caps[: encoding.columns],
        weights=encoding.weights[: encoding.columns],
        strong=np.array(strong, np.int64).reshape(len(strong), encoding.rows),
        attribute_weights=np.array([float(sensitive_weights.get(name, 1)) for name in known] or [1.0] * len(strong)),
        p=p,
    )


def can_be_sensitive(rows: Rows) -> bool:
    """Condition 1: whether every attribute has p different values in the table; if not, no partition has."""
    return all(values.max(initial=-1) + 1 >= rows.p for values in rows.strong)


def new_clusters(rows: Rows, number: int) -> Clusters:
    """A number of empty clusters."""
    attributes, n = rows.strong.shape
    columns = rows.codes.shape[1]
    return Clusters(
        labels=np.full(n, NO_CLASS, np.int64),
        low=np.zeros((number, columns), rows.codes.dtype),
        high=np.zeros((number, columns), rows.codes.dtype),
        sizes=np.zeros(number, np.int64),
        distinct=np.zeros((number, attributes), np.int64),
        found=np.zeros((number, attributes, rows.p), np.int64),
        known=np.zeros((attributes, int(rows.strong.max(initial=0)) + 1), np.bool_),
    )


def without_cluster(clusters: Clusters, pool: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those rows of a pool that are in no cluster, in its order."""
    return pool[clusters.labels[pool] == NO_CLASS]


def dissolve(clusters: Clusters, number: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Empty a cluster; returns the rows that are in none now, in the order of ``order``."""
    clusters.labels[clusters.labels == number] = NO_CLASS
    clusters.sizes[number] = 0
    return without_cluster(clusters, order)


def disperse_left_over(
    rows: Rows, clusters: Clusters, order: NDArray[np.int64], checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Give each row that is left over to the cluster whose loss it raises least; returns the class of each row.

    Joining takes no value away: a p-sensitive cluster stays so.
    """
    left_over = without_cluster(clusters, order)
    stretch = max(1, SLICE // max(1, clusters.sizes.size))
    for begin in range(0, left_over.size, stretch):
        checkpoint(None)
        disperse(rows, clusters, left_over, begin, min(left_over.size, begin + stretch))
    return without_gaps(clusters.labels)

"""GreedyPKClustering, reconstructed: classes grow by new values until p, then by loss until k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.p_sensitive import (
    can_be_sensitive,
    disperse_left_over,
    dissolve,
    new_clusters,
    rows_of,
    without_cluster,
)
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.p_sensitive import begin_far, grow
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.parallel import Checkpoint


def greedy_pk(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Checkpoint,
    *,
    sensitive_weights: Mapping[str, Any] | None = None,
) -> NDArray[np.int64]:
    """Build one cluster after the other: by diversity until it is p-sensitive, then by information loss until k.

    A reconstruction: the paper that introduced the method was not to be had, and the later one only tells its idea.
    As in greedy k-member clustering, a cluster begins with the row furthest from where the last one began
    (at first: from a random row). When a cluster cannot be completed, its rows and all that are left go each to the
    cluster whose information loss it raises least. The time is quadratic in the number of rows.

    Guarantee: every class has k rows and p different strong values of every sensitive attribute, where the table has.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Its ``k`` and its ``p``, or its ``l`` where p is not set.
    generator : numpy.random.Generator
        Source of the first row, and of the order in which the first of equal rows is taken.
    checkpoint : callable
        Called after each cluster with the share done.
    sensitive_weights : mapping, optional
        See `kanon_duck.clustering.p_sensitive.rows_of`.

    Returns
    -------
    int64, shape (n,)
        Class of each row, from 0, in the order of building.

    Raises
    ------
    KanonError
        On fewer than k rows, where neither p nor l is set, or on weights of no sense.

    References
    ----------
    Campan, Truta, Miller and Sinca, "A clustering approach for achieving data privacy", DMIN 2007, as described in
    Truta, Campan and Meyer, "Generating microdata with p-sensitive k-anonymity property", SDM 2007, section 3.
    """
    n = microdata.encoding.rows
    model.refuse_too_few(n)
    rows = rows_of(microdata, model, sensitive_weights or {})
    if not can_be_sensitive(rows):
        return np.zeros(n, np.int64)
    order = pool = generator.permutation(n)
    least_size = max(model.k, rows.p)
    clusters = new_clusters(rows, n // least_size)
    row = pool[0]
    for number in range(clusters.sizes.size):
        if pool.size == 0:  # some clusters took more rows to be p-sensitive
            break
        row = begin_far(rows, clusters, number, row, pool)
        if not grow(rows, clusters, number, pool, least_size):
            dissolve(clusters, number, order)
            break
        pool = without_cluster(clusters, pool)
        checkpoint(1 - (pool.size / n) ** 2)
    return disperse_left_over(rows, clusters, order, checkpoint)

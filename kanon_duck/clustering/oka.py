"""One-pass k-means (OKA): classes around k-means seeds, evened out afterwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.oka import (
    BLOCK,
    Centroids,
    Columns,
    distances_from_centroid,
    join_closest,
    join_members,
)
from kanon_duck.privacy.models import PrivacyModel

SLICE = 2**25
"""Codes looked at between two checkpoints: some hundredths of a second."""


def oka(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Callable[[float | None], None],
) -> NDArray[np.int64]:
    """Build all classes at once around random seeds, then move rows until each has at least k.

    Clustering stage (figure 1 of Lin & Wei 2008): n // k rows drawn at random are the first clusters; the
    others, sorted by their quasi-identifiers, join one after the other the cluster with the least
    |P| * distance(row, centroid of P), whose centroid moves at once. Adjustment stage (figure 2): clusters of
    more than k rows give up those furthest from the centroid; these join, in random order, the closest
    cluster that has fewer than k rows, and once there is none, the closest of all. Exact: every choice looks
    at every cluster.

    What the paper leaves open is settled so:

    - The distance of a row from a centroid whose value is an inner node of a hierarchy is what the row adds:
      the height of their lowest common ancestor less that of the node, over that of the hierarchy. (Without
      the subtraction a centroid at the root would be at distance 1 from all rows, its own among them.)
    - A centroid of NULLs is at distance 0 from NULL and 1 from values; one of NULLs and values counts like
      one at the root.
    - Rows are sorted by the first quasi-identifier, then the second, and so on, values of a hierarchy in
      depth-first order and NULL last.
    - Of equally close clusters the one whose seed was drawn first is taken; of equally far rows the one with
      the lowest number is given up.
    - The centroid stays where it is while a cluster is trimmed (the paper sorts once), is that of the rows
      kept afterwards, and moves with each row that joins.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Its ``k``.
    generator : numpy.random.Generator
        Source of the seeds and of the order in which rows join in the adjustment stage.
    checkpoint : callable
        Called between slices of the work with the share done.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to n // k - 1, in the order in which the seeds were drawn.

    Raises
    ------
    KanonError
        On fewer than k rows.

    References
    ----------
    Lin and Wei, "An efficient clustering method for k-anonymization", PAIS 2008, section 3.
    """
    encoding = microdata.encoding
    n, k = encoding.rows, model.k
    model.refuse_too_few(n)

    clusters = n // k
    seeds = generator.permutation(n)[:clusters]
    refill_order = generator.permutation(n)
    columns = Columns(
        encoding.numeric[encoding.attributes],
        encoding.caps[: encoding.columns],
        encoding.weights[: encoding.columns],
        np.iinfo(encoding.codes.dtype).max,
    )
    distances = np.empty(BLOCK, np.float32)
    rows_per_slice = max(1, SLICE // (clusters * max(1, encoding.columns)))

    def join_in_slices(order: NDArray[np.int64], closed: NDArray[np.float32], missing: int) -> None:
        for begin in range(0, order.size, rows_per_slice):
            part = order[begin : begin + rows_per_slice]
            missing = join_closest(
                encoding.codes, part, labels, closed, missing, k, centroids, columns, distances,
                distances.view(np.int32),
            )  # fmt: skip
            checkpoint(None)

    labels = np.full(n, NO_CLASS, np.int64)
    labels[seeds] = np.arange(clusters)
    centroids = _centroids(encoding, labels, clusters, columns)
    order = _sorted_rows(encoding)
    join_in_slices(order[labels[order] == NO_CLASS], np.zeros(clusters, np.float32), 0)

    labels[_surplus(encoding, labels, k, centroids, columns)] = NO_CLASS
    centroids = _centroids(encoding, labels, clusters, columns)
    # Every cluster gets k rows: there are at least k * clusters rows and none keeps more than k, so at least
    # as many rows are given up as are missing, and while one is missing only small clusters are open.
    missing = int(np.maximum(k - centroids.sizes, 0).sum())
    closed = np.where((centroids.sizes >= k) & (missing > 0), np.float32(np.inf), np.float32(0))
    join_in_slices(refill_order[labels[refill_order] == NO_CLASS], closed, missing)
    return labels


def _sorted_rows(encoding: Encoding) -> NDArray[np.int64]:
    """Row numbers in lexicographic order of the quasi-identifiers; level 0 decides the levels above it."""
    first_columns = np.unique(encoding.attributes, return_index=True)[1]
    if first_columns.size == 0:
        return np.arange(encoding.rows)
    return np.lexsort(encoding.codes.T[first_columns[::-1]])


def _centroids(encoding: Encoding, labels: NDArray[np.int64], clusters: int, columns: Columns) -> Centroids:
    """Centroids of the clusters of the labelled rows."""
    shape = (encoding.columns, clusters)
    centroids = Centroids(
        np.zeros(clusters, np.int32),
        np.zeros(shape),
        np.zeros(shape, np.float32),
        np.full(shape, columns.null, encoding.codes.dtype),
        np.zeros(shape, encoding.codes.dtype),
    )
    join_members(encoding.codes, labels, centroids, columns)
    return centroids


def _surplus(
    encoding: Encoding, labels: NDArray[np.int64], k: int, centroids: Centroids, columns: Columns
) -> NDArray[np.int64]:
    """Rows that clusters of more than k rows give up: those furthest from the centroid."""
    distances = np.zeros(encoding.rows, np.float32)
    distances_from_centroid(encoding.codes, labels, centroids, columns, distances)
    order = np.lexsort((-distances, labels))
    cluster = labels[order]
    rank = np.arange(encoding.rows) - np.searchsorted(cluster, cluster)
    return order[rank < centroids.sizes[cluster] - k]

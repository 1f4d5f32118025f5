"""EnhancedPKClustering: classes become p-sensitive first, then k-anonymous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.p_sensitive import (
    SLICE,
    can_be_sensitive,
    disperse_left_over,
    dissolve,
    new_clusters,
    rows_of,
    without_cluster,
)
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.p_sensitive import NOT_LOOKED_AT, Clusters, Rows, deal, grow, match_all
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.parallel import Checkpoint


def enhanced_pk(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Checkpoint,
    *,
    sensitive_weights: Mapping[str, Any] | None = None,
) -> NDArray[np.int64]:
    """Begin as many clusters as the frequencies of sensitive values allow, and make all p-sensitive before k-anonymous.

    The hardest sensitive attribute decides how many clusters there can be. Its rare values are dealt out to them in
    turn (*Split*), each of its frequent ones gives a row to every cluster (*fill*); then each has p values of it. Rows
    that are left over complete the other attributes (*repair*) and then the size (*k step*); where they do not
    suffice, the least diverse or the smallest cluster is dissolved. Every choice is that of *BestMatch*: the
    greatest Div, then the least rise of information loss, then the first in a random order.

    Corrected where the printed algorithm runs past its ends or runs dry: there are at most n // k clusters; Split
    deals those values that not every cluster can have, so that the fill always finds a row; the repair adds no row
    that brings no new value; the last cluster that has k rows is the one before the first that has not.
    BestMatch over all clusters keeps each one's best row, and looks again only where that row is gone. The time is
    quadratic in the number of rows, the memory that of p values of each attribute for each cluster.

    Guarantee: every class has k rows and p different strong values of every sensitive attribute, where the table has.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Its ``k`` and its ``p``, or its ``l`` where p is not set.
    generator : numpy.random.Generator
        Source of the order in which the first of equal rows is taken.
    checkpoint : callable
        Called between slices of the work.
    sensitive_weights : mapping, optional
        See `kanon_duck.clustering.p_sensitive.rows_of`.

    Returns
    -------
    int64, shape (n,)
        Class of each row, from 0.

    Raises
    ------
    KanonError
        On fewer than k rows, where neither p nor l is set, or on weights of no sense.

    References
    ----------
    Truta, Campan and Meyer, "Generating microdata with p-sensitive k-anonymity property", SDM 2007, section 3.2.
    """
    n = microdata.encoding.rows
    model.refuse_too_few(n)
    rows = rows_of(microdata, model, sensitive_weights or {})
    if not can_be_sensitive(rows):
        return np.zeros(n, np.int64)
    order = generator.permutation(n)
    number, hardest = most_clusters(rows.strong, rows.p)
    clusters = new_clusters(rows, min(number, n // model.k))
    _split_and_fill(rows, clusters, order, hardest, checkpoint)
    _repair(rows, clusters, order, checkpoint)
    _complete(rows, clusters, order, model.k, checkpoint)
    return disperse_left_over(rows, clusters, order, checkpoint)


def most_clusters(strong: NDArray[np.int64], p: int) -> tuple[int, int]:
    """The bound on the number of p-sensitive clusters of Condition 2, and the attribute that is hardest to spread.

    Only a bound: several attributes together may allow fewer.

    Parameters
    ----------
    strong : int64, shape (attributes, n)
        Values numbered from 0, at least p of each attribute.
    p : int

    Returns
    -------
    tuple of int
        ``maxClusters``; and the first attribute for which it is least on its own (Definition 13).
    """
    n = strong.shape[1]
    # cumulative[j, i]: rows with one of the i commonest values of attribute j, for i = 0 to p - 1
    frequent = [np.sort(np.bincount(values))[::-1][: p - 1] for values in strong]
    cumulative = np.array([np.concatenate([[0], np.cumsum(each)]) for each in frequent])
    others = np.arange(p, 0, -1)
    bounds = (n - cumulative) // others
    return int(bounds.min()), int(bounds.min(axis=1).argmin())


def _split_and_fill(
    rows: Rows, clusters: Clusters, order: NDArray[np.int64], hardest: int, checkpoint: Checkpoint
) -> None:
    """Give every cluster p rows with p different values of the hardest attribute.

    Guarantee: no pool runs dry. A value that the fill gives to every cluster has as many rows as there are clusters;
    of the others, unless they are one row for each, none has more rows than there are clusters, so that dealing them
    out in turn gives no cluster the same value twice, and by Condition 2 they are enough.
    """
    values = rows.strong[hardest]
    frequencies = np.bincount(values)
    by_frequency = np.argsort(-frequencies, kind="stable")
    number = clusters.sizes.size
    filled = int(np.count_nonzero(frequencies[by_frequency[: rows.p - 1]] >= number))
    rank = np.empty_like(by_frequency)
    rank[by_frequency] = np.arange(by_frequency.size)
    ranked = order[np.argsort(-rank[values[order]], kind="stable")]  # the rarest value first
    starts = np.concatenate([[0], np.cumsum(frequencies[by_frequency[::-1]])])

    turns = np.arange((rows.p - filled) * number)
    value_of_turn = np.searchsorted(starts, turns, side="right")
    first, stop = starts[value_of_turn - 1], starts[value_of_turn]
    stretch = max(1, SLICE // max(1, int(frequencies[by_frequency[filled:]].max(initial=1))))
    for begin in range(0, turns.size, stretch):
        checkpoint(None)
        deal(rows, clusters, ranked, first, stop, begin, min(turns.size, begin + stretch))

    for place in range(filled - 1, -1, -1):
        value = starts.size - 2 - place
        pool = ranked[starts[value] : starts[value + 1]]
        best = np.full(number, NOT_LOOKED_AT, np.int64)
        diversities, rises = np.full(number, np.inf), np.full(number, -np.inf)
        while not match_all(rows, clusters, pool, best, diversities, rises, max(1, SLICE // pool.size)):
            checkpoint(None)


def _repair(rows: Rows, clusters: Clusters, order: NDArray[np.int64], checkpoint: Checkpoint) -> None:
    """Make every cluster p-sensitive with the rows left over, the most diverse first; the least diverse are dissolved.

    The last one is never dissolved: all other rows are left over then, and by Condition 1 they complete it.
    """
    homogeneity = (rows.p - clusters.distinct) @ rows.attribute_weights
    by_diversity = np.argsort(homogeneity, kind="stable")
    pool = without_cluster(clusters, order)
    at, last = 0, by_diversity.size - 1
    while at <= last:
        checkpoint(None)
        if grow(rows, clusters, by_diversity[at], pool, 0):
            pool = without_cluster(clusters, pool)
            at += 1
        else:
            pool = dissolve(clusters, by_diversity[last], order)
            last -= 1


def _complete(rows: Rows, clusters: Clusters, order: NDArray[np.int64], k: int, checkpoint: Checkpoint) -> None:
    """Fill the clusters up to k rows, the largest first; as many of the smallest are dissolved as have to be."""
    by_size = np.argsort(-clusters.sizes, kind="stable")
    by_size = by_size[: np.count_nonzero(clusters.sizes)]
    sizes = clusters.sizes[by_size]
    large = int(np.count_nonzero(sizes >= k))
    in_large = int(sizes[:large].sum())
    kept = min(by_size.size, large + (order.size - in_large) // k)
    for number in by_size[kept:]:
        dissolve(clusters, number, order)
    pool = without_cluster(clusters, order)
    for place, number in enumerate(by_size[large:kept]):
        grow(rows, clusters, number, pool, k)
        pool = without_cluster(clusters, pool)
        checkpoint((place + 1) / (kept - large))

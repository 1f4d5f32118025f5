"""Finds the row without a cluster that suits a p-sensitive cluster best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_duck.kernels import INNER
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.row_lists import NO_ROW

NOT_LOOKED_AT = -2
"""In the place of a cluster's best row: it has not been looked for."""


class Rows(NamedTuple):
    """What is known of the rows.

    Attributes
    ----------
    codes, caps, weights
        As in ``Encoding``, without its padding.
    strong : int64, shape (attributes, n)
        Strong sensitive values, numbered from 0 for each attribute.
    attribute_weights : float64, shape (attributes,)
        The weights of Div and Hom, all above 0.
    p : int
        Different strong values that a cluster needs of each attribute.
    """

    codes: NDArray[np.unsignedinteger]
    caps: NDArray[np.unsignedinteger]
    weights: NDArray[np.float32]
    strong: NDArray[np.int64]
    attribute_weights: NDArray[np.float64]
    p: int


class Clusters(NamedTuple):
    """Clusters that grow.

    Attributes
    ----------
    labels : int64, shape (n,)
        Cluster of each row, NO_CLASS for one in none.
    low, high : dtype of the codes, shape (clusters, columns)
        Box of each cluster; of no meaning where it is empty.
    sizes : int64, shape (clusters,)
    distinct : int64, shape (clusters, attributes)
        Different strong values, up to p: y of Definition 11.
    found : int64, shape (clusters, attributes, p)
        These values.
    known : bool, shape (attributes, values)
        Scratch, all false.
    """

    labels: NDArray[np.int64]
    low: NDArray[np.unsignedinteger]
    high: NDArray[np.unsignedinteger]
    sizes: NDArray[np.int64]
    distinct: NDArray[np.int64]
    found: NDArray[np.int64]
    known: NDArray[np.bool_]


@njit(**INNER)
def _mark(clusters, number, known):
    """Mark the values that a cluster has, or take the marks away."""
    for attribute in range(clusters.distinct.shape[1]):
        for place in range(clusters.distinct[number, attribute]):
            clusters.known[attribute, clusters.found[number, attribute, place]] = known


@njit(**INNER)
def _diversity(rows, clusters, number, row):
    """Div of Definition 11 between a row and the cluster whose values are marked."""
    diversity = 0.0
    for attribute in range(rows.strong.shape[0]):
        lacking = rows.p - clusters.distinct[number, attribute]
        if lacking > 0 and not clusters.known[attribute, rows.strong[attribute, row]]:
            diversity += lacking * rows.attribute_weights[attribute]
    return diversity


@njit(**INNER)
def _rise(rows, clusters, number, row):
    """How much the information loss of a cluster rises if it takes in a row."""
    size = clusters.sizes[number]
    if size == 0:
        return 0.0
    before, after = 0.0, 0.0
    for j in range(rows.caps.size):
        weight = np.float64(rows.weights[j])
        code, low, high = rows.codes[row, j], clusters.low[number, j], clusters.high[number, j]
        before += weight * min(high - low, rows.caps[j])
        after += weight * min(max(high, code) - min(low, code), rows.caps[j])
    return (size + 1) * after - size * before


@njit(**INNER)
def _best_match(rows, clusters, number, pool, first, stop):
    """BestMatch for one cluster: of the rows of greatest Div that which raises its loss least, the first of equals.

    Returns the row among ``pool[first:stop]``, NO_ROW if none of them is without a cluster, its Div and the rise.
    """
    best, best_diversity, best_rise = NO_ROW, -1.0, np.inf
    _mark(clusters, number, True)
    for place in range(first, stop):
        row = pool[place]
        if clusters.labels[row] != NO_CLASS:
            continue
        diversity = _diversity(rows, clusters, number, row)
        if diversity < best_diversity:
            continue
        rise = _rise(rows, clusters, number, row)
        if diversity > best_diversity or rise < best_rise:
            best, best_diversity, best_rise = row, diversity, rise
    _mark(clusters, number, False)
    return best, best_diversity, best_rise


@njit(**INNER)
def _join(rows, clusters, number, row):
    """Take a row into a cluster."""
    empty = clusters.sizes[number] == 0
    for j in range(rows.caps.size):
        code = rows.codes[row, j]
        clusters.low[number, j] = code if empty else min(clusters.low[number, j], code)
        clusters.high[number, j] = code if empty else max(clusters.high[number, j], code)
    for attribute in range(rows.strong.shape[0]):
        value, count = rows.strong[attribute, row], clusters.distinct[number, attribute]
        is_new = count < rows.p
        for place in range(count):
            is_new &= clusters.found[number, attribute, place] != value
        if is_new:
            clusters.found[number, attribute, count] = value
            clusters.distinct[number, attribute] += 1
    clusters.sizes[number] += 1
    clusters.labels[row] = number


@njit(**INNER)
def _is_sensitive(rows, clusters, number):
    """Whether a cluster has p different values of each attribute: Hom = 0 (Property 1), without rounding."""
    return clusters.distinct[number].min() >= rows.p


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def deal(rows, clusters, pool, first, stop, begin, end):
    """Give the clusters a row each in turn: in turn t the best of ``pool[first[t]:stop[t]]``."""
    for turn in range(begin, end):
        number = turn % clusters.sizes.size
        row, _, _ = _best_match(rows, clusters, number, pool, first[turn], stop[turn])
        _join(rows, clusters, number, row)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def match_all(rows, clusters, pool, best, diversities, rises, looks):
    """Give a row of the pool to each cluster that has none yet, always to the pair that BestMatch chooses of all.

    The pool only shrinks, and a cluster does not change while it waits: its best match found earlier is no worse than
    what it could get now. So only where the row of the best pair is gone is there something to look for again.

    Parameters
    ----------
    rows, clusters
    pool : int64, shape (m,)
        At least as many rows without a cluster as there are clusters that wait.
    best : int64, shape (clusters,)
        The row found for each cluster; at first NOT_LOOKED_AT, and NO_ROW once it has got one.
    diversities, rises : float64, shape (clusters,)
        Of that pair; at first infinite and minus infinite.
    looks : int
        Searches of the pool before it returns.

    Returns
    -------
    bool
        Whether every cluster has got its row.
    """
    while True:
        chosen = NO_CLASS
        for number in range(best.size):
            if best[number] == NO_ROW:
                continue
            if (
                chosen == NO_CLASS
                or diversities[number] > diversities[chosen]
                or (diversities[number] == diversities[chosen] and rises[number] < rises[chosen])
            ):
                chosen = number
        if chosen == NO_CLASS:
            return True
        if best[chosen] != NOT_LOOKED_AT and clusters.labels[best[chosen]] == NO_CLASS:
            _join(rows, clusters, chosen, best[chosen])
            best[chosen] = NO_ROW
            continue
        if looks == 0:
            return False
        looks -= 1
        best[chosen], diversities[chosen], rises[chosen] = _best_match(rows, clusters, chosen, pool, 0, pool.size)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def grow(rows, clusters, number, pool, least_size):
    """Add the best match again and again, until a cluster is p-sensitive and has ``least_size`` rows.

    While it is not p-sensitive only rows with a value that it lacks are added (Div > 0); after that Div is 0
    for all rows, and the least information loss decides.

    Returns
    -------
    bool
        Whether it got there; if not, no row of the pool helps.
    """
    while True:
        is_sensitive = _is_sensitive(rows, clusters, number)
        if is_sensitive and clusters.sizes[number] >= least_size:
            return True
        row, diversity, _ = _best_match(rows, clusters, number, pool, 0, pool.size)
        if row == NO_ROW or (diversity == 0 and not is_sensitive):
            return False
        _join(rows, clusters, number, row)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def disperse(rows, clusters, pool, begin, end):
    """Give each of the rows ``pool[begin:end]`` to the cluster whose loss it raises least, the first of equals."""
    for place in range(begin, end):
        best, best_rise = NO_CLASS, np.inf
        for number in range(clusters.sizes.size):
            rise = _rise(rows, clusters, number, pool[place]) if clusters.sizes[number] > 0 else np.inf
            if rise < best_rise:
                best, best_rise = number, rise
        _join(rows, clusters, best, pool[place])


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def begin_far(rows, clusters, number, reference, pool):
    """Begin a cluster with the row of the pool that is furthest from another row, the first of equals; returns it."""
    best, best_distance = NO_ROW, -1.0
    for row in pool:
        distance = 0.0
        for j in range(rows.caps.size):
            one, two = rows.codes[row, j], rows.codes[reference, j]
            distance += np.float64(rows.weights[j]) * min(max(one, two) - min(one, two), rows.caps[j])
        if distance > best_distance:
            best, best_distance = row, distance
    _join(rows, clusters, number, best)
    return best

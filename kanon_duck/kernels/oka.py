"""Keeps the centroids of one-pass k-means, and finds the closest one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_duck.kernels.box import NO_CLASS

BLOCK = 512
"""Clusters whose distances are summed column by column at a time: the sums stay in the first-level cache."""


class Centroids(NamedTuple):
    """Centroids of the clusters, one row of each array per column of the encoding.

    Attributes
    ----------
    sizes : int32, shape (clusters,)
        Rows of each cluster.
    sums, means : float64 and float32, shape (columns, clusters)
        Sum and mean of the codes of numeric columns. The mean of a cluster that mixes NULL and values is
        infinite: it has lost the attribute, no row can add to that.
    low, high : uint16 or uint32, shape (columns, clusters)
        Smallest and largest code. They differ in the level columns below the height of the lowest common
        ancestor: what is lost there no row can add to.
    """

    sizes: NDArray[np.int32]
    sums: NDArray[np.float64]
    means: NDArray[np.float32]
    low: NDArray[Any]
    high: NDArray[Any]


class Columns(NamedTuple):
    """What the kernels need to know of the columns of the encoding, in use or not.

    Attributes
    ----------
    numeric : bool, shape (columns,)
        Which columns are numeric.
    caps, weights : shape (columns,)
        As in the encoding.
    null : int
        Code of NULL.
    """

    numeric: NDArray[np.bool_]
    caps: NDArray[Any]
    weights: NDArray[np.float32]
    null: int


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def _join(code: NDArray[Any], cluster: int, centroids: Centroids, columns: Columns) -> None:
    """Take a row into a cluster and move the centroid."""
    centroids.sizes[cluster] += 1
    for j in range(columns.numeric.size):
        low = min(centroids.low[j, cluster], code[j])
        high = max(centroids.high[j, cluster], code[j])
        centroids.low[j, cluster] = low
        centroids.high[j, cluster] = high
        if columns.numeric[j]:
            centroids.sums[j, cluster] += code[j]
            if high == columns.null and low != high:
                centroids.means[j, cluster] = np.inf
            else:
                centroids.means[j, cluster] = centroids.sums[j, cluster] / centroids.sizes[cluster]


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def _add_distances(
    code: NDArray[Any],
    begin: int,
    centroids: Centroids,
    columns: Columns,
    distances: NDArray[np.float32],
) -> None:
    """Add to ``distances`` those of a row from the centroids from ``begin`` on.

    The columns are added in their order, in float32: the sums are the same on every machine.
    """
    for j in range(columns.numeric.size):
        weight = columns.weights[j]
        if columns.numeric[j]:
            value, cap = np.float32(code[j]), np.float32(columns.caps[j])
            means = centroids.means[j][begin : begin + distances.size]
            for i in range(distances.size):
                difference = abs(value - means[i])
                difference = difference if difference < cap else cap
                distances[i] += weight * (difference if means[i] < np.inf else np.float32(0))
        else:
            value = code[j]
            low = centroids.low[j][begin : begin + distances.size]
            high = centroids.high[j][begin : begin + distances.size]
            for i in range(distances.size):
                differs = (low[i] == high[i]) & (low[i] != value)
                distances[i] += weight if differs else np.float32(0)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def _closest(
    code: NDArray[Any],
    closed: NDArray[np.float32],
    centroids: Centroids,
    columns: Columns,
    distances: NDArray[np.float32],
    keys: NDArray[np.int32],
) -> int:
    """The first cluster whose size times distance from the row is least.

    ``keys`` are the bit patterns of ``distances``: for numbers from 0 to infinity they are ordered alike, and
    the least of integers is found with vector instructions, that of floats is not.
    """
    closest, closest_key = 0, np.int32(np.iinfo(np.int32).max)
    for begin in range(0, closed.size, distances.size):
        size = min(distances.size, closed.size - begin)
        block = closed[begin : begin + size]
        sizes = centroids.sizes[begin : begin + size]
        for i in range(size):
            distances[i] = block[i]
        _add_distances(code, begin, centroids, columns, distances[:size])
        for i in range(size):
            distances[i] *= np.float32(sizes[i])
        least = keys[0]
        for i in range(size):
            least = keys[i] if keys[i] < least else least
        if least < closest_key:
            closest, closest_key = begin, least
            while keys[closest - begin] != least:
                closest += 1
    return closest


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def join_members(codes: NDArray[Any], labels: NDArray[np.int64], centroids: Centroids, columns: Columns) -> None:
    """Take every labelled row into its cluster."""
    for row in range(codes.shape[0]):
        if labels[row] != NO_CLASS:
            _join(codes[row], labels[row], centroids, columns)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def distances_from_centroid(
    codes: NDArray[Any],
    labels: NDArray[np.int64],
    centroids: Centroids,
    columns: Columns,
    distances: NDArray[np.float32],
) -> None:
    """Add to ``distances`` (n,) that of each row from the centroid of its own cluster."""
    for row in range(codes.shape[0]):
        _add_distances(codes[row], labels[row], centroids, columns, distances[row : row + 1])


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def join_closest(
    codes: NDArray[Any],
    order: NDArray[np.int64],
    labels: NDArray[np.int64],
    closed: NDArray[np.float32],
    missing: int,
    k: int,
    centroids: Centroids,
    columns: Columns,
    distances: NDArray[np.float32],
    keys: NDArray[np.int32],
) -> int:
    """Take rows, one after the other, into the closest cluster that is open.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
        Encoded rows.
    order : int64
        The rows to take, in order.
    labels : int64, shape (n,)
        Cluster of each row.
    closed : float32, shape (clusters,)
        0 for a cluster that is open, infinity for one that is not.
    missing : int
        Rows by which open clusters fall short of ``k``, when only such clusters are open; else 0. A
        cluster is closed when it reaches k, and all are opened when no row is missing any more.
    k : int
        Rows each cluster must have.
    centroids, columns
        The centroids, which move with every row.
    distances, keys : float32 and int32, shape (BLOCK,)
        Working space, the same memory for both.

    Returns
    -------
    int
        Rows that are still missing.
    """
    for row in order:
        cluster = _closest(codes[row], closed, centroids, columns, distances, keys)
        labels[row] = cluster
        _join(codes[row], cluster, centroids, columns)
        if missing > 0:
            missing -= 1
            if centroids.sizes[cluster] == k:
                closed[cluster] = np.inf
            if missing == 0:
                closed[:] = 0
    return missing

"""C-means that weighs the quasi-identifiers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.repair import repair
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.weighted_c_means import assign_closest
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import demand, least_size
from kanon_duck.runtime.parallel import Checkpoint

MOST_ROUNDS = 20
"""Rounds after which the search stops, converged or not."""

SLICE = 2**25
"""Codes looked at between two checkpoints: some hundredths of a second."""


def weighted_c_means(
    microdata: Microdata, model: PrivacyModel, generator: np.random.Generator, checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Build all classes at once around random seeds by C-means that also finds weights for the quasi-identifiers.

    n // k random rows are the first centres. In each round every row goes to the closest centre; the centres move to
    the middle of their rows; and quasi-identifiers in which rows lie close to their centres gain weight, until no row
    moves, or for ``MOST_ROUNDS`` rounds. Classes that do not satisfy the model are then united with others, each with
    the one near it for which that costs least (see `repair`).
    Guarantee: every class satisfies the model, if all rows together do.

    - The distance is the sum of weighted differences: for a number as a share of the domain, for a category the share
      of the levels of the hierarchy at which the row and the centre differ; 1 between NULL and a value.
    - A centre is the mean of a number, rounded, or NULL where most rows have NULL; and the commonest node of each
      level of a hierarchy (of equally common ones the first). A centre without rows stays where it is.
    - The weight of a quasi-identifier with total distance D is proportional to 1 / (D + mean of all D).

    Cost: O(c n**2 / k) for c rounds.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Any.
    generator : numpy.random.Generator
        Source of the seeds.
    checkpoint : function
        Called between slices of the work with the share done.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to m - 1.

    Raises
    ------
    KanonError
        On fewer than k rows.

    References
    ----------
    Chiu and Tsai, "A k-anonymity clustering method for effective data privacy preservation", ADMA 2007.
    Reconstructed from its description in Lin and Wei, "An efficient clustering method for k-anonymization",
    PAIS 2008, section 2.2. Distance and centres of categories are those of k-modes (Huang 1998) on levels, the
    weights those of Huang et al. 2005 ("Automated variable weighting in k-means type clustering") with exponent 2.
    """
    encoding, demanded = microdata.encoding, demand(model, microdata.sensitive)
    n = encoding.rows
    model.refuse_too_few(n)
    seeds = generator.permutation(n)[: max(1, n // least_size(demanded))]
    centres = encoding.codes[seeds, : encoding.columns].T.astype(np.int64)
    weights = encoding.weights[: encoding.columns]
    labels = np.full(n, NO_CLASS)
    for number in range(MOST_ROUNDS):
        before = labels.copy()
        _assign(encoding, centres, weights, labels, checkpoint)
        if np.array_equal(labels, before):
            break
        _move(encoding, labels, centres)
        weights = _weights(encoding, labels, centres)
        checkpoint((number + 1) / MOST_ROUNDS)
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    labels = repair(encoding, labels, demanded, checkpoint)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _assign(
    encoding: Encoding,
    centres: NDArray[np.int64],
    weights: NDArray[np.float32],
    labels: NDArray[np.int64],
    checkpoint: Checkpoint,
) -> None:
    """Let every row go to the closest centre."""
    caps = encoding.caps[: encoding.columns].astype(np.int64)
    distances = np.empty(centres.shape[1], np.float32)
    stretch = max(1, SLICE // max(1, centres.size))
    for begin in range(0, encoding.rows, stretch):
        end = min(begin + stretch, encoding.rows)
        assign_closest(encoding.codes, begin, end, centres, caps, weights, distances, labels)
        checkpoint(None)


def _move(encoding: Encoding, labels: NDArray[np.int64], centres: NDArray[np.int64]) -> None:
    """Move the centres to the middle of their rows."""
    null = np.iinfo(encoding.codes.dtype).max
    sizes = np.bincount(labels, minlength=centres.shape[1])
    for j in range(encoding.columns):
        codes = encoding.codes[:, j].astype(np.int64)
        if encoding.numeric[encoding.attributes[j]]:
            known = codes != null
            count = np.bincount(labels[known], minlength=len(sizes))
            sums = np.bincount(labels[known], weights=codes[known], minlength=len(sizes))
            means = np.rint(sums / np.maximum(count, 1)).astype(np.int64)
            centres[j] = np.where(sizes > 0, np.where(2 * count >= sizes, means, null), centres[j])
        else:
            pairs, frequencies = np.unique(labels * (null + 1) + codes, return_counts=True)
            commonest = np.lexsort((-frequencies, pairs // (null + 1)))
            clusters, first = np.unique(pairs[commonest] // (null + 1), return_index=True)
            centres[j, clusters] = pairs[commonest][first] % (null + 1)


def _weights(encoding: Encoding, labels: NDArray[np.int64], centres: NDArray[np.int64]) -> NDArray[np.float32]:
    """The weight of each column, larger for quasi-identifiers in which rows are close to their centres."""
    weights, totals = encoding.weights[: encoding.columns], np.zeros(len(encoding.numeric))
    for j in range(encoding.columns):
        differences = np.abs(encoding.codes[:, j] - centres[j, labels])
        totals[encoding.attributes[j]] += weights[j] * np.minimum(differences, encoding.caps[j]).sum()
    if not totals.any():
        return weights
    factors = 1 / (totals + totals.mean())
    factors *= len(factors) / factors.sum()
    return (weights * factors[encoding.attributes]).astype(np.float32)

"""Greedy k-member clustering: builds one class after the other from the rows that cost it least."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.loss import class_boxes
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.errors import KanonError
from kanon_duck.kernels.box import NO_CLASS, least_increase
from kanon_duck.kernels.k_member import BLOCK, place_rows
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.arguments import shown

NEXT_SEEDS = ("last_added", "lin_wei")
SLICE = 2**25
"""Codes looked at between two checkpoints: some hundredths of a second."""


def k_member(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Callable[[float | None], None],
    *,
    next_seed: str = "last_added",
) -> NDArray[np.int64]:
    """Build one class after the other from a far seed and the k - 1 rows that cost it least.

    Every class is closed with exactly k rows; the fewer than k rows left over then go, in
    random order, each to the class whose total loss rises least. Exact: every choice looks at every row
    without a class. Of equal rows the one with the lowest number is chosen. The time is quadratic in the
    number of rows.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Its ``k``.
    generator : numpy.random.Generator
        Source of the first row and of the order of the rows left over.
    checkpoint : callable
        Called between slices of the work with the share done.
    next_seed : {"last_added", "lin_wei"}
        ``last_added``: a class's seed is the row furthest from the row added last (at first: from a random
        row), as in the pseudo-code of Byun et al. ``lin_wei``: furthest from the seed before (at first: a
        random row), as Lin & Wei 2008 describe the method in section 2.2.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to n // k - 1, in the order of building.

    Raises
    ------
    KanonError
        On an unknown ``next_seed``, or fewer than k rows.

    References
    ----------
    Byun, Kamra, Bertino and Li, "Efficient k-anonymization using clustering techniques", DASFAA 2007.
    Lin and Wei, "An efficient clustering method for k-anonymization", PAIS 2008.
    """
    if next_seed not in NEXT_SEEDS:
        raise KanonError(f"method_options.next_seed is {shown(next_seed)}: choose 'last_added' or 'lin_wei'")
    encoding = microdata.encoding
    n, k = encoding.rows, model.k
    model.refuse_too_few(n)

    columns = np.ascontiguousarray(encoding.codes.T[: encoding.columns])
    caps = encoding.caps[: encoding.columns]
    weights = encoding.weights[: encoding.columns]
    rows = np.arange(n)
    placed = np.zeros(n, np.float32)
    costs = np.empty(BLOCK, np.float32)
    labels = np.full(n, NO_CLASS, np.int64)
    first = int(generator.integers(n))
    left_over_order = generator.permutation(n % k)

    low, high, reference = (columns[:, first].copy() for _ in range(3))
    choice = 0
    if next_seed == "lin_wei":  # the random row is itself the first seed
        placed[first], labels[first], choice = np.inf, 0, 1
    # Every class gets k rows: choices k * c to k * c + k - 1 are those of class c, and no choice is missing.
    choices = n - n % k
    while choice < choices:
        until = min(choices, choice + max(1, SLICE // max(1, columns.size)))
        place_rows(
            columns, rows, placed, labels, low, high, reference, caps, weights, costs,
            costs.view(np.int32), k, next_seed == "lin_wei", choice, until,
        )  # fmt: skip
        choice = until
        checkpoint(1 - (1 - choice / n) ** 2)
        if n - choice < 0.9 * rows.size:
            kept = placed == 0
            columns, rows, placed = columns.compress(kept, axis=1), rows[kept], placed[kept]

    low, high, sizes = class_boxes(encoding.codes, labels)
    for row in rows[placed == 0][left_over_order]:
        label = least_increase(encoding.codes[row], low, high, sizes, encoding.caps, encoding.weights)
        low[label] = np.minimum(low[label], encoding.codes[row])
        high[label] = np.maximum(high[label], encoding.codes[row])
        sizes[label] += 1
        labels[row] = label
    return labels

"""The default method: order the rows, cut the order optimally, anneal.

The steps stand in files of their own: ``order``, ``cut``, ``anneal``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.options import EFFORT
from kanon_duck.clustering.anneal import anneal
from kanon_duck.clustering.class_rows import row_type, without_gaps
from kanon_duck.clustering.cut import cut
from kanon_duck.clustering.order import order
from kanon_duck.clustering.repair import fall_short, repair
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.kernels.satisfies import Requirement
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import Demand, demand, for_rows, least_size
from kanon_duck.runtime.parallel import Checkpoint, part

STEPS_PER_SECOND = 4_000_000
"""What a number of seconds is multiplied with to become steps: fixed, so that results are repeatable."""


MOST_SHORT, GROWTH, MOST_GROWTH = 0.5, 1.25, 4
"""Share of runs that may fall short of what is demanded before the cut, how runs grow where more do, and up to what."""


def steps_per_row(effort: str | float, rows: int, size: int) -> float:
    """Steps of annealing per row that an effort stands for.

    Medium effort is 100 steps per row at 30,000 rows and 10 at a million, falling with the 2/3rd
    power of the rows, and less than that beyond: none from ten million on. Where classes are of more than 25
    rows, a step costs more, and there are fewer. A number of seconds counts at ``STEPS_PER_SECOND``.
    """
    slower = min(1.0, 25 / size)
    if not isinstance(effort, str):
        return effort * STEPS_PER_SECOND * slower / rows
    beyond = min(max((10_000_000 - rows) / 9_000_000, 0.0), 1.0)
    return EFFORT[effort] * 100 * (30_000 / rows) ** (2 / 3) * beyond * slower


def auto(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Checkpoint,
    *,
    effort: str | float = "medium",
) -> NDArray[np.int64]:
    """Cluster by the default method.

    Guarantee: every class satisfies the model; where not even all rows together do, no row is in a class.

    Parameters
    ----------
    microdata : Microdata
    model : PrivacyModel
    generator : numpy.random.Generator
        Fixes the result together with the other arguments, whatever the number of threads.
    checkpoint : function
        Told the share of a step of the work that is done; what it raises stops the work.
    effort : str or float
        light, medium, heavy, or seconds on one thread; see `steps_per_row`.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to m - 1, or -1.

    Raises
    ------
    KanonError
        When there are fewer than k rows.
    """
    encoding, demanded = microdata.encoding, demand(model, microdata.sensitive)
    model.refuse_too_few(encoding.rows)
    seed = int(generator.integers(2**63))
    ordered = order(encoding, least_size(demanded), part(checkpoint, 0.0, 0.1))
    # rows that stand together in the order stand together in memory from here on
    encoding = replace(encoding, codes=encoding.codes.take(ordered, axis=0))
    demanded = _large_enough(for_rows(demanded, ordered), encoding.rows)
    size = least_size(demanded)
    improved = cut(encoding, np.arange(encoding.rows), demanded, part(checkpoint, 0.1, 0.2))
    if isinstance(demanded, Requirement):
        improved = without_gaps(repair(encoding, improved, demanded, checkpoint))
        if np.all(improved == NO_CLASS):
            return improved
        size = max(size, encoding.rows // (int(improved.max(initial=0)) + 1))
    steps = steps_per_row(effort, encoding.rows, size)
    if steps > 0:
        improved = anneal(encoding, improved, demanded, seed, steps, part(checkpoint, 0.2, 1.0))
    labels = np.empty_like(improved)
    labels[ordered] = improved
    return labels


def _large_enough(demanded: Demand, n: int) -> Demand:
    """The same demand with a least number of rows at which rows that stand together may well satisfy it.

    Where values must be as diverse as in dozens of rows, classes of fewer would all have to be united, and the unions
    would be larger than they need be. Tried on runs of the order, which the cut then does better than.
    """
    largest = min(MOST_GROWTH * least_size(demanded), n // 2)
    rows = np.arange(n, dtype=row_type(n))
    while isinstance(demanded, Requirement) and GROWTH * demanded.k <= largest:
        starts = np.arange(0, n - demanded.k + 1, demanded.k)
        if fall_short(rows, starts, demanded).mean() <= MOST_SHORT:
            break
        demanded = demanded._replace(k=math.ceil(GROWTH * demanded.k))
    return demanded

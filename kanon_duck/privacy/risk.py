"""Computes the risk of re-identification from the sizes of the classes of a release.

There are three intruders (El Emam & Dankar, JAMIA 2008; Dankar & El Emam, EDBT workshops 2010). The prosecutor knows
that somebody is in the release, and finds each person of a class of f people with probability 1 / f. The journalist
knows only that somebody is in the population from which the release was drawn. If F people of the population have the
class's cells, the probability is 1 / F. The marketer matches everybody at random, and counts the right matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_duck.runtime.call import Row

BANDS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Least sizes of the bands in which classes are counted."""

NODES, LONGEST = 100, 40.0
"""Points of the quadrature, and the end of its range, where the integrand vanishes: enough for ten digits."""


@dataclass(frozen=True)
class Sizes:
    """The classes of a release by their size.

    Attributes
    ----------
    size : int64, shape (m,)
        Different numbers of people in a class, rising.
    classes, rows : int64, shape (m,)
        Classes of this size, and rows in them: as many as people, unless a person has several rows.
    """

    size: NDArray[np.int64]
    classes: NDArray[np.int64]
    rows: NDArray[np.int64]


def risks(sizes: Sizes, people: int, population: int | None) -> list[Row]:
    """Measures of risk, each with the rows that it is about.

    Parameters
    ----------
    sizes : Sizes
    people : int
        In the release.
    population : int or None
        Number of people from whom they were drawn, at least as many; None if it is not known.
    """
    rows = int(sizes.rows.sum())
    at_most = int(sizes.rows[0])
    average = float(sizes.classes.sum() / (sizes.classes * sizes.size).sum())
    alone = int(sizes.rows[sizes.size == 1].sum())
    measures = [
        _measure("prosecutor_highest", 1 / sizes.size[0], at_most),
        _measure("prosecutor_average", average, rows),
        _measure("prosecutor_rows_at_highest", at_most / rows, at_most),
    ]
    if population is None:
        measures += [_measure(f"journalist_{which}", None, None) for which in ("highest", "average")]
    else:
        found = expected_inverse(sizes.size, people / population)
        weights = sizes.classes * sizes.size
        measures += [
            _measure("journalist_highest", found[0], at_most),
            _measure("journalist_average", np.average(found, weights=weights), rows),
        ]
    return [
        *measures,
        _measure("marketer", average, rows),
        _measure("sample_uniques", alone / rows, alone),
    ]


def expected_inverse(size: NDArray[np.int64], fraction: float) -> NDArray[np.float64]:
    """Expectation of 1 / F, where f of the F people in the population with some cells are in the release.

    Everybody of the population is taken to be in the release with the same probability; then F - f has a negative
    binomial distribution (Bethlehem, Keller & Pannekoek, JASA 1990; Benedetti & Franconi 1998, of mu-Argus), and the
    expectation is the integral of p y^(f - 1) / (p + (1 - p) y) over y from 0 to 1. It lies between p / f and 1 / f.

    Parameters
    ----------
    size : int64, shape (m,)
        f, at least 1.
    fraction : float
        p, the share of the population that is in the release, in (0, 1].

    Returns
    -------
    float64, shape (m,)
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    u = (nodes + 1) * LONGEST / 2  # y = exp(-u / f), so that the integrand falls alike for all f
    y = np.exp(-np.divide.outer(u, size))
    return np.asarray((weights * LONGEST / 2 * np.exp(-u)) @ (fraction / (fraction + (1 - fraction) * y)) / size)


def size_bands(sizes: Sizes) -> list[Row]:
    """Count classes and their rows by bands of sizes; empty bands are left out."""
    ends = [*(following - 1 for following in BANDS[1:]), None]
    band = np.searchsorted(BANDS, sizes.size, side="right") - 1
    measures = []
    for place, (least, most) in enumerate(zip(BANDS, ends, strict=True)):
        if np.any(band == place):
            name = f"{least}_or_more" if most is None else f"{least}" if most == least else f"{least}_to_{most}"
            inside = band == place
            measures.append(_measure(f"classes_of_{name}", sizes.classes[inside].sum(), sizes.rows[inside].sum()))
    return measures


def _measure(name: str, value: float | None, rows: int | None) -> Row:
    """A row of the answer."""
    return {
        "measure": name,
        "value": None if value is None else float(value),
        "rows": None if rows is None else int(rows),
    }

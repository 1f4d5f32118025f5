"""A made-up register of persons of any size: skewed, correlated, with one deep hierarchy, as text.

Every column but the key depends on others, so that clusters exist to be found:

==================  ========  =====================================================================
column              type      drawn from
==================  ========  =====================================================================
person_id           int64     the row's number
postcode            text      a town (town sizes follow a power law), then a street in it; five digits,
                              made for a hierarchy of prefixes
age                 int64     a mixture of young, middle and old that differs between regions
sex                 text      two values
marital_status      text      age
education           text      birth cohort and region; 16 degrees
occupation          text      education; 14 kinds
workclass           text      occupation; 8 kinds, one of them most rows
native_country      text      region; 41 countries, one of them 85% of the rows or more
hours_per_week      int64     occupation; mostly 40, else a multiple of 5
income              int64     education, age and hours; log-normal, in thousands
diagnosis           text      age; 30 diagnoses, the sensitive attribute
==================  ========  =====================================================================

The same ``rows`` and ``seed`` give the same table.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

QUASI_IDENTIFIERS = {
    "postcode": "postcode",
    "age": "numeric",
    "sex": "flat",
    "marital_status": "flat",
    "education": "flat",
    "occupation": "flat",
    "workclass": "flat",
    "native_country": "flat",
    "hours_per_week": "numeric",
    "income": "numeric",
}
"""The quasi-identifiers as a masked view takes them; ``postcode`` is a hierarchy with ``prefix => 5``."""

MARITAL_STATUS = ["never married", "married", "separated", "divorced", "widowed"]
WORKCLASS = ["private", "self-employed", "company owner", "city", "state", "federal", "unpaid", "none"]
TOWNS = 400


def _choose(
    generator: np.random.Generator, weights: NDArray[np.float64], which: NDArray[np.int64]
) -> NDArray[np.int64]:
    """One draw per row: category c with a probability proportional to ``weights[which[row], c]``."""
    shares = np.cumsum(weights, axis=1)
    shares /= shares[:, -1:]
    drawn = generator.random(len(which))
    chosen = np.empty(len(which), np.int64)
    for group in range(len(weights)):
        members = np.flatnonzero(which == group)
        chosen[members] = np.searchsorted(shares[group], drawn[members], side="right")
    return chosen


def _skewed(generator: np.random.Generator, groups: int, categories: int, skew: float) -> NDArray[np.float64]:
    """Weights that fall with a power of the rank; every group has its favourites, shared in part."""
    ranks = np.arange(1, categories + 1) ** -skew
    common = generator.permutation(ranks)
    return np.array([common + generator.permutation(ranks) for _ in range(groups)])


def _text(labels: list[str], codes: NDArray[np.int64]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(labels)).cast(pa.string())


def table(rows: int, seed: int) -> pa.Table:
    """The register.

    Parameters
    ----------
    rows : int
    seed : int

    Returns
    -------
    pyarrow.Table
        The columns listed above.
    """
    generator = np.random.default_rng(seed)

    towns = generator.choice(1000, TOWNS, replace=False)
    sizes = np.arange(1, TOWNS + 1) ** -2.0
    town = towns[generator.choice(TOWNS, rows, p=sizes / sizes.sum())]
    postcode = town * 100 + (100 * generator.beta(0.5, 5.0, rows)).astype(np.int64)
    region = postcode // 10_000

    centres = np.array([24.0, 43.0, 69.0])
    generation = _choose(generator, 1.0 + generator.random((10, 3)), region)
    age = np.clip(np.rint(generator.normal(centres[generation], 9.0)), 17, 99).astype(np.int64)
    cohort = np.minimum((age - 17) // 14, 5)
    sex = generator.integers(0, 2, rows)
    marital_status = _choose(
        generator,
        np.array(
            [
                [95, 4, 1, 0, 0],
                [45, 48, 3, 4, 0],
                [18, 64, 5, 12, 1],
                [9, 66, 5, 17, 3],
                [5, 63, 3, 14, 15],
                [4, 44, 2, 8, 42],
            ]
        )
        + 0.2,
        cohort,
    )
    education = _choose(generator, _skewed(generator, 60, 16, 2.0), cohort * 10 + region)
    occupation = _choose(generator, _skewed(generator, 16, 14, 2.2), education)
    workclass = _choose(generator, _skewed(generator, 14, 8, 2.0) + np.eye(8)[0] * 6, occupation)
    native_country = _choose(generator, _skewed(generator, 10, 41, 1.2) * 0.08 + np.eye(41)[0] * 5, region)
    usual = generator.random(rows) < 0.6
    hours = np.where(usual, 40, 5 * np.rint(generator.normal(5.0 + 0.5 * occupation, 1.5)))
    hours = np.clip(hours, 1, 99).astype(np.int64)
    experience = np.minimum(age - 17, 35)
    income = 12_000 * np.exp(0.06 * education + 0.02 * experience + generator.normal(0.0, 0.3, rows)) * hours / 40
    income = np.minimum(np.rint(income / 1000), 300).astype(np.int64) * 1000
    diagnosis = _choose(generator, _skewed(generator, 6, 30, 1.0), cohort)

    return pa.table(
        {
            "person_id": pa.array(np.arange(rows)),
            "postcode": _text([f"{code:05d}" for code in range(100_000)], postcode),
            "age": pa.array(age),
            "sex": _text(["female", "male"], sex),
            "marital_status": _text(MARITAL_STATUS, marital_status),
            "education": _text([f"degree {degree}" for degree in range(16)], education),
            "occupation": _text([f"occupation {kind}" for kind in range(14)], occupation),
            "workclass": _text(WORKCLASS, workclass),
            "native_country": _text([f"country {country}" for country in range(41)], native_country),
            "hours_per_week": pa.array(hours),
            "income": pa.array(income),
            "diagnosis": _text([f"diagnosis {kind}" for kind in range(30)], diagnosis),
        }
    )

"""A made-up register of adults of any size: skewed, correlated, with one deep hierarchy, as text.

The shape follows what is known of such tables, not what any method does with them:

==================  ========  =====================================================================
column              type      drawn from
==================  ========  =====================================================================
person_id           int64     the row's number
postcode            text      900 areas of three digits (as many as the United States use), then a place
                              in the area, two digits; populations of areas and of places in an area
                              follow Zipf's law with exponent 1 [1]; made for a hierarchy of prefixes
age                 int64     age pyramid of the adults of the United States in the census of 2020
sex                 text      two values, equally frequent
marital_status      text      age, rounded shares of the American Community Survey
education           text      a latent standing; 16 degrees with the frequencies of Adult [2], older
                              people lower: correlation -0.15 with age
occupation          text      the standing, correlation 0.6 with education [3]; 14 kinds ordered by
                              prestige, with the frequencies of Adult
workclass           text      correlation 0.3 with occupation; 8 kinds with the frequencies of Adult
native_country      text      14% were born abroad, in the ten regions (first digits of the postcode)
                              between 4% and 27%; their 40 countries follow Zipf's law with exponent 1
hours_per_week      int64     47% work 40 hours (Adult), the others from 5 to 95, in steps of 5
income              int64     Mincer's equation [4]: the logarithm rises by 0.1 for a year of school and
                              along a parabola of years of experience, its residual is normal (0.55) and
                              correlated 0.3 with the occupation; mean about 60 thousand, top code 300
diagnosis           text      30 diagnoses by Zipf's law, in another order for each age group; sensitive
==================  ========  =====================================================================

[1] Gabaix, Zipf's law for cities, Quarterly Journal of Economics 114 (1999). [2] Kohavi, Scaling up the
accuracy of naive-Bayes classifiers (KDD 1996): the census extract 'Adult'. [3] Blau & Duncan, The American
Occupational Structure (1967). [4] Mincer, Schooling, Experience, and Earnings (1974).

The same ``rows`` and ``seed`` give the same table.
"""

from __future__ import annotations

from statistics import NormalDist

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

AREAS, PLACES = 900, 100
AGE_BANDS = {17: 13.0, 25: 17.5, 35: 16.5, 45: 15.5, 55: 16.0, 65: 13.0, 75: 6.5, 85: 2.0}
"""Percent of the adults from each age on to the next; the last band ends at 95."""
MARITAL_STATUS = {  # percent by age, from 17, 25, 35, 45, 55 and 65 on
    "never married": [92, 56, 24, 16, 12, 6],
    "married": [7, 37, 61, 63, 63, 58],
    "separated": [0.5, 2, 3, 3, 2, 1],
    "divorced": [0.5, 5, 11, 16, 18, 14],
    "widowed": [0.1, 0.2, 0.6, 2, 5, 21],
}
EDUCATION = {  # years of school and percent, lowest degree first
    "preschool": (1, 0.2), "1st-4th": (4, 0.5), "5th-6th": (6, 1.0), "7th-8th": (8, 2.0), "9th": (9, 1.6),
    "10th": (10, 2.9), "11th": (11, 3.6), "12th": (12, 1.3), "high school": (12, 32.3), "some college": (13, 22.4),
    "vocational": (14, 4.2), "associate": (14, 3.3), "bachelor": (16, 16.4), "master": (18, 5.3),
    "professional": (19, 1.8), "doctorate": (21, 1.2),
}  # fmt: skip
OCCUPATION = {  # percent, least prestige first
    "private household": 0.5, "handler": 4.5, "farming": 3.3, "other service": 10.7, "machine operator": 6.5,
    "transport": 5.2, "craft": 13.3, "clerical": 12.3, "protective": 2.1, "armed forces": 0.1, "sales": 11.9,
    "technician": 3.0, "manager": 13.2, "professional": 13.4,
}  # fmt: skip
WORKCLASS = {
    "unpaid": 0.1, "private": 73.7, "self-employed": 8.3, "city": 6.8, "company owner": 3.6, "state": 4.2,
    "federal": 3.2, "none": 0.1,
}  # fmt: skip
COUNTRIES, DIAGNOSES = 40, 30


def _zipf(categories: int) -> NDArray[np.float64]:
    """Shares that fall with the rank: Zipf's law with exponent 1."""
    shares = 1.0 / np.arange(1, categories + 1)
    return shares / shares.sum()


def _ranked(score: NDArray[np.float64], percent: list[float]) -> NDArray[np.int64]:
    """Categories in the order of a standard normal score, with the frequencies given."""
    shares = np.cumsum(percent)[:-1] / np.sum(percent)
    return np.searchsorted([NormalDist().inv_cdf(share) for share in shares], score)


def _correlated(generator: np.random.Generator, score: NDArray[np.float64], correlation: float) -> NDArray[np.float64]:
    """A standard normal score with a correlation to another."""
    return correlation * score + np.sqrt(1 - correlation**2) * generator.standard_normal(len(score))


def _drawn(generator: np.random.Generator, shares: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.int64]:
    """One category per row, by the shares of the row's group: ``shares[group, category]``."""
    steps = np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
    drawn = generator.random(len(group))
    chosen = np.empty(len(group), np.int64)
    for number, step in enumerate(steps):
        members = np.flatnonzero(group == number)
        chosen[members] = np.searchsorted(step[:-1], drawn[members], side="right")
    return chosen


def _ages(generator: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Ages from 17 to 94, uniform within the bands of the pyramid."""
    starts = np.array([*AGE_BANDS, 95])
    percent = np.array(list(AGE_BANDS.values()))
    band = generator.choice(len(percent), rows, p=percent / percent.sum())
    return starts[band] + (generator.random(rows) * np.diff(starts)[band]).astype(np.int64)


def _income(
    years: NDArray[np.int64], age: NDArray[np.int64], hours: NDArray[np.int64], residual: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Yearly income by Mincer's equation, in thousands and at most 300 of them, as surveys code it."""
    experience = np.clip(age - years - 6, 0, 50)
    logarithm = 8.5 + 0.1 * years + 0.08 * experience - 0.0012 * experience**2 + 0.55 * residual
    return np.minimum(np.rint(np.exp(logarithm) * hours / 40 / 1000), 300).astype(np.int64) * 1000


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

    area = generator.choice(1000, AREAS, replace=False)[generator.choice(AREAS, rows, p=_zipf(AREAS))]
    place = (generator.choice(PLACES, rows, p=_zipf(PLACES)) + 37 * area) % PLACES  # each area has its own first place
    postcode = area * PLACES + place
    region = postcode // 10_000

    age = _ages(generator, rows)
    sex = generator.integers(0, 2, rows)
    age_group = np.searchsorted([25, 35, 45, 55, 65], age, side="right")
    marital_status = _drawn(generator, np.array(list(MARITAL_STATUS.values())).T, age_group)

    standing = _correlated(generator, (age - age.mean()) / age.std(), -0.15)
    education = _ranked(standing, [percent for _, percent in EDUCATION.values()])
    prestige = _correlated(generator, standing, 0.6)
    occupation = _ranked(prestige, list(OCCUPATION.values()))
    workclass = _ranked(_correlated(generator, prestige, 0.3), list(WORKCLASS.values()))

    abroad = generator.permutation(np.linspace(0.04, 0.27, 10))
    abroad *= 0.14 / abroad[region].mean()
    country = np.where(
        generator.random(rows) < abroad[region], 1 + generator.choice(COUNTRIES, rows, p=_zipf(COUNTRIES)), 0
    )
    others = np.clip(5 * np.rint(generator.normal(40, 12, rows) / 5), 5, 95)
    hours = np.where(generator.random(rows) < 0.37, 40, others).astype(np.int64)
    years = np.array([years for years, _ in EDUCATION.values()])[education]
    income = _income(years, age, hours, _correlated(generator, prestige, 0.3))
    diagnoses = np.array([generator.permutation(_zipf(DIAGNOSES)) for _ in range(6)])
    diagnosis = _drawn(generator, diagnoses, age_group)

    return pa.table(
        {
            "person_id": pa.array(np.arange(rows)),
            "postcode": _text([f"{code:05d}" for code in range(100_000)], postcode),
            "age": pa.array(age),
            "sex": _text(["female", "male"], sex),
            "marital_status": _text(list(MARITAL_STATUS), marital_status),
            "education": _text(list(EDUCATION), education),
            "occupation": _text(list(OCCUPATION), occupation),
            "workclass": _text(list(WORKCLASS), workclass),
            "native_country": _text([f"country {number}" for number in range(COUNTRIES + 1)], country),
            "hours_per_week": pa.array(hours),
            "income": pa.array(income),
            "diagnosis": _text([f"diagnosis {number}" for number in range(DIAGNOSES)], diagnosis),
        }
    )

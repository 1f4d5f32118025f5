"""Translates the declared models into what kernels check on the rows at hand."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.microdata import Sensitive
from kanon_duck.kernels.satisfies import Closeness, Requirement
from kanon_duck.privacy.models import TOLERANCE, PrivacyModel

Demand: TypeAlias = int | Requirement
"""The least number of rows of a class if the models ask for nothing else; otherwise a ``Requirement``."""

NONE = np.empty(0, np.int64)


def demand(model: PrivacyModel, sensitive: Sensitive | None, released: NDArray[np.bool_] | None = None) -> Demand:
    """What a class must satisfy. Bounds on computed numbers are widened by ``TOLERANCE``.

    Parameters
    ----------
    model : PrivacyModel
    sensitive : Sensitive or None
        The codes of sensitive values and persons; None if the models ask only for a number of rows.
    released : bool, shape (rows,), optional
        The rows that readers will see, with whose values t-closeness compares; by default all rows. No other row may
        be in a class that is asked about.

    Returns
    -------
    int or Requirement
    """
    if sensitive is None:
        return model.k
    persons = _numbered(sensitive.persons) if sensitive.persons.size else NONE
    if released is None:
        released = np.ones(sensitive.rows, bool)
    c, recursive_l = model.recursive_cl or (0.0, 0)
    return Requirement(
        k=_fewest_rows(model),
        least_persons=model.k,
        persons=persons,
        number_of_persons=int(persons.max(initial=0)) + 1,
        values=_all_numbered(sensitive.values),
        strong=_all_numbered(sensitive.strong),
        l=model.l or 0,
        p=model.p or 0,
        entropy=math.log(model.entropy_l) - TOLERANCE if model.entropy_l is not None else 0.0,
        c=c,
        recursive_l=recursive_l,
        alpha=(1.0 if model.alpha is None else model.alpha) + TOLERANCE,
        closeness=None if model.t is None else _closeness(model.t, sensitive, persons, released),
    )


def _closeness(t: float, sensitive: Sensitive, persons: NDArray[np.int64], released: NDArray[np.bool_]) -> Closeness:
    """What t-closeness demands.

    Guarantee: distances are to the shares among the released rows, and along the values that these have, as in the
    check of the release (`kanon_duck.privacy.diversity`).
    """
    levels = np.array([_numbered_among(codes, released) for codes in sensitive.levels], np.int64)
    levels = levels.reshape(sensitive.levels.shape)
    attribute = np.array(sensitive.attribute, np.int64)
    # a person may have several values, each once: distances are between distributions of values
    number_of_persons = int(persons.max(initial=0)) + 1
    lowest = _all_numbered(sensitive.levels[np.unique(attribute, return_index=True)[1]])
    holdings = _all_numbered(lowest * number_of_persons + persons) if persons.size else lowest[:, :0]
    shares = [_shares(codes, holdings[of], released) for codes, of in zip(levels, attribute, strict=True)]
    cumulative = [np.cumsum(each) for each in shares]
    return Closeness(
        t=t + TOLERANCE,
        levels=levels,
        attribute=attribute,
        holdings=holdings,
        number_of_holdings=int(holdings.max(initial=0)) + 1,
        ordered=np.array(sensitive.ordered, bool),
        starts=np.cumsum([0] + [len(each) for each in shares]),
        shares=np.concatenate([np.empty(0), *shares]),
        cumulative=np.concatenate([np.empty(0), *cumulative]),
        summed=np.concatenate([np.empty(0), *(np.concatenate([[0.0], np.cumsum(each)]) for each in cumulative)]),
    )


def _fewest_rows(model: PrivacyModel) -> int:
    """The number of rows that a class needs at least to satisfy the models."""
    fewest = [model.k, model.l or 0, model.p or 0]
    if model.entropy_l is not None:
        fewest.append(math.ceil(model.entropy_l - TOLERANCE))
    if model.recursive_cl is not None:
        fewest.append(model.recursive_cl[1])
    if model.alpha is not None:
        fewest.append(math.ceil(1 / model.alpha - TOLERANCE))
    return max(fewest)


def for_rows(demanded: Demand, rows: NDArray[np.int64]) -> Demand:
    """The same demand for some rows, numbered by their positions in ``rows``."""
    if not isinstance(demanded, Requirement):
        return demanded
    closeness = demanded.closeness
    if closeness is not None:
        holdings = closeness.holdings
        closeness = closeness._replace(
            levels=closeness.levels.take(rows, axis=1),
            holdings=holdings.take(rows, axis=1) if holdings.size else holdings,
        )
    return demanded._replace(
        persons=demanded.persons[rows] if demanded.persons.size else demanded.persons,
        values=demanded.values.take(rows, axis=1),
        strong=demanded.strong.take(rows, axis=1),
        closeness=closeness,
    )


def least_size(demanded: Demand) -> int:
    """The least number of rows of a class."""
    return demanded.k if isinstance(demanded, Requirement) else demanded


def _numbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Codes as numbers from 0, in their order."""
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _all_numbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes of each attribute as numbers from 0."""
    return np.array([_numbered(each) for each in codes], np.int64).reshape(codes.shape)


def _numbered_among(codes: NDArray[np.int64], released: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Codes as numbers from 0, in the order of those that released rows have; numbers of other rows mean nothing."""
    different = np.unique(codes[released])
    return np.minimum(np.searchsorted(different, codes), max(len(different) - 1, 0))


def _shares(codes: NDArray[np.int64], holdings: NDArray[np.int64], released: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of the released rows that has each code; equal holdings, where there are any, count once."""
    counted = codes[released]
    if holdings.size:
        counted = counted[np.unique(holdings[released], return_index=True)[1]]
    frequencies = np.bincount(counted, minlength=int(codes.max(initial=-1)) + 1)
    return frequencies / max(len(counted), 1)

"""Declares the privacy models: what every class of a release must satisfy, as a reader sees it.

All models that are set must hold, for every sensitive attribute. The frequency of a value in a class is the share of
the class's rows that have it. If persons are counted (`unit`), a value counts once for each person who has it. NULL is
one value. If two classes satisfy a model, so does their union. So classes that look the same to a reader satisfy it
too, and a table that does not satisfy a model has no partition that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kanon_duck.errors import KanonError
from kanon_duck.runtime import arguments as read

TOLERANCE = 1e-9
"""How far a computed frequency, entropy or distance may miss its bound: this is rounding, not risk."""

ON_VALUES = ("l", "entropy_l", "recursive_cl", "p", "alpha", "t")
"""Models on sensitive values."""


@dataclass(frozen=True)
class SensitiveAttribute:
    """A sensitive column.

    Attributes
    ----------
    name, column_type : str
        Of the source's column.
    hierarchy : str or None
    protected : list of str
        Nodes of the hierarchy below which values count as the node (extended p-sensitivity: Truta, Campan & Meyer
        2007, section 2).
    """

    name: str
    column_type: str
    hierarchy: str | None
    protected: list[str]


@dataclass(frozen=True)
class PrivacyModel:
    """The models a masked view declares; None: not set.

    Attributes
    ----------
    k : int
        k-anonymity (Definition 1 of Truta & Campan 2007): each class has at least ``k`` rows; at least 2.
    l : int or None
        Distinct l-diversity (section 2 of Byun et al. 2006): at least ``l`` different values.
    entropy_l : float or None
        Entropy l-diversity (Machanavajjhala et al., ICDE 2006): the entropy of the values is at least its logarithm.
    recursive_cl : (float, int) or None
        Recursive (c, l)-diversity (the same): the commonest value has fewer than ``c`` times the rows of the
        ``l``-th commonest and all rarer ones together.
    p : int or None
        p-sensitivity (Definition 4 of Truta, Campan & Meyer 2007): at least ``p`` different values, or strong values
        where nodes are protected.
    alpha : float or None
        (alpha, k)-anonymity (Wong et al., KDD 2006): no value has a frequency above ``alpha``.
    t : float or None
        t-closeness (Li et al., ICDE 2007): the distance between the values of a class and those of the whole release
        is at most ``t``.
    attributes : tuple of SensitiveAttribute
        The columns that the models are about.
    unit : str or None
        The column that tells which person a row is about; None: each row is a person of its own. NULL is one person.
    """

    k: int
    l: int | None = None  # noqa: E741 - the field's name for it
    entropy_l: float | None = None
    recursive_cl: tuple[float, int] | None = None
    p: int | None = None
    alpha: float | None = None
    t: float | None = None
    attributes: tuple[SensitiveAttribute, ...] = ()
    unit: str | None = None

    @property
    def on_values(self) -> bool:
        """Whether a model on sensitive values is set."""
        return any(getattr(self, name) is not None for name in ON_VALUES)

    @property
    def on_size_alone(self) -> bool:
        """Whether only the number of rows of a class matters."""
        return not self.on_values and self.unit is None

    def refuse_too_few(self, rows: int, of_what: str = "rows") -> None:
        """Refuse a table that has no partition into classes of k rows.

        Raises
        ------
        KanonError
            When there are fewer than k rows, with the largest k that is possible.
        """
        if rows < self.k:
            largest = f"the largest possible k is {rows}" if rows >= 2 else f"at least 2 {of_what} are needed"
            raise KanonError(f"k is {self.k}, but there are only {rows} {of_what}: {largest}")


def read_model(given: read.Arguments, attributes: tuple[SensitiveAttribute, ...], unit: str | None) -> PrivacyModel:
    """Read the models from the options of a masked view.

    Parameters
    ----------
    given : mapping
    attributes, unit
        As in ``PrivacyModel``.

    Raises
    ------
    KanonError
        For a value that its model cannot have.
    """
    model = PrivacyModel(
        k=read.integer(given, "k", None, 2),
        l=_optional_integer(given, "l"),
        entropy_l=_number(given, "entropy_l", 1.0, None),
        recursive_cl=_recursive(given),
        p=_optional_integer(given, "p"),
        alpha=_number(given, "alpha", 0.0, 1.0),
        t=_number(given, "t", 0.0, 1.0),
        attributes=attributes,
        unit=unit,
    )
    if model.on_values and not attributes:
        name = next(each for each in ON_VALUES if given.get(each) is not None)
        raise KanonError(f"{name} is {read.shown(given[name])}, but sensitive names no column: name those it is about")
    if model.p is None and any(each.protected for each in attributes):
        raise KanonError("protected is set, but p is not: say how many different strong values a class needs")
    return model


def _optional_integer(given: read.Arguments, name: str) -> int | None:
    """A whole number of at least 2, if it is set."""
    return None if given.get(name) is None else read.integer(given, name, None, 2)


def _number(given: read.Arguments, name: str, above: float, most: float | None) -> float | None:
    """A number above one bound and at most another, if it is set."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not value > above:
        raise KanonError(f"{name} is {read.shown(value)}: it must be a number above {above:g}")
    if most is not None and value > most:
        raise KanonError(f"{name} is {read.shown(value)}: it must be at most {most:g}")
    return float(value)


def _recursive(given: read.Arguments) -> tuple[float, int] | None:
    """The pair [c, l], if it is set."""
    pair: Any = given.get("recursive_cl")
    if pair is None:
        return None
    if not isinstance(pair, list) or len(pair) != 2:
        raise KanonError(f"recursive_cl is {read.shown(pair)}: give c and l, as in [2.0, 3]")
    ratio, least = pair
    if isinstance(least, Decimal | float) and least == int(least):  # a list has one type: 3 is written as 3.0
        least = int(least)
    c = _number({"recursive_cl's c": ratio}, "recursive_cl's c", 0.0, None)
    count = read.integer({"recursive_cl's l": least}, "recursive_cl's l", None, 2)
    if c is None:
        raise KanonError(f"recursive_cl is {read.shown(pair)}: c is missing")
    return c, count

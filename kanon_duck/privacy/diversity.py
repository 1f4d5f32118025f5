"""Measures the sensitive values of classes, model by model, with plain GROUP BYs.

It shares no code with the predicate that the search uses (`kanon_duck.kernels.satisfies`), so each checks the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.hierarchy import height
from kanon_duck.privacy.models import TOLERANCE, PrivacyModel, SensitiveAttribute
from kanon_duck.privacy.sensitive import find_nodes, has_nodes, is_ordered, joined_nodes, position
from kanon_duck.runtime.database import Database

PERSON = "coalesce(CAST(unit_0 AS VARCHAR), '') || (unit_0 IS NULL)"
"""SQL for the person a row is about; NULL is one person."""


@dataclass(frozen=True)
class Measure:
    """One requirement of a release, and what the release achieves.

    Attributes
    ----------
    requirement : str
        A model's name, or ``max_frequency``, which no model requires.
    attribute : str or None
        The sensitive attribute it is about.
    required, achieved : float or None
        Achieved is the smallest over all classes; for frequencies and distances the largest.
    violating_rows : int
        Rows in classes that do not satisfy it.
    """

    requirement: str
    attribute: str | None
    required: float | None
    achieved: float | None
    violating_rows: int

    @property
    def passed(self) -> bool:
        """Whether every class satisfies it."""
        return self.violating_rows == 0


def measure(database: Database, model: PrivacyModel, relation: str, classes: list[str]) -> list[Measure]:
    """Measure a relation by every model beyond the number of rows, and the highest frequency of each attribute.

    Parameters
    ----------
    database : Database
    model : PrivacyModel
        With a ``unit``, the relation has a column ``unit_0``, and a value counts once for each person.
    relation : str
        SQL of a relation with the class columns and ``sensitive_<i>`` for each attribute.
    classes : list of str
        Columns whose values, NULL included, make a class; quoted where they must be. None: all rows are one class.

    Returns
    -------
    list of Measure
        The measure of ``k`` first, if persons are counted; then by attribute, in the order of the models.
    """
    measures = [] if model.unit is None else [persons(database, model, relation, classes)]
    if not model.on_values:
        return measures
    find_nodes(database, model, relation)
    for place, attribute in enumerate(model.attributes):
        measures += _frequencies(database, model, relation, classes, place, attribute)
        if attribute.protected:
            measures.append(_strong(database, model, relation, classes, place, attribute))
        if model.t is not None:
            measures.append(_closeness(database, model, relation, classes, place, attribute))
    return measures


def persons(database: Database, model: PrivacyModel, relation: str, classes: list[str]) -> Measure:
    """k-anonymity in persons: how many persons the rows of each class are about."""
    least, violating = database.rows(
        f"""
        WITH classes AS (
            SELECT count(*) AS rows, count(DISTINCT {PERSON}) AS persons FROM {relation} AS people {_group_by(classes)}
        )
        SELECT min(persons), coalesce(sum(rows) FILTER (persons < {int(model.k)}), 0) FROM classes
        """
    )[0]
    return Measure("k", None, model.k, least, int(violating))


@dataclass(frozen=True)
class Frequencies:
    """A requirement on how often each value occurs in a class, as SQL over the rows of `classes_of_values`.

    Attributes
    ----------
    requirement : str
        A model's name, or ``max_frequency``, which no model requires.
    required : float
    achieved : str
        SQL for what the release achieves.
    violated : str
        SQL for whether a class does not satisfy it.
    """

    requirement: str
    required: float
    achieved: str
    violated: str


def frequencies_asked(model: PrivacyModel, attribute: SensitiveAttribute) -> list[Frequencies]:
    """What the models ask of the frequencies of an attribute's values."""
    c, recursive_l = model.recursive_cl or (0.0, 1)
    rarer = f"list_sum(frequencies[{int(recursive_l)}:])"
    kinds = {
        "l": ("min", "different", model.l, "different < {required}"),
        "entropy_l": ("min", "exp(entropy)", model.entropy_l, f"entropy < ln({{required}}) - {TOLERANCE}"),
        "recursive_cl": (
            "max",
            f"most / {rarer}",
            model.recursive_cl and c,
            f"coalesce(most >= {{required}} * {rarer}, true)",
        ),
        "p": ("min", "different", None if attribute.protected else model.p, "different < {required}"),
        "alpha": ("max", "most / size", model.alpha, f"most / size > {{required}} + {TOLERANCE}"),
        "max_frequency": ("max", "most / size", None if model.alpha is not None else 0.0, "false"),
    }
    return [
        Frequencies(name, required, f"{worst}(CAST({value} AS DOUBLE))", violated.format(required=repr(required)))
        for name, (worst, value, required, violated) in kinds.items()
        if required is not None
    ]


def classes_of_values(model: PrivacyModel, relation: str, classes: list[str], place: int) -> str:
    """SQL for one row of each class: its rows, and how often the values of a sensitive attribute occur in it."""
    counted = "rows" if model.unit is None else "persons"
    of_class = "".join(f"{each}, " for each in classes)
    persons = "0" if model.unit is None else f"count(DISTINCT {PERSON})"
    return f"""
        WITH pairs AS (
            SELECT {of_class} sensitive_{place} AS value, count(*) AS rows, {persons} AS persons,
                   grouping(sensitive_{place}) AS is_class
            FROM {relation} AS released GROUP BY GROUPING SETS (({of_class} value), ({", ".join(classes)}))
        )
        SELECT {of_class} max(rows) FILTER (is_class = 1) AS rows, max({counted}) FILTER (is_class = 1) AS size,
               count(*) FILTER (is_class = 0) AS different, max({counted}) FILTER (is_class = 0) AS most,
               list({counted} ORDER BY {counted} DESC) FILTER (is_class = 0) AS frequencies,
               ln(sum({counted}) FILTER (is_class = 0)) - sum({counted} * ln({counted})) FILTER (is_class = 0)
                   / sum({counted}) FILTER (is_class = 0) AS entropy
        FROM pairs {_group_by(classes)}
    """


def _frequencies(
    database: Database,
    model: PrivacyModel,
    relation: str,
    classes: list[str],
    place: int,
    attribute: SensitiveAttribute,
) -> list[Measure]:
    """The models that look at how often each value occurs in a class."""
    asked = frequencies_asked(model, attribute)
    columns = [f"{each.achieved}, CAST(coalesce(sum(rows) FILTER ({each.violated}), 0) AS BIGINT)" for each in asked]
    of_classes = classes_of_values(model, relation, classes, place)
    [found] = database.rows(f"SELECT {', '.join(columns)} FROM ({of_classes}) AS classes")
    return [
        Measure(
            each.requirement,
            attribute.name,
            None if each.requirement == "max_frequency" else each.required,
            achieved,
            violating,
        )
        for each, achieved, violating in zip(asked, found[::2], found[1::2], strict=True)
    ]


def _group_by(classes: list[str]) -> str:
    """SQL that makes one group of each class."""
    return f"GROUP BY {', '.join(classes)}" if classes else ""


def _strong(
    database: Database,
    model: PrivacyModel,
    relation: str,
    classes: list[str],
    place: int,
    attribute: SensitiveAttribute,
) -> Measure:
    """Different strong values of the classes: extended p-sensitivity."""
    assert model.p is not None
    least, violating = database.rows(
        f"""
        WITH classes AS (
            SELECT count(*) AS rows, count(DISTINCT nodes_{place}.strong) + max((sensitive_{place} IS NULL)::INTEGER)
                   AS p
            FROM {relation} AS released {joined_nodes(place, attribute, "released")} {_group_by(classes)}
        )
        SELECT min(p), coalesce(sum(rows) FILTER (p < {model.p}), 0) FROM classes
        """
    )[0]
    return Measure("p", attribute.name, model.p, least, int(violating))


def _closeness(
    database: Database,
    model: PrivacyModel,
    relation: str,
    classes: list[str],
    place: int,
    attribute: SensitiveAttribute,
) -> Measure:
    """Greatest distance between the values of a class and those of all rows.

    If a person has several rows, each of the person's values counts once, and once for every node above it.
    """
    assert model.t is not None
    column = f"sensitive_{place}"
    source = f"{relation} AS released"
    if has_nodes(model, attribute):
        levels = [f"nodes_{place}.level_{level}" for level in range(height(database, str(attribute.hierarchy)))]
        source += f" {joined_nodes(place, attribute, 'released')}"
    else:
        levels = [position(column, attribute.column_type) if is_ordered(attribute) else column]
    of_class = "".join(f"{each}, " for each in classes)
    of_values = ", ".join(f"{level} AS value_{number}" for number, level in enumerate(levels))
    counted = "count(*)" if model.unit is None else f"count(DISTINCT {PERSON})"
    in_class = f"(SELECT {of_class} {of_values}, count(*) AS rows, {counted} AS frequency FROM {source} GROUP BY ALL)"
    # who is in several classes has a value once in the table
    in_table = f"(SELECT {of_values}, {counted} AS frequency FROM {source} GROUP BY ALL)"
    class_number = f"dense_rank() OVER (ORDER BY {', '.join(classes)})" if classes else "1"
    distances: list[NDArray[np.float64]] = []
    rows: NDArray[Any] = np.empty(0)
    for level in range(len(levels)):
        data = database.numpy(
            f"""
            WITH pairs AS (
                SELECT {of_class} value_{level} AS value, sum(rows)::BIGINT AS rows,
                       sum(frequency)::BIGINT AS frequency
                FROM {in_class} GROUP BY ALL
            )
            SELECT {class_number} - 1 AS class, dense_rank() OVER (ORDER BY value NULLS FIRST) - 1 AS code,
                   rows, frequency
            FROM pairs ORDER BY class, code
            """
        )
        rows = np.bincount(data["class"], data["rows"])
        found = database.numpy(
            f"""
            SELECT sum(frequency)::BIGINT AS frequency FROM {in_table}
            GROUP BY value_{level} ORDER BY value_{level} NULLS FIRST
            """
        )
        distances.append(
            _distances(data["class"], data["code"], data["frequency"], found["frequency"], is_ordered(attribute))
        )
    distance = np.mean(distances, axis=0)
    violating = rows[distance > model.t + TOLERANCE].sum()
    return Measure("t", attribute.name, model.t, float(distance.max(initial=0.0)), int(violating))


def _distances(
    number: NDArray[np.int64],
    code: NDArray[np.int64],
    frequency: NDArray[np.int64],
    table: NDArray[Any],
    ordered: bool,
) -> NDArray[np.float64]:
    """Distance of each class to the table: variational, or along the order of the codes.

    Parameters
    ----------
    number, code, frequency : int64, shape (pairs,)
        How often each code occurs in each class; sorted by class and code.
    table : number, shape (codes,)
        How often each code counts in the table.
    """
    share = frequency / np.bincount(number, frequency)[number]
    of_table = table / table.sum()
    if not ordered:
        apart: NDArray[Any] = np.bincount(number, np.maximum(share - of_table[code], 0.0))
        return apart
    if len(of_table) == 1:
        return np.zeros(int(number.max(initial=-1)) + 1)
    distances = np.zeros(int(number.max(initial=-1)) + 1)
    # class by class along all codes, in stretches of classes that fit memory
    for first in range(0, len(distances), stretch := max(1, (1 << 22) // len(of_table))):
        here = (number >= first) & (number < first + stretch)
        differences = np.zeros((min(stretch, len(distances) - first), len(of_table)))
        differences[number[here] - first, code[here]] = share[here]
        differences -= of_table
        distances[first : first + stretch] = np.abs(np.cumsum(differences, axis=1)).sum(axis=1) / (len(of_table) - 1)
    return distances

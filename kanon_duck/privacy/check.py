"""Checks a release against its models, from what readers see, with plain GROUP BYs.

If persons are counted, the private members say which person a row is about, because readers do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from kanon_duck.privacy.diversity import Measure, measure
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.database import Database


@dataclass(frozen=True)
class ClassSizes:
    """Sizes of the equivalence classes that a reader sees.

    Attributes
    ----------
    rows, classes : int
    smallest : int or None
        Rows of the smallest class, None for an empty release.
    violating_rows : int
        Rows in classes of fewer than k rows.
    discernibility : int
        Sum of the squared sizes.
    """

    rows: int
    classes: int
    smallest: int | None
    violating_rows: int
    discernibility: int

    def passes(self, model: PrivacyModel) -> bool:
        """Whether every class has at least k rows."""
        return self.smallest is None or self.smallest >= model.k


def class_sizes(database: Database, release: exp.Query, cells: list[str], model: PrivacyModel) -> ClassSizes:
    """Sizes of the classes of rows that share all the given cells (NULL is a value of its own).

    Parameters
    ----------
    database : Database
    release : sqlglot query
        The released rows.
    cells : list of str
        Released columns of the quasi-identifiers asked about.
    model : PrivacyModel
    """
    classes = (
        exp.select(exp.Count(this=exp.Star()).as_("size"))
        .from_(release.subquery("release"))
        .group_by(*(exp.column(cell, "release", quoted=True) for cell in cells))
    )
    return summary_of(database, classes, model)


def summary_of(database: Database, classes: exp.Query, model: PrivacyModel) -> ClassSizes:
    """Summarize classes from a query that returns the ``size`` of each."""
    summary = exp.select(
        "coalesce(sum(size), 0)",
        "count(*)",
        "min(size)",
        f"coalesce(sum(size) FILTER (WHERE size < {int(model.k)}), 0)",
        "coalesce(sum(CAST(size AS HUGEINT) * size), 0)",
        dialect="duckdb",
    ).from_(classes.subquery("classes"))
    rows, count, smallest, violating, discernibility = database.rows(summary)[0]
    return ClassSizes(int(rows), int(count), smallest, int(violating), int(discernibility))


def released_measures(database: Database, release: exp.Query, cells: list[str], model: PrivacyModel) -> list[Measure]:
    """How far released rows satisfy the models on sensitive values.

    Parameters
    ----------
    database : Database
    release : sqlglot query
        The released rows.
    cells : list of str
        Released columns of the quasi-identifiers asked about.
    model : PrivacyModel
    """
    by_role = {f"class_{place}": cell for place, cell in enumerate(cells)}
    by_role |= {f"sensitive_{place}": attribute.name for place, attribute in enumerate(model.attributes)}
    relation = exp.select(
        *(exp.column(name, "release", quoted=True).as_(role) for role, name in by_role.items())
    ).from_(release.subquery("release"))
    classes = [f"class_{place}" for place in range(len(cells))]
    return measure(database, model, f"({relation.sql(dialect='duckdb')})", classes)

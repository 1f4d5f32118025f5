"""Refuses models that no partition can satisfy, before any work: what all rows together fail, every partition fails."""

from __future__ import annotations

from kanon_duck.errors import KanonError
from kanon_duck.privacy.diversity import Measure, measure
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.database import Database

MEANING = {
    "k": "there are only {achieved:g} persons: the largest possible k is {achieved:g}",
    "l": "{attribute} has only {achieved:g} different {values}: the largest possible l is {achieved:g}",
    "p": "{attribute} has only {achieved:g} different {values} to tell apart: the largest possible p is {achieved:g}",
    "entropy_l": "the entropy of {attribute} is only that of {achieved:.4g} values: no greater entropy_l is possible",
    "recursive_cl": "{attribute} is so skewed that {ratio}",
    "alpha": "one value of {attribute} has a frequency of {achieved:.4g}: no smaller alpha is possible",
}
"""Messages for a model that the whole table fails. The condition for p is Condition 1 of Truta, Campan & Meyer 2007."""


def refuse_impossible(database: Database, model: PrivacyModel, rows: int, table: str) -> None:
    """Refuse a table of which no partition satisfies the models.

    Parameters
    ----------
    database : Database
    model : PrivacyModel
    rows : int
        Of the table.
    table : str
        A relation with columns by role.

    Raises
    ------
    KanonError
        With the model, the attribute, what it has, and the largest setting that is possible.
    """
    model.refuse_too_few(rows)
    for found in measure(database, model, table, []):
        if not found.passed:
            raise KanonError(_told(model, found))


def _told(model: PrivacyModel, found: Measure) -> str:
    """The message that says why a model cannot be satisfied."""
    declared = (
        model.recursive_cl and list(model.recursive_cl) if found.requirement == "recursive_cl" else found.required
    )
    ratio = "its l-th value is missing: name a smaller l"
    if found.achieved is not None:
        ratio = f"c must be above {found.achieved:.4g} for this l"
    values = "value" if found.achieved == 1 else "values"
    meaning = MEANING[found.requirement].format(
        attribute=found.attribute, achieved=found.achieved, ratio=ratio, values=values
    )
    return f"{found.requirement} is {declared}, but {meaning}"

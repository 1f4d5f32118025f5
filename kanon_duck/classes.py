"""The private table of a masked view's classes: their rows, their released cells, and what readers take for one.

Classes with the same cells are one *reader class*, which has a number of its own. Whatever changes, changes for
whole reader classes: rows of classes that a reader cannot tell apart are written, and checked, together.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck import arrow
from kanon_duck.catalog import classes_table, diversity_table, members_table
from kanon_duck.check import ClassSizes, summary_of
from kanon_duck.diversity import PERSON
from kanon_duck.generalization import AT_ROOT, NULL, ROOT, Classes
from kanon_duck.microdata import Microdata, NumericAttribute
from kanon_duck.models import PrivacyModel
from kanon_duck.settings import Settings
from kanon_duck.sql import Database

AFFECTED = "temp.kanon_affected"
"""Reader classes that a refresh has changed, with the ``place`` of each in the order of what readers see; those that
are gone have none."""

ENDED = "temp.kanon_ended"
"""Classes that a refresh has changed, as they were."""

NEW_CLASSES, NUMBERED = "temp.kanon_new_classes", "temp.kanon_numbered"


def create_classes(database: Database, number: int, microdata: Microdata, classes: Classes) -> None:
    """Write all classes of a release."""
    _write_cells(database, f"CREATE OR REPLACE TABLE {classes_table(number)} AS", microdata, classes.cells)


def with_look_alikes(database: Database, number: int, classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of some classes and of all that a reader cannot tell from one of them."""
    table = classes_table(number)
    database.register("some_classes", pa.table({"class": arrow.numbers(classes)}))
    found = database.numpy(
        f"SELECT class FROM {table} WHERE reader_class IN "
        f"(SELECT reader_class FROM {table} SEMI JOIN some_classes USING (class))"
    )
    database.unregister("some_classes")
    return np.union1d(classes, found["class"])


def replace_classes(
    database: Database,
    number: int,
    microdata: Microdata,
    classes: Classes,
    numbers: NDArray[np.int64],
    touched: NDArray[np.int64],
) -> None:
    """Write the classes that a refresh has changed, and note which reader classes that affects.

    Parameters
    ----------
    microdata : Microdata
        The rows of the changed classes.
    classes : Classes
        Their generalization.
    numbers : int64, shape (classes,)
        The number of each of these classes.
    touched : int64
        Numbers of the changed classes, those that are gone and all look-alikes included.
    """
    table = classes_table(number)
    cells = classes.cells.set_column(0, "class", arrow.numbers(numbers))
    _write_cells(database, f"CREATE OR REPLACE TEMPORARY TABLE {NEW_CLASSES} AS", microdata, cells)
    # until they are given numbers, reader classes have their places in the order of the generalizations
    database.execute(f"ALTER TABLE {NEW_CLASSES} RENAME reader_class TO place")
    database.register("touched", pa.table({"class": arrow.numbers(touched)}))
    database.execute(f"CREATE OR REPLACE TEMPORARY TABLE {ENDED} AS FROM {table} SEMI JOIN touched USING (class)")
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {AFFECTED} AS SELECT DISTINCT reader_class, CAST(NULL AS BIGINT) AS place "
        f"FROM {ENDED}"
    )
    first_free = database.value(f"SELECT coalesce(max(reader_class), -1) + 1 FROM {table}")
    database.execute(f"DELETE FROM {table} WHERE class IN (SELECT class FROM touched)")
    database.unregister("touched")
    shown = _cell_columns(microdata)
    same = " AND ".join(f"new.{cell} IS NOT DISTINCT FROM standing.{cell}" for cell in shown)
    database.execute(
        f"""
        CREATE OR REPLACE TEMPORARY TABLE {NUMBERED} AS
        SELECT new.place, coalesce(min(standing.reader_class), {int(first_free)} + new.place) AS reader_class
        FROM {NEW_CLASSES} AS new LEFT JOIN {table} AS standing ON {same}
        GROUP BY new.place
        """
    )
    # classes that new ones now look like end as well: their rows are written anew beside those of the new ones
    database.execute(f"INSERT INTO {ENDED} FROM {table} SEMI JOIN {NUMBERED} USING (reader_class)")
    database.execute(
        f"INSERT INTO {table} BY NAME SELECT new.* EXCLUDE (place), numbered.reader_class "
        f"FROM {NEW_CLASSES} AS new JOIN {NUMBERED} AS numbered USING (place)"
    )
    database.execute(f"INSERT INTO {AFFECTED} BY NAME FROM {NUMBERED}")


def _write_cells(database: Database, statement: str, microdata: Microdata, cells: pa.Table) -> None:
    """Write classes with their cells as readers see them."""
    database.register("class_cells", cells)
    selected, joins = ["class_cells.class", "class_cells.rows", "class_cells.reader_class"], []
    for position, attribute in enumerate(microdata.attributes):
        if isinstance(attribute, NumericAttribute):
            shown, joined = _numeric_cells(position, attribute)
            selected += shown
            joins += joined
        else:
            selected.append(f"label_{position} AS quasi_identifier_{position}")
        selected.append(f"share_{position}")
    database.execute(f"{statement} SELECT {', '.join(selected)} FROM class_cells {' '.join(joins)}")
    database.unregister("class_cells")


def _cell_columns(microdata: Microdata) -> list[str]:
    """Columns of the classes that hold what readers see."""
    return [
        f"quasi_identifier_{place}{suffix}"
        for place, attribute in enumerate(microdata.attributes)
        for suffix in (("", "_min", "_max") if isinstance(attribute, NumericAttribute) else ("",))
    ]


def _numeric_cells(position: int, attribute: NumericAttribute) -> tuple[list[str], list[str]]:
    """SQL for the three cells of a numeric quasi-identifier, and the joins it needs."""
    kind = f"kind_{position}"
    joins: list[str] = []
    bounds = []
    for end in ("low", "high"):
        if attribute.ranks is None:
            steps = f"(CAST({end}_{position} AS HUGEINT) + ({attribute.base}))"
        else:
            joins.append(
                f"LEFT JOIN {attribute.ranks} AS {end}_step_{position} ON {end}_step_{position}.code = {end}_{position}"
            )
            steps = f"{end}_step_{position}.step"
        bounds.append(attribute.step.bound(steps))
    low, high = bounds
    shown = [attribute.step.text(bound) for bound in bounds]
    label = (
        f"CASE WHEN {kind} = {NULL} THEN NULL WHEN {kind} = {AT_ROOT} THEN '{ROOT}' "
        f"WHEN low_{position} = high_{position} THEN {shown[0]} "
        f"ELSE '[' || {shown[0]} || ', ' || {shown[1]} || ']' END"
    )
    hidden = f"CASE WHEN {kind} NOT IN ({NULL}, {AT_ROOT}) THEN"
    name = f"quasi_identifier_{position}"
    return [
        f"{label} AS {name}",
        f"{hidden} {low} END AS {name}_min",
        f"{hidden} {high} END AS {name}_max",
    ], joins


def restate_shares(database: Database, number: int, place: int, hierarchy: str) -> None:
    """Give labels of a hierarchy that is a tree the share that they lose at their present height.

    What readers see of the classes stays; the next release tells its loss by the tree as it is then.
    """
    database.execute(
        f"""
        UPDATE {classes_table(number)} SET share_{place} = nodes.share
        FROM (
            SELECT DISTINCT unnest(leaves.path) AS label, unnest(leaves.heights) / stored.height AS share
            FROM kanon_private.hierarchy_leaves AS leaves JOIN kanon_private.hierarchies AS stored USING (hierarchy)
            WHERE stored.hierarchy = ? AND stored.height > 0
        ) AS nodes
        WHERE quasi_identifier_{place} = nodes.label
        """,
        [hierarchy],
    )


def class_summary(database: Database, number: int, model: PrivacyModel) -> ClassSizes:
    """Sizes of the reader classes."""
    sizes = exp.select("sum(rows) AS size").from_(exp.to_table(classes_table(number))).group_by("reader_class")
    return summary_of(database, sizes, model)


def fewest_persons(database: Database, number: int) -> int:
    """The fewest persons that the rows of a reader class are about."""
    persons = (
        f"SELECT count(DISTINCT {PERSON}) AS persons FROM {members_table(number)} "
        f"JOIN {classes_table(number)} USING (class) GROUP BY reader_class"
    )
    return int(database.value(f"SELECT min(persons) FROM ({persons})"))


def class_losses(database: Database, number: int, settings: Settings) -> tuple[dict[str, float], float]:
    """Information loss of each quasi-identifier, and their sum."""
    names = [each.name for each in settings.quasi_identifiers]
    shares = ", ".join(f"share_{place}" for place in range(len(names)))
    data = database.numpy(f"SELECT rows, {shares} FROM {classes_table(number)} ORDER BY class")
    losses = {name: float((data["rows"] * data[f"share_{place}"]).sum()) for place, name in enumerate(names)}
    return losses, math.fsum(losses.values())


def create_diversity(database: Database, number: int, settings: Settings) -> None:
    """Count the sensitive values of every reader class; NULL counts as one value."""
    database.execute(f"CREATE OR REPLACE TABLE {diversity_table(number)} AS {_diversity(number, settings, '')}")


def replace_diversity(database: Database, number: int, settings: Settings) -> None:
    """Count again where a refresh has changed something."""
    table = diversity_table(number)
    affected = f"SEMI JOIN {AFFECTED} USING (reader_class)"
    database.execute(f"DELETE FROM {table} WHERE reader_class IN (SELECT reader_class FROM {AFFECTED})")
    database.execute(f"INSERT INTO {table} {_diversity(number, settings, affected)}")


def _diversity(number: int, settings: Settings, condition: str) -> str:
    """SQL for distinct values and greatest frequency, by reader class and sensitive attribute."""
    of_attribute = [
        f"""
        SELECT reader_class, {place} AS attribute, count(*) AS distinct_values,
               CAST(max(frequency) / sum(frequency) AS DOUBLE) AS max_frequency
        FROM (
            SELECT reader_class, count(*) AS frequency
            FROM {members_table(number)} JOIN {classes_table(number)} USING (class) {condition}
            GROUP BY reader_class, sensitive_{place}
        ) GROUP BY reader_class
        """
        for place in range(len(settings.sensitive))
    ]
    nothing = (
        "SELECT CAST(NULL AS BIGINT) AS reader_class, 0 AS attribute, CAST(0 AS BIGINT) AS distinct_values, "
        "CAST(0 AS DOUBLE) AS max_frequency WHERE false"
    )
    return " UNION ALL ".join(of_attribute) or nothing


def least_diversity(database: Database, number: int) -> tuple[int | None, float | None]:
    """Least number of distinct sensitive values, and highest frequency of one, over all reader classes."""
    return database.rows(f"SELECT min(distinct_values), max(max_frequency) FROM {diversity_table(number)}")[0]

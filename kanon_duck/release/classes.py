"""The private table of a masked view's classes: rows, released cells, and which look the same to readers.

Classes with the same cells are one *reader class*, which has a number of its own. Whatever changes, changes for
whole reader classes: rows of classes that a reader cannot tell apart are written, and checked, together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.column_names import cells
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import classes_table, diversity_table, members_table
from kanon_duck.encoding.microdata import Microdata, NumericAttribute
from kanon_duck.privacy.check import ClassSizes, summary_of
from kanon_duck.privacy.diversity import PERSON
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.release.generalization import AT_ROOT, NULL, ROOT, Classes
from kanon_duck.release.slots import slot_rows
from kanon_duck.runtime import arrow
from kanon_duck.runtime.database import Database


@dataclass(frozen=True)
class Ended:
    """Reader classes that a release ends.

    Attributes
    ----------
    table : str
        Temporary table of them (``reader_class``, ``class``, ``successor``), each with one of its classes, whose cells
        are its own. Those that stay as they are, but look like one that is new, have this for ``successor``: their
        rows are written anew beside its rows.
    view_number : int
    release : int
        The first without them.
    """

    table: str
    view_number: int
    release: int

    def classes(self) -> str:
        """A relation of all classes that are part of them, as they were."""
        ended = f"{classes_table(self.view_number)} SEMI JOIN {self.table} USING (reader_class)"
        return f"(SELECT * FROM {ended} WHERE from_release < {int(self.release)})"

    def one_of_each(self) -> str:
        """A relation of one class of each."""
        one = f"{classes_table(self.view_number)} SEMI JOIN {self.table} USING (reader_class, class)"
        return f"(SELECT * FROM {one} WHERE from_release < {int(self.release)})"


def create_classes(database: Database, view_number: int, microdata: Microdata, classes: Classes, release: int) -> None:
    """Write all classes of a release."""
    table = classes_table(view_number)
    _write_cells(database, f"CREATE OR REPLACE TABLE {table} AS", "reader_class", microdata, classes.cells, release)


def with_look_alikes(database: Database, view_number: int, classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of all classes that a reader cannot tell from one of some classes, themselves included if they stand."""
    table = classes_table(view_number)
    database.register("some_classes", pa.table({"class": arrow.numbers(classes)}))
    found = database.numpy(
        f"SELECT class FROM {table} WHERE reader_class IN "
        f"(SELECT reader_class FROM {table} SEMI JOIN some_classes USING (class))"
    )
    database.unregister("some_classes")
    return found["class"]


def add_classes(
    database: Database,
    view_number: int,
    microdata: Microdata,
    classes: Classes,
    numbers: NDArray[np.int64],
    touched: NDArray[np.int64],
    release: int,
) -> Ended:
    """Write the classes that a refresh has changed beside those that end, and note which reader classes that ends.

    New reader classes have numbers that none has had, in the order of the generalizations.

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
    release : int
        The first that shows them.

    Returns
    -------
    Ended
    """
    table = classes_table(view_number)
    cells = classes.cells.set_column(0, "class", arrow.numbers(numbers))
    unused = f"reader_class + (SELECT coalesce(max(reader_class), -1) + 1 FROM {table})"
    _write_cells(database, f"INSERT INTO {table} BY NAME", unused, microdata, cells, release)
    ended = Ended("temp.kanon_ended", view_number, release)
    same = " AND ".join(f"new.{cell} IS NOT DISTINCT FROM standing.{cell}" for cell in _cell_columns(microdata))
    database.register("touched", pa.table({"class": arrow.numbers(touched)}))
    database.execute(
        f"""
        CREATE OR REPLACE TEMPORARY TABLE {ended.table} AS
        {_ended(f"{table} SEMI JOIN touched USING (class) WHERE from_release < {int(release)}")}
        UNION ALL
        SELECT standing.reader_class, min(standing.class), new.reader_class
        FROM {table} AS new JOIN {table} AS standing ON {same}
        WHERE new.from_release = {int(release)} AND standing.reader_class <> new.reader_class
            AND standing.class NOT IN (FROM touched)
        GROUP BY standing.reader_class, new.reader_class
        """
    )
    database.unregister("touched")
    return ended


def end_all_classes(database: Database, view_number: int, release: int) -> Ended:
    """Note that a release ends all reader classes, as one from scratch does."""
    ended = Ended("temp.kanon_ended", view_number, release)
    database.execute(f"CREATE OR REPLACE TEMPORARY TABLE {ended.table} AS {_ended(classes_table(view_number))}")
    return ended


def end_no_classes(database: Database, view_number: int, release: int) -> Ended:
    """Note that a release ends no reader class, and shows no new one."""
    ended = Ended("temp.kanon_ended", view_number, release)
    none = _ended(f"{classes_table(view_number)} WHERE false")
    database.execute(f"CREATE OR REPLACE TEMPORARY TABLE {ended.table} AS {none}")
    return ended


def _ended(classes: str) -> str:
    """SQL for the reader classes that some classes are, as `Ended` has those that nothing succeeds."""
    return (
        "SELECT reader_class, min(class) AS class, CAST(NULL AS BIGINT) AS successor "
        f"FROM {classes} GROUP BY reader_class"
    )


def remove_ended_classes(database: Database, ended: Ended) -> None:
    """Leave the classes of a release alone in the table, without those that it ends."""
    table = classes_table(ended.view_number)
    gone = f"SELECT reader_class FROM {ended.table} WHERE successor IS NULL"
    database.execute(f"DELETE FROM {table} WHERE reader_class IN ({gone})")
    database.execute(
        f"UPDATE {table} AS classes SET reader_class = successor, from_release = {int(ended.release)} "
        f"FROM {ended.table} AS ended WHERE classes.reader_class = ended.reader_class"
    )


def _write_cells(
    database: Database, statement: str, reader_class: str, microdata: Microdata, cells: pa.Table, release: int
) -> None:
    """Write classes with their cells as readers see them, and the first release that shows them so."""
    database.register("class_cells", cells)
    selected = ["class_cells.class", "class_cells.rows", f"{reader_class} AS reader_class"]
    if "people" in cells.column_names:
        selected += ["class_cells.people", "CAST(NULL AS DOUBLE) AS weight"]
    selected.append(f"CAST({int(release)} AS BIGINT) AS from_release")
    joins: list[str] = []
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
        cell
        for place, attribute in enumerate(microdata.attributes)
        for cell in cells(f"quasi_identifier_{place}", isinstance(attribute, NumericAttribute))
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


def with_contents(
    classes: Classes, numbers: NDArray[np.int64], rows: NDArray[np.int64], people: NDArray[np.int64] | None
) -> Classes:
    """The classes with other numbers of rows than those that they were generalized from, by number of the class.

    Parameters
    ----------
    people : int64, optional
        People among the rows, where some may be of nobody.
    """
    cells = classes.cells.set_column(classes.cells.column_names.index("rows"), "rows", arrow.numbers(rows[numbers]))
    if people is not None:
        cells = cells.append_column("people", arrow.numbers(people[numbers]))
    return replace(classes, sizes=rows[numbers], cells=cells)


def weigh_classes(database: Database, view_number: int, release: int) -> None:
    """Give the reader classes that a release is the first to show the share of people among their rows.

    Guarantee: over the rows of a class the weights add up to its people.
    """
    table = classes_table(view_number)
    new = f"WHERE from_release = {int(release)}"
    database.execute(
        f"UPDATE {table} AS classes SET weight = shares.weight FROM (SELECT reader_class, "
        f"CAST(sum(people) AS DOUBLE) / sum(rows) AS weight FROM {table} {new} GROUP BY reader_class) AS shares "
        "WHERE classes.reader_class = shares.reader_class"
    )


def restate_shares(database: Database, view_number: int, place: int, hierarchy: str) -> None:
    """Give labels of a hierarchy that is a tree the share that they lose at their present height.

    What readers see of the classes stays; the next release tells its loss by the tree as it is then.
    """
    database.execute(
        f"""
        UPDATE {classes_table(view_number)} SET share_{place} = nodes.share
        FROM (
            SELECT DISTINCT unnest(leaves.path) AS label, unnest(leaves.heights) / stored.height AS share
            FROM kanon_private.hierarchy_leaves AS leaves JOIN kanon_private.hierarchies AS stored USING (hierarchy)
            WHERE stored.hierarchy = ? AND stored.height > 0
        ) AS nodes
        WHERE quasi_identifier_{place} = nodes.label
        """,
        [hierarchy],
    )


def class_summary(database: Database, view_number: int, model: PrivacyModel) -> ClassSizes:
    """Sizes of the reader classes."""
    sizes = exp.select("sum(rows) AS size").from_(exp.to_table(classes_table(view_number))).group_by("reader_class")
    return summary_of(database, sizes, model)


def released_people(view_number: int) -> str:
    """A relation of the members that are released, beside their classes."""
    return f"(FROM {members_table(view_number)} JOIN {classes_table(view_number)} USING (class))"


def class_losses(database: Database, view_number: int, settings: Settings) -> tuple[dict[str, float], float]:
    """Information loss of each quasi-identifier, and their sum."""
    names = [each.name for each in settings.quasi_identifiers]
    shares = ", ".join(f"share_{place}" for place in range(len(names)))
    data = database.numpy(f"SELECT class, rows, {shares} FROM {classes_table(view_number)}")
    of_class = np.zeros(int(data["class"].max(initial=-1)) + 1)
    losses = {}
    for place, name in enumerate(names):
        of_class[data["class"]] = data["rows"] * data[f"share_{place}"]
        losses[name] = float(of_class.sum())  # in the order of the numbers, on which its last digits depend
    return losses, math.fsum(losses.values())


def create_diversity(database: Database, view_number: int, settings: Settings) -> None:
    """Count the sensitive values of every reader class; NULL counts as one value."""
    database.execute(
        f"CREATE OR REPLACE TABLE {diversity_table(view_number)} AS {_diversity(view_number, settings, '')}"
    )


def replace_diversity(database: Database, settings: Settings, ended: Ended) -> None:
    """Count again in the reader classes that a release is the first to show."""
    table = diversity_table(ended.view_number)
    database.execute(f"DELETE FROM {table} WHERE reader_class IN (SELECT reader_class FROM {ended.table})")
    changed = f"WHERE from_release = {int(ended.release)}"
    database.execute(f"INSERT INTO {table} {_diversity(ended.view_number, settings, changed)}")


def released_rows(view_number: int, settings: Settings) -> str:
    """A relation of released rows with their class and what is released of them as it is.

    They are those of members; in a secure masked view those of slots, some of which may be of nobody.
    """
    return slot_rows(view_number, settings) if settings.secure else members_table(view_number)


def _diversity(view_number: int, settings: Settings, condition: str) -> str:
    """SQL for distinct values and greatest frequency, by reader class and sensitive attribute."""
    frequency, size = "count(*) AS frequency", "sum(frequency)"
    if settings.model.unit is not None:  # a person may have several values
        frequency = f"count(DISTINCT {PERSON}) AS frequency, list(DISTINCT {PERSON}) AS persons"
        size = "len(list_distinct(flatten(list(persons))))"
    released = released_rows(view_number, settings)
    of_attribute = [
        f"""
        SELECT reader_class, {place} AS attribute, count(*) AS distinct_values,
               CAST(max(frequency) / {size} AS DOUBLE) AS max_frequency
        FROM (
            SELECT reader_class, {frequency}
            FROM (FROM {released} JOIN {classes_table(view_number)} USING (class)) {condition}
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


def least_diversity(database: Database, view_number: int) -> tuple[int | None, float | None]:
    """Least number of distinct sensitive values, and highest frequency of one, over all reader classes."""
    return database.rows(f"SELECT min(distinct_values), max(max_frequency) FROM {diversity_table(view_number)}")[0]

"""Publishes a partition: private state, released rows, the check of what readers will see, the masked view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.arrow import numbers
from kanon_duck.catalog import classes_table, members_table, released_table
from kanon_duck.check import ClassSizes, class_sizes
from kanon_duck.errors import KanonError
from kanon_duck.generalization import AT_ROOT, NULL, ROOT, Classes
from kanon_duck.microdata import SNAPSHOT, Microdata, NumericAttribute
from kanon_duck.settings import Settings
from kanon_duck.sql import Database


def store(
    database: Database,
    number: int,
    settings: Settings,
    microdata: Microdata,
    labels: NDArray[np.int64],
    classes: Classes,
) -> None:
    """Write the private state of a masked view: its classes with their released cells, and its members.

    A member is its key, its sensitive and kept values, and its class (NULL: left out).
    """
    database.register("class_cells", classes.cells)
    selected, joins = ["class_cells.class", "class_cells.rows", "class_cells.reader_class"], []
    for position, attribute in enumerate(microdata.attributes):
        if isinstance(attribute, NumericAttribute):
            cells, joined = _numeric_cells(position, attribute)
            selected += cells
            joins += joined
        else:
            selected.append(f"label_{position} AS quasi_identifier_{position}")
    database.execute(
        f"CREATE TABLE {classes_table(number)} AS SELECT {', '.join(selected)} FROM class_cells {' '.join(joins)}"
    )
    database.unregister("class_cells")
    placed = microdata.as_in_snapshot(labels)
    database.register("membership", pa.table({"class": numbers(placed, placed < 0)}))
    roles = settings.roles()
    private = [f"{role}_{place}" for role in ("key", "sensitive", "kept") for place in range(len(roles[role]))]
    database.execute(
        f"CREATE TABLE {members_table(number)} AS SELECT {', '.join(private)}, membership.class "
        f"FROM {SNAPSHOT} AS snapshot POSITIONAL JOIN membership"
    )
    database.unregister("membership")


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


def released_columns(settings: Settings) -> list[tuple[str, exp.Column]]:
    """Names of the released columns, in the source's order, and the private columns they come from."""
    quasi = {each.name: (number, each) for number, each in enumerate(settings.quasi_identifiers)}
    others = {
        name: f"{role}_{number}"
        for role, columns in (("sensitive", list(settings.sensitive)), ("kept", settings.keep))
        for number, name in enumerate(columns)
    }
    columns: list[tuple[str, exp.Column]] = []
    for name in settings.columns:
        if name in quasi:
            number, declared = quasi[name]
            for suffix in ("", "_min", "_max") if declared.hierarchy is None else ("",):
                columns.append((name + suffix, exp.column(f"quasi_identifier_{number}{suffix}", "classes")))
        elif name in others:
            columns.append((name, exp.column(others[name], "members")))
    return columns


def publish(database: Database, number: int, settings: Settings, catalog: str) -> ClassSizes:
    """Write the released rows, check them as a reader would, and only then make the masked view.

    Nothing of the source's order reaches readers: the rows are sorted by what is released and by nothing
    else. They stand in a new table, so no statistic of it speaks of rows that are not there.

    Raises
    ------
    KanonError
        When the released rows break the declared model; the view is not made then.
    """
    columns = released_columns(settings)
    own = [f"{role}_{place}" for role in ("sensitive", "kept") for place in range(len(settings.roles()[role]))]
    ordered = (  # the sort carries no cells: they are joined to its result
        exp.select("members.class", *(f"members.{name}" for name in own))
        .from_(exp.to_table(members_table(number)).as_("members"))
        .join(exp.to_table(classes_table(number)).as_("classes"), on="classes.class = members.class")
        .order_by("classes.reader_class", *(f"members.{name}" for name in own))
    )
    query = (
        exp.select(*(source.as_(name, quoted=True) for name, source in columns))
        .from_(ordered.subquery("members"))
        .join(exp.to_table(classes_table(number)).as_("classes"), on="classes.class = members.class")
    )
    table = released_table(settings.name)
    database.execute(exp.Create(this=table, kind="TABLE", expression=query))
    released = exp.select(*(exp.column(name, quoted=True) for name, _ in columns)).from_(table)
    cells = [name for name, source in columns if source.table == "classes"]
    sizes = class_sizes(database, released, cells, settings.model)
    # Every released class has at least k rows as a reader sees it, or the release is never visible.
    if not sizes.passes(settings.model):
        raise KanonError(
            f"the release would have a class of {sizes.smallest} rows where k is {settings.model.k}: nothing was "
            "released; please report this as an error of kanon_duck"
        )
    view = exp.table_(settings.view[1], db=settings.view[0], catalog=catalog, quoted=True)
    database.execute(exp.Create(this=view, kind="VIEW", expression=released))
    return sizes


def diversity(database: Database, number: int, settings: Settings) -> tuple[int | None, float | None]:
    """Least number of distinct values, and highest frequency of one, over readers' classes and sensitive attributes.

    NULL counts as one value. Without a sensitive attribute both are None.
    """
    found = [
        database.rows(
            f"""
            WITH frequencies AS (
                SELECT reader_class, count(*) AS frequency
                FROM {members_table(number)} JOIN {classes_table(number)} USING (class)
                GROUP BY reader_class, sensitive_{position}
            ), of_class AS (
                SELECT count(*) AS distinct_values, max(frequency) / sum(frequency) AS share
                FROM frequencies GROUP BY reader_class
            )
            SELECT min(distinct_values), max(share) FROM of_class
            """
        )[0]
        for position in range(len(settings.sensitive))
    ]
    if not found:
        return None, None
    return min(least for least, _ in found), max(most for _, most in found)


def in_force(microdata: Microdata, settings: Settings, database: Database) -> dict[str, dict[str, Any]]:
    """Type or hierarchy, step and domain of each quasi-identifier, as the release was made with them."""
    described: dict[str, dict[str, Any]] = {}
    for declared, attribute in zip(settings.quasi_identifiers, microdata.attributes, strict=True):
        if isinstance(attribute, NumericAttribute):
            described[declared.name] = {
                "type": "numeric",
                "step": str(attribute.step.size),
                "domain": [_end(database, attribute, code) for code in attribute.domain],
            }
        else:
            described[declared.name] = {"type": declared.hierarchy}
    return described


def _end(database: Database, attribute: NumericAttribute, code: int) -> str:
    """An end of a domain, as text."""
    steps = f"CAST({code + attribute.base} AS HUGEINT)"
    if attribute.ranks is not None:
        steps = f"(SELECT step FROM {attribute.ranks} WHERE code = {code})"
    return str(database.value(f"SELECT {attribute.step.text(attribute.step.bound(steps))}"))

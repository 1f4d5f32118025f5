"""Encodes sensitive values: which values the models tell apart, and how far apart they are.

Two rows have the same code if they have the same value (compared by hash; NULL is one value). A *strong value* is the
first protected node on the way from the hierarchy's root to the value, or the value itself if there is none (Truta,
Campan & Meyer 2007, section 2). For distances, a value with a hierarchy has one code for each level below the root, a
number or date without a hierarchy has a code that keeps the order (NULL comes first), and any other value has a code of
its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.encoding.microdata import Sensitive
from kanon_duck.encoding.numeric import UNITS_PER_DAY, is_numeric
from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import FLAT, bind, canonical_text, height, remedy
from kanon_duck.privacy.models import PrivacyModel, SensitiveAttribute
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.arrow import texts
from kanon_duck.runtime.database import Database

Reading = tuple[list[str], list[str]]
"""SQL for the codes of a relation's rows: what to select, and the joins that it needs."""


def node_table(place: int) -> str:
    """Temporary table of the nodes above each value of a sensitive attribute: value, strong, level_0, ..."""
    return f"temp.kanon_nodes_{place}"


def has_nodes(model: PrivacyModel, attribute: SensitiveAttribute) -> bool:
    """Whether a model needs nodes of a sensitive attribute's hierarchy."""
    return bool(attribute.protected) or (model.t is not None and attribute.hierarchy is not None)


def is_ordered(attribute: SensitiveAttribute) -> bool:
    """Whether distances follow the order of an attribute's values."""
    return attribute.hierarchy is None and is_numeric(attribute.column_type)


def find_nodes(database: Database, model: PrivacyModel, relation: str) -> None:
    """Write the nodes above the sensitive values of a relation with columns by role, if a model needs them.

    Raises
    ------
    KanonError
        When a value has no leaf: its place is never guessed.
    """
    for place, attribute in enumerate(model.attributes):
        if not has_nodes(model, attribute):
            continue
        text = canonical_text(exp.column(f"sensitive_{place}"), attribute.column_type).sql(dialect="duckdb")
        values = database.arrow(
            f"SELECT DISTINCT {text} AS value FROM {relation} WHERE sensitive_{place} IS NOT NULL ORDER BY value"
        )
        bound = bind(database, str(attribute.hierarchy), values.column("value"))
        if bound.missing:
            raise KanonError(_unknown(database, attribute, bound.missing))
        labels = [of_level.to_pylist() for of_level in bound.level_labels]
        paths = [[label[code] for code, label in zip(codes, labels, strict=True)] for codes in bound.level_codes]
        known = bound.values.to_pylist()
        strong = [_first_protected(path, value, attribute.protected) for value, path in zip(known, paths, strict=True)]
        columns = {"value": texts(known), "strong": texts(strong)}
        columns |= {f"level_{level}": texts([path[level] for path in paths]) for level in range(bound.height)}
        database.register("nodes", pa.table(columns))
        database.execute(f"CREATE OR REPLACE TEMPORARY TABLE {node_table(place)} AS FROM nodes")
        database.unregister("nodes")


def _unknown(database: Database, attribute: SensitiveAttribute, missing: list[str]) -> str:
    """The message about sensitive values without a leaf."""
    hierarchy = str(attribute.hierarchy)
    advice = f"{remedy(database, hierarchy, missing)} or correct the source" if hierarchy != FLAT else "replace them"
    shown = ", ".join(map(read.shown, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return f"sensitive.{attribute.name} holds {shown}, without a leaf in hierarchy {hierarchy}: {advice}"


def _first_protected(path: list[str], value: str, protected: list[str]) -> str:
    """The strong value of a value whose path runs from it to below the root."""
    return next((label for label in reversed(path) if label in protected), value)


def reading(database: Database, model: PrivacyModel, table: str, relation: str) -> Reading:
    """SQL that reads the codes of a table with columns by role, named ``relation``; empty if no model needs codes.

    Finds the nodes above its values (see `find_nodes`), which the SQL joins.
    """
    find_nodes(database, model, table)
    selected, joins = [], []
    if model.unit is not None:
        selected.append(f"hash({relation}.unit_0) AS person")
    for place, attribute in enumerate(model.attributes if model.on_values else ()):
        column = f"{relation}.sensitive_{place}"
        selected.append(f"hash({column}) AS value_{place}")
        if has_nodes(model, attribute):
            nodes = f"nodes_{place}"
            joins.append(joined_nodes(place, attribute, relation))
            selected.append(f"hash({nodes}.strong) AS strong_{place}")
            if model.t is not None:
                levels = range(height(database, str(attribute.hierarchy)))
                selected += [f"hash({nodes}.level_{level}) AS level_{place}_{level}" for level in levels]
        elif model.t is not None and is_ordered(attribute):
            selected.append(f"{position(column, attribute.column_type)} AS position_{place}")
    return selected, joins


def joined_nodes(place: int, attribute: SensitiveAttribute, relation: str) -> str:
    """SQL that joins the nodes above a sensitive attribute's values, as ``nodes_<place>``, to a relation."""
    text = canonical_text(exp.column(f"sensitive_{place}", relation), attribute.column_type).sql(dialect="duckdb")
    return f"LEFT JOIN {node_table(place)} AS nodes_{place} ON nodes_{place}.value = {text}"


def position(column: str, column_type: str) -> str:
    """SQL for a number that keeps the order of an ordered type; NULL comes first."""
    instant = f"epoch_us(CAST({column} AS TIMESTAMP))" if column_type in UNITS_PER_DAY else column
    return f"coalesce(CAST({instant} AS DOUBLE), CAST('-infinity' AS DOUBLE))"


def codes_of(model: PrivacyModel, data: dict[str, Any]) -> Sensitive | None:
    """The codes of rows that were read with the SQL of `reading`; None if only the number of rows matters."""
    if model.on_size_alone:
        return None
    rows = len(next(iter(data.values())))
    values: list[NDArray[np.int64]] = []
    strong: list[NDArray[np.int64]] = []
    levels: list[NDArray[np.int64]] = []
    attribute: list[int] = []
    ordered: list[bool] = []
    for place, of_attribute in enumerate(model.attributes if model.on_values else ()):
        values.append(_as_integers(data[f"value_{place}"]))
        strong.append(_as_integers(data[f"strong_{place}"]) if of_attribute.protected else values[-1])
        if model.t is None:
            continue
        columns = [column for column in data if column.startswith(f"level_{place}_")]
        if columns:
            levels += [_as_integers(data[column]) for column in columns]
        elif is_ordered(of_attribute):
            levels.append(_in_order(np.asarray(data[f"position_{place}"], np.float64)))
        else:
            levels.append(values[-1])
        attribute += [place] * max(len(columns), 1)
        ordered += [is_ordered(of_attribute)] * max(len(columns), 1)
    return Sensitive(
        persons=np.empty(0, np.int64) if model.unit is None else _as_integers(data["person"]),
        values=_stacked(values, rows),
        strong=_stacked(strong, rows),
        levels=_stacked(levels, rows),
        attribute=tuple(attribute),
        ordered=tuple(ordered),
    )


def narrowed(sensitive: Sensitive | None, model: PrivacyModel) -> Sensitive | None:
    """Of codes that were read for several models, those that one model needs, as `codes_of` would return them."""
    if sensitive is None or model.on_size_alone:
        return None
    attributes = len(sensitive.values) if model.on_values else 0
    columns = len(sensitive.levels) if model.t is not None else 0
    return replace(
        sensitive,
        values=sensitive.values[:attributes],
        strong=sensitive.strong[:attributes],
        levels=sensitive.levels[:columns],
        attribute=sensitive.attribute[:columns],
        ordered=sensitive.ordered[:columns],
    )


def _as_integers(hashes: Any) -> NDArray[np.int64]:
    """64-bit hashes as signed numbers."""
    return np.asarray(hashes, np.uint64).view(np.int64)


def _in_order(positions: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers in the order of floats: the bits of negative ones count downwards."""
    bits = (positions + 0.0).view(np.int64)  # -0.0 is 0.0
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _stacked(columns: list[NDArray[np.int64]], rows: int) -> NDArray[np.int64]:
    """Columns as the rows of a matrix."""
    return np.array(columns, np.int64).reshape(len(columns), rows)

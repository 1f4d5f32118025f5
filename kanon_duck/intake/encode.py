"""Encodes source values: numbers as steps, categories as leaves of hierarchies.

Values that are new at a refresh get codes after those that are known: a code never changes its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.columns import private_names
from kanon_duck.catalog.settings import QuasiIdentifier, Settings
from kanon_duck.encoding.microdata import Attribute, CategoricalAttribute, Microdata, NumericAttribute, encoding_of
from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import BoundHierarchy, bind, canonical_text, extended, remedy, resembling_leaves
from kanon_duck.intake.numeric_columns import NumericPlan, far_warning, numeric_attribute, plan_numeric
from kanon_duck.intake.snapshot import refuse_repeated_keys
from kanon_duck.privacy.sensitive import codes_of, reading
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.arrow import array, filled, in_one_piece, texts
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.parallel import each
from kanon_duck.runtime.sorting import sort_rows

NULL_LEAF, UNKNOWN_LEAF = -1, -2


@dataclass(frozen=True)
class KnownCodes:
    """What earlier releases of a masked view have coded.

    Attributes
    ----------
    hierarchies : dict
        By the place of the quasi-identifier.
    tables : list of str
        Tables of the members, and of codes that they once had: their steps take part where codes are ranks.
    """

    hierarchies: dict[int, BoundHierarchy]
    tables: list[str]


class EncodedSnapshot(NamedTuple):
    """The rows of the snapshot, encoded.

    Attributes
    ----------
    table : str
        The snapshot's.
    microdata : Microdata
        Its rows stand in the order of a hash of their identity, which neither the source's order nor the
        number of threads can change.
    snapshot_row : int64, shape (rows,)
        Which row of the snapshot each of them is, from 0 on.
    unknown : bool, shape (rows,)
        Whether a row has a value that cannot be shown: one without a leaf, or without a place in an interval.
    warnings : list of str
        What the owner should know about the data.
    """

    table: str
    microdata: Microdata
    snapshot_row: NDArray[np.int64]
    unknown: NDArray[np.bool_]
    warnings: list[str]


def encode(database: Database, settings: Settings, snapshot: str, known: KnownCodes | None = None) -> EncodedSnapshot:
    """Encode the quasi-identifiers of the snapshot.

    Cost: one pass over the snapshot for the domains, one to read codes into NumPy arrays.

    Parameters
    ----------
    database : Database
    settings : Settings
    snapshot : str
        Table of the rows, as `take_snapshot` makes it.
    known : KnownCodes, optional
        For rows that come to those of earlier releases: their codes go on from the codes there are, a value
        that its hierarchy does not know gets ``UNKNOWN_LEAF``, and a number may have no place in an interval.

    Raises
    ------
    KanonError
        When the key is not unique, a value has no leaf in its hierarchy, a float is NaN or infinite, or a step
        is missing.
    """
    warnings: list[str] = []
    selected = ["snapshot.rowid AS row", f"hash({_identity(settings)}) AS identity"]
    joins: list[str] = []
    tables = None if known is None else known.tables
    plans: dict[int, NumericPlan] = {}
    for place, quasi_identifier in enumerate(settings.quasi_identifiers):
        if quasi_identifier.hierarchy is None:
            plans[place] = plan_numeric(database, snapshot, place, quasi_identifier, tables, warnings)
            selected += plans[place].selected
            joins += plans[place].joins
        else:
            text = canonical_text(exp.column(f"quasi_identifier_{place}", "snapshot"), quasi_identifier.column_type)
            selected.append(f"{text.sql(dialect='duckdb')} AS text_{place}")
    of_models, joined = reading(database, settings.model, snapshot, "snapshot")
    query = f"SELECT {', '.join(selected + of_models)} FROM {snapshot} AS snapshot {' '.join(joins + joined)}"
    data, text_columns = _read(database, query)
    order, repeated = sort_rows([data.pop("identity")])  # without a key, rows of equal identity are interchangeable
    if settings.key and repeated.any():
        refuse_repeated_keys(database, settings, snapshot)
    bound = {
        place: _bind(database, snapshot, place, settings.quasi_identifiers[place], known, column.different)
        for place, column in text_columns.items()
    }

    def encoded(place: int) -> Attribute:
        name = settings.quasi_identifiers[place].name
        if place in plans:
            return numeric_attribute(name, place, plans[place], data, order)
        hierarchy, leaf = bound[place]
        return CategoricalAttribute(name, hierarchy, leaf.take(text_columns[place].numbers.take(order)))

    attributes = each(encoded, range(len(settings.quasi_identifiers)))
    for one in attributes:
        if isinstance(one, NumericAttribute) and (far := far_warning(database, one)):
            warnings.append(far)
    encoding = encoding_of(attributes, settings.weights_in_order(), len(order))
    sensitive = codes_of(settings.model, data)
    if sensitive is not None:
        sensitive = sensitive.take(order)
    row = data["row"][order]
    row -= row.min(initial=np.iinfo(np.int64).max)  # rowids of new rows in a transaction are large, but have no gaps
    unknown = np.zeros(len(order), bool)
    for place, attribute in enumerate(attributes):
        if isinstance(attribute, CategoricalAttribute):
            unknown |= attribute.leaf == UNKNOWN_LEAF
        elif f"unfit_{place}" in data:
            unknown |= data[f"unfit_{place}"][order]
    return EncodedSnapshot(snapshot, Microdata(attributes, encoding, sensitive), row, unknown, warnings)


def _identity(settings: Settings) -> str:
    """SQL for what tells rows apart: the key, or the whole row where there is none."""
    names = private_names(settings, *(["key"] if settings.key else settings.roles()))
    return ", ".join(f"snapshot.{name}" for name in names)


class Texts(NamedTuple):
    """A column of texts: the different ones, and which of them each row has; NULL has a number after them."""

    numbers: NDArray[np.int32]
    different: pa.Array


def _read(database: Database, query: str) -> tuple[dict[str, NDArray[Any]], dict[int, Texts]]:
    """The result of a query: columns of numbers by name, columns of texts by the number in their names."""
    table = database.arrow(query)
    names = [name for name in table.column_names if name.startswith("text_")]
    texts = each(_numbered, [table[name] for name in names])
    data = {name: array(table[name]) for name in table.column_names if name not in names}
    return data, {int(name.removeprefix("text_")): column for name, column in zip(names, texts, strict=True)}


def _numbered(column: pa.ChunkedArray) -> Texts:
    """The texts of a column by number."""
    coded = in_one_piece(column.dictionary_encode())
    return Texts(array(filled(coded.indices, len(coded.dictionary))), coded.dictionary.cast(pa.large_string()))


def _bind(
    database: Database,
    snapshot: str,
    place: int,
    quasi_identifier: QuasiIdentifier,
    known: KnownCodes | None,
    values: pa.Array,
) -> tuple[BoundHierarchy, NDArray[np.int32]]:
    """The hierarchy of a categorical quasi-identifier over its values, after those known; leaf of each, and of NULL."""
    assert quasi_identifier.hierarchy is not None
    if known is None:
        bound = bind(database, quasi_identifier.hierarchy, values)
        if len(bound.missing):
            _refuse_missing(database, snapshot, place, quasi_identifier, bound.missing)
    else:
        bound = known.hierarchies[place]
    leaf = pc.index_in(values, bound.values)
    if leaf.null_count:
        bound = extended(bound, bind(database, quasi_identifier.hierarchy, values.filter(pc.is_null(leaf))))
        leaf = pc.index_in(values, bound.values)
    return bound, np.append(array(filled(leaf, UNKNOWN_LEAF)), np.int32(NULL_LEAF))


def _refuse_missing(
    database: Database, snapshot: str, place: int, quasi_identifier: QuasiIdentifier, missing: list[str]
) -> None:
    """Refuse values without a leaf, naming the first of them, their rows, and near misses."""
    text = canonical_text(exp.column(f"quasi_identifier_{place}"), quasi_identifier.column_type).sql(dialect="duckdb")
    missing_values = pa.table({"value": texts(missing)})
    database.register("missing_values", missing_values)
    counts = database.rows(
        f"SELECT value, count(*) FROM {snapshot} JOIN missing_values ON value = {text} "
        "GROUP BY value ORDER BY count(*) DESC, value"
    )
    database.unregister("missing_values")
    assert quasi_identifier.hierarchy is not None
    first = ", ".join(f"{shown(value)} ({rows} rows)" for value, rows in counts[:5])
    more = f" and {len(counts) - 5} more" if len(counts) > 5 else ""
    alike = list(resembling_leaves(database, quasi_identifier.hierarchy, missing).items())[:3]
    pairs = "; ".join(f"{shown(value)} and {shown(leaf)}" for value, leaf in alike)
    near = f" ({pairs} differ only by blanks or Unicode form)" if alike else ""
    if quasi_identifier.hierarchy.lower() == "flat":
        raise KanonError(
            f"quasi_identifiers.{quasi_identifier.name} holds {first}, which stands for the root in what is released: "
            "replace it in the source"
        )
    raise KanonError(
        f"quasi_identifiers.{quasi_identifier.name}: {len(counts)} values in {sum(rows for _, rows in counts)} rows "
        f"have no leaf in hierarchy {quasi_identifier.hierarchy}: {first}{more}; "
        f"{remedy(database, quasi_identifier.hierarchy, missing)} or correct the source{near}"
    )

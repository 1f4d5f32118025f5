"""The private table of a masked view's people: key, codes, released values, and class.

A member has a *row number*, by which arrays are indexed; numbers of members that have left are given away
again. ``class`` is NULL for a member that is waiting (``waiting_reason`` says why, ``waiting_since`` since
which release) and for one that was left out for quality. Two hashes, of the quasi-identifiers and of what is
released as it is, tell at the next refresh which members have changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.columns import private_names
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import members_table, values_table
from kanon_duck.encoding.microdata import Attribute, CategoricalAttribute, Microdata, NumericAttribute, encoding_of
from kanon_duck.hierarchy import BoundHierarchy, bind, canonical_text, in_given_order
from kanon_duck.intake.encode import NULL_LEAF, UNKNOWN_LEAF, EncodedSnapshot
from kanon_duck.intake.hashing import hash_of, typed_columns
from kanon_duck.privacy.sensitive import codes_of, reading
from kanon_duck.runtime.arrow import in_one_piece, numbers
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.parallel import each

Column = tuple[NDArray[Any], NDArray[np.bool_] | None]
"""Values, and where there are none."""


def hashes(settings: Settings) -> tuple[str, str]:
    """SQL for the hash of the quasi-identifiers, and of what is released as it is."""
    return (
        hash_of(typed_columns(settings, "quasi_identifier")),
        hash_of(typed_columns(settings, "sensitive", "kept", "unit")),
    )


def identified(settings: Settings, table: str) -> tuple[str, list[str]]:
    """A relation of members and the columns that identify one: its key, or hashes and a number among equals."""
    if settings.key:
        return table, private_names(settings, "key")
    numbered = "row_number() OVER (PARTITION BY quasi_hash, other_hash) AS occurrence"
    return f"(SELECT *, {numbered} FROM {table})", ["quasi_hash", "other_hash", "occurrence"]


def create_members(
    database: Database, view_number: int, settings: Settings, encoded: EncodedSnapshot, labels: NDArray[np.int64]
) -> None:
    """Make the rows of the snapshot the members: row numbers are places in the encoding.

    Parameters
    ----------
    labels : int64, shape (rows,)
        Class of each row, -1 for one that is left out.
    """
    everybody = {"row": (np.arange(len(labels)), None), "class": (labels, labels < 0)}
    _write(database, f"CREATE OR REPLACE TABLE {members_table(view_number)} AS", settings, encoded, everybody)
    database.execute(
        f"CREATE OR REPLACE TABLE {values_table(view_number)} (quasi_identifier INTEGER, leaf INTEGER, value VARCHAR)"
    )
    add_values(database, view_number, encoded.microdata, {})


def add_members(
    database: Database, view_number: int, settings: Settings, encoded: EncodedSnapshot, columns: dict[str, Column]
) -> None:
    """Add the rows of the snapshot to the members; ``columns`` has row, class and why it waits since when."""
    _write(database, f"INSERT INTO {members_table(view_number)} BY NAME", settings, encoded, columns)


def _write(
    database: Database, statement: str, settings: Settings, encoded: EncodedSnapshot, columns: dict[str, Column]
) -> None:
    """Write the rows of the snapshot with their codes and the columns given for each row of the encoding.

    The codes are brought into the snapshot's order, because to join them by number takes as long as the writing.
    """
    arrays = {name: numbers(values, missing) for name, (values, missing) in columns.items()}
    selected = [f"codes.{name}" for name in columns]
    if "waiting_since" in columns:
        selected.append(
            f"CASE WHEN codes.waiting_since IS NOT NULL THEN {_reason(settings, encoded)} END AS waiting_reason"
        )
    else:
        selected += ["CAST(NULL AS BIGINT) AS waiting_since", "CAST(NULL AS VARCHAR) AS waiting_reason"]
    codes, of_codes, joins = coded_columns(encoded.microdata.attributes)
    arrays |= codes
    selected += of_codes
    quasi_hash, other_hash = hashes(settings)
    encoded_row = np.empty_like(encoded.snapshot_row)
    encoded_row[encoded.snapshot_row] = np.arange(len(encoded_row))
    database.register("codes", pa.table(arrays).take(numbers(encoded_row)))
    database.execute(
        f"{statement} SELECT {', '.join(private_names(settings, 'key', 'sensitive', 'kept', 'unit') + selected)}, "
        f"{quasi_hash} AS quasi_hash, {other_hash} AS other_hash "
        f"FROM {encoded.table} AS snapshot POSITIONAL JOIN codes {' '.join(joins)}"
    )
    database.unregister("codes")


def coded_columns(attributes: list[Attribute]) -> tuple[dict[str, pa.Array], list[str], list[str]]:
    """Codes of the quasi-identifiers as members keep them: arrays, and SQL that reads them as ``codes``, with joins."""
    arrays: dict[str, pa.Array] = {}
    selected, joins = [], []
    for place, attribute in enumerate(attributes):
        ranks = attribute.ranks if isinstance(attribute, NumericAttribute) else None
        for name, codes in _code_columns(place, attribute).items():
            arrays[name] = codes
            selected.append(f"codes.{name}" if ranks is None else f"steps_{name}.step AS {name}")
            joins += [] if ranks is None else [f"LEFT JOIN {ranks} AS steps_{name} ON steps_{name}.code = codes.{name}"]
    return arrays, selected, joins


def _reason(settings: Settings, encoded: EncodedSnapshot) -> str:
    """SQL for why a row waits."""
    unknown = ["NULL"]
    for place, declared in enumerate(settings.quasi_identifiers):
        column = exp.column(f"quasi_identifier_{place}")
        attribute = encoded.microdata.attributes[place]
        if isinstance(attribute, NumericAttribute):
            value, condition = f"{column} :: VARCHAR", f"NOT {attribute.step.fits(str(column))}"
            behind = " has no place in an interval"
        else:
            value = canonical_text(column, declared.column_type).sql(dialect="duckdb")
            condition, behind = (
                f"codes.leaf_{place} = {UNKNOWN_LEAF}",
                f" has no leaf in hierarchy {declared.hierarchy}",
            )
        before, behind = (
            exp.Literal.string(text).sql(dialect="duckdb") for text in (f"{declared.name} '", f"'{behind}")
        )
        unknown.append(f"CASE WHEN {condition} THEN concat({before}, {value}, {behind}) END")
    few = "'there are too few new rows for a class of their own'"
    return f"coalesce(nullif(concat_ws('; ', {', '.join(unknown)}), ''), {few})"


def _code_columns(place: int, attribute: Attribute) -> dict[str, pa.Array]:
    """The codes of one quasi-identifier, as members keep them."""
    if isinstance(attribute, CategoricalAttribute):
        return {f"leaf_{place}": numbers(attribute.leaf)}
    ends = {"low": attribute.low} if attribute.high is attribute.low else {"low": attribute.low, "high": attribute.high}
    return {f"{end}_{place}": numbers(codes, attribute.missing) for end, codes in ends.items()}


def add_values(database: Database, view_number: int, microdata: Microdata, before: dict[int, BoundHierarchy]) -> None:
    """Write down which values the leaf numbers stand for that ``before`` does not know."""
    for place, attribute in enumerate(microdata.attributes):
        if isinstance(attribute, CategoricalAttribute):
            known = len(before[place].values) if place in before else 0
            new = attribute.hierarchy.values[known:]
            if len(new):
                table = pa.table({"leaf": numbers(np.arange(known, known + len(new))), "value": new})
                database.register("new_values", table)
                database.execute(f"INSERT INTO {values_table(view_number)} SELECT {place}, leaf, value FROM new_values")
                database.unregister("new_values")


def known_hierarchies(database: Database, view_number: int, settings: Settings) -> dict[int, BoundHierarchy]:
    """The hierarchies as the members' leaf numbers have it."""
    found = {}
    for place, declared in enumerate(settings.quasi_identifiers):
        if declared.hierarchy is not None:
            query = f"SELECT value FROM {values_table(view_number)} WHERE quasi_identifier = {place} ORDER BY leaf"
            values = in_one_piece(database.arrow(query).column("value")).cast(pa.large_string())
            found[place] = in_given_order(bind(database, declared.hierarchy, values), values)
    return found


def load_members(
    database: Database,
    view_number: int,
    settings: Settings,
    templates: list[Attribute],
    former: str | None = None,
    least_rows: int = 0,
) -> tuple[Microdata, NDArray[np.int64], NDArray[np.bool_]]:
    """Read the members' codes and classes into arrays that are indexed by row number.

    Parameters
    ----------
    templates : list
        The quasi-identifiers as they are encoded now, over any rows.

    Returns
    -------
    Microdata
    labels : int64, shape (n,)
        Class of each member, -1 for one in none.
    present : bool, shape (n,)
        Whether a row number is in use; codes of others have no meaning.
    """
    selected, joins = ["members.row", "coalesce(members.class, -1) AS class", "members.present"], []
    for place, attribute in enumerate(templates):
        for name in _code_columns(place, attribute):
            column = f"members.{name}"
            if isinstance(attribute, NumericAttribute) and attribute.ranks is not None:
                joins.append(f"LEFT JOIN {attribute.ranks} AS ranks_{name} ON ranks_{name}.step = {column}")
                selected.append(f"coalesce(ranks_{name}.code, 0) AS {name}")
            else:
                selected.append(f"coalesce({column}, 0) AS {name}")
        if isinstance(attribute, NumericAttribute):
            selected.append(f"members.low_{place} IS NULL AS missing_{place}")
    of_models, joined = reading(database, settings.model, members_table(view_number), "members")
    relation = f"SELECT *, true AS present FROM {members_table(view_number)}"
    if former is not None:
        relation += f" UNION ALL BY NAME SELECT *, false AS present FROM {former}"
    source = f"({relation}) AS members {' '.join(joins + joined)}"
    data = database.numpy(f"SELECT {', '.join(selected + of_models)} FROM {source}")
    rows = data["row"]
    n = max(int(rows.max(initial=-1)) + 1, least_rows)

    def by_row(values: Any, dtype: Any, absent: int = 0) -> Any:
        array = np.full(n, absent, dtype)
        array[rows] = values
        return array

    def loaded(place: int) -> Attribute:
        template = templates[place]
        if isinstance(template, CategoricalAttribute):
            return replace(template, leaf=by_row(data[f"leaf_{place}"], np.int32, NULL_LEAF))
        low = by_row(data[f"low_{place}"], np.int64)
        high = by_row(data[f"high_{place}"], np.int64) if f"high_{place}" in data else low
        return replace(template, low=low, high=high, missing=by_row(data[f"missing_{place}"], bool, 1))

    attributes = each(loaded, range(len(templates)))
    sensitive = codes_of(settings.model, data)
    if sensitive is not None:
        places = np.zeros(n, np.int64)  # codes of row numbers not in use are those of some member
        places[rows] = np.arange(len(rows))
        sensitive = sensitive.take(places)
    microdata = Microdata(attributes, encoding_of(attributes, settings.weights_in_order(), n), sensitive)
    return microdata, by_row(data["class"], np.int64, -1), by_row(data["present"], bool)


def update_members(database: Database, view_number: int, moved: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
    """Give members, by row number, another class (-1: none)."""
    database.register("moved", pa.table({"row": numbers(moved), "class": numbers(labels, labels < 0)}))
    database.execute(
        f"UPDATE {members_table(view_number)} AS members SET class = moved.class "
        "FROM moved WHERE members.row = moved.row"
    )
    database.unregister("moved")


def update_waiting(database: Database, view_number: int, waiting: pa.Table) -> None:
    """Say which members wait, since when and why: ``row``, ``since``, ``reason``.

    Whoever has a class does not wait; who waited already does so since then.
    """
    table = members_table(view_number)
    database.execute(
        f"UPDATE {table} SET waiting_since = NULL, waiting_reason = NULL "
        "WHERE class IS NOT NULL AND waiting_since IS NOT NULL"
    )
    database.register("waiting_members", waiting)
    database.execute(
        f"UPDATE {table} AS members SET waiting_since = coalesce(members.waiting_since, waiting.since), "
        "waiting_reason = waiting.reason FROM waiting_members AS waiting WHERE members.row = waiting.row"
    )
    database.unregister("waiting_members")


def remove_members(database: Database, view_number: int, rows: NDArray[np.int64]) -> None:
    """Take members out, by row number."""
    database.register("removed", pa.table({"row": numbers(rows)}))
    database.execute(f"DELETE FROM {members_table(view_number)} WHERE row IN (SELECT row FROM removed)")
    database.unregister("removed")


def update_values(database: Database, view_number: int, settings: Settings, changed: str) -> None:
    """Take over what is released as it is from a relation with the ``member`` of each of its rows."""
    names = [*private_names(settings, "sensitive", "kept", "unit"), "other_hash"]
    assignments = ", ".join(f"{name} = changed.{name}" for name in names)
    database.execute(
        f"UPDATE {members_table(view_number)} AS members SET {assignments} FROM {changed} AS changed "
        "WHERE members.row = changed.member"
    )


def held_back(database: Database, view_number: int) -> tuple[int, int]:
    """How many members wait, and how many were left out for quality."""
    [(waiting, suppressed)] = database.rows(
        "SELECT count(*) FILTER (waiting_since IS NOT NULL), count(*) FILTER (class IS NULL AND waiting_since IS NULL) "
        f"FROM {members_table(view_number)}"
    )
    return waiting, suppressed

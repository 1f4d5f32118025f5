"""Source values to codes: steps of numbers, leaves of hierarchies.

Values that are new at a refresh get codes after those that are known: a code never changes its meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.columns import private_names
from kanon_duck.catalog.settings import QuasiIdentifier, Settings
from kanon_duck.encoding.microdata import Attribute, CategoricalAttribute, Microdata, NumericAttribute, encoding_of
from kanon_duck.encoding.numeric import FLOATS, INTEGERS, LARGEST_FLOAT_STEPS, UNITS_PER_DAY, Step, read_step
from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import BoundHierarchy, bind, canonical_text, extended, remedy, resembling_leaves
from kanon_duck.intake.snapshot import SNAPSHOT, refuse_repeated_keys
from kanon_duck.privacy.sensitive import codes_of, reading
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.arrow import array, filled, in_one_piece, texts
from kanon_duck.runtime.database import Database, StatementError
from kanon_duck.runtime.parallel import each
from kanon_duck.runtime.sorting import sort_rows

EXACT_STEPS = 2**62
"""Domains of fewer steps are coded by the step itself; wider ones by rank among the values that occur."""

RANKED_TYPE = "HUGEINT"
"""Type in which members keep steps whose codes are ranks; other codes are BIGINTs."""

NULL_LEAF, UNKNOWN_LEAF = -1, -2


@dataclass(frozen=True)
class Known:
    """What earlier releases of a masked view have coded.

    Attributes
    ----------
    hierarchies : dict
        By the number of the quasi-identifier.
    members : str
        Table of the members, whose steps take part where codes are ranks.
    """

    hierarchies: dict[int, BoundHierarchy]
    members: str


class EncodedSnapshot(NamedTuple):
    """The rows of the snapshot, encoded.

    Attributes
    ----------
    microdata : Microdata
        Its rows stand in the order of a hash of their identity, which neither the source's order nor the
        number of threads can change.
    snapshot_row : int64, shape (rows,)
        Which row of the snapshot each of them is, from 0 on.
    warnings : list of str
        What the owner should know about the data.
    """

    microdata: Microdata
    snapshot_row: NDArray[np.int64]
    warnings: list[str]


def encode(database: Database, settings: Settings, known: Known | None = None) -> EncodedSnapshot:
    """Encode the quasi-identifiers of the snapshot.

    Cost: one pass over the snapshot for the domains, one to read codes into NumPy arrays.

    Parameters
    ----------
    database : Database
    settings : Settings
    known : Known, optional
        For rows that come to those of earlier releases: their codes go on from the codes there are, and a
        value that its hierarchy does not know gets ``UNKNOWN_LEAF``.

    Raises
    ------
    KanonError
        When the key is not unique, a value has no leaf in its hierarchy, a float is NaN or infinite, or a step
        is missing.
    """
    warnings: list[str] = []
    selected = ["snapshot.rowid AS row", f"hash({_identity(settings)}) AS identity"]
    joins: list[str] = []
    numeric: dict[int, dict[str, Any]] = {}
    for place, quasi_identifier in enumerate(settings.quasi_identifiers):
        if quasi_identifier.hierarchy is None:
            plan = _plan_numeric(database, place, quasi_identifier, known, warnings)
            numeric[place] = plan
            selected += plan["selected"]
            joins += plan["joins"]
        else:
            text = canonical_text(exp.column(f"quasi_identifier_{place}", "snapshot"), quasi_identifier.column_type)
            selected.append(f"{text.sql(dialect='duckdb')} AS text_{place}")
    of_models, joined = reading(database, settings.model, SNAPSHOT, "snapshot")
    query = f"SELECT {', '.join(selected + of_models)} FROM {SNAPSHOT} AS snapshot {' '.join(joins + joined)}"
    data, text_columns = _read(database, query)
    order, repeated = sort_rows([data.pop("identity")])  # without a key, rows of equal identity are interchangeable
    if settings.key and repeated.any():
        refuse_repeated_keys(database, settings)
    bound = {
        place: _bind(database, place, settings.quasi_identifiers[place], known, column.different)
        for place, column in text_columns.items()
    }

    def attribute(place: int) -> Attribute:
        name = settings.quasi_identifiers[place].name
        if place in numeric:
            return _numeric_attribute(name, place, numeric[place], data).take(order)
        hierarchy, leaf = bound[place]
        return CategoricalAttribute(name, hierarchy, leaf.take(text_columns[place].numbers.take(order)))

    attributes = each(attribute, range(len(settings.quasi_identifiers)))
    encoding = encoding_of(attributes, settings.weights_in_order(), len(order))
    sensitive = codes_of(settings.model, data)
    if sensitive is not None:
        sensitive = sensitive.take(order)
    row = data["row"][order]
    row -= row.min(initial=np.iinfo(np.int64).max)  # rowids of new rows in a transaction are large, but have no gaps
    return EncodedSnapshot(Microdata(attributes, encoding, sensitive), row, warnings)


def _identity(settings: Settings) -> str:
    """SQL for what tells rows apart: the key, or the whole row where there is none."""
    names = private_names(settings, *(["key"] if settings.key else settings.roles()))
    return ", ".join(f"snapshot.{name}" for name in names)


def _plan_numeric(
    database: Database, place: int, quasi_identifier: QuasiIdentifier, known: Known | None, warnings: list[str]
) -> dict[str, Any]:
    """Step, domain and the SQL that reads the codes of one numeric quasi-identifier."""
    name, column_type = quasi_identifier.name, quasi_identifier.column_type
    column = f"snapshot.quasi_identifier_{place}"
    _refuse_endless(database, name, column_type, column)
    if known is None:
        _refuse_unrounded(database, quasi_identifier, column)
    step = read_step(database, name, column_type, quasi_identifier.step)
    if column_type in FLOATS:
        largest = database.value(f"SELECT max(abs({column})) FROM {SNAPSHOT} AS snapshot")
        if largest is not None and largest / float(step.size) > LARGEST_FLOAT_STEPS:
            raise KanonError(
                f"quasi_identifiers.{name}.step is too small for {column_type} values as large as {largest}: "
                "name a coarser step"
            )
    low, high = step.low(column), step.high(column)
    observed = _observed_steps(database, quasi_identifier, step, low, high)
    domain = _given_domain(database, quasi_identifier, step) or observed or (0, 0)
    observed = observed or domain
    if observed[0] < domain[0] or observed[1] > domain[1]:
        outside = database.value(
            f"SELECT count(*) FROM {SNAPSHOT} AS snapshot WHERE {low} < {domain[0]} OR {high} > {domain[1]}"
        )
        warnings.append(f"{outside} rows of {name} lie outside its domain: their information loss counts at most 1")

    plan: dict[str, Any] = {"step": step, "domain": domain, "ranks": None, "joins": []}
    missing = f"{column} IS NULL AS missing_{place}"
    span = (min(observed[0], domain[0]), max(observed[1], domain[1]))
    if not _coded_by_rank(database, place, name, span, known):
        codes = [f"coalesce(CAST({steps} - ({domain[0]}) AS BIGINT), 0)" for steps in (low, high)]
    else:
        table = f"temp.kanon_ranks_{place}"
        ends = f"SELECT CAST({domain[0]} AS HUGEINT) AS step UNION SELECT CAST({domain[1]} AS HUGEINT)"
        occurring = (
            f"SELECT {low} FROM {SNAPSHOT} AS snapshot WHERE {column} IS NOT NULL "
            f"UNION SELECT {high} FROM {SNAPSHOT} AS snapshot WHERE {column} IS NOT NULL"
        )
        if known is not None:
            stored = ("low", "high") if low != high else ("low",)
            ends += "".join(f" UNION SELECT {end}_{place} FROM {known.members}" for end in stored)
        database.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {table} AS SELECT row_number() OVER (ORDER BY step) - 1 AS code, step "
            f"FROM ({ends} UNION {occurring}) WHERE step IS NOT NULL"
        )
        plan["ranks"] = table
        plan["joins"] = [
            f"LEFT JOIN {table} AS low_{place} ON low_{place}.step = {low}",
            f"LEFT JOIN {table} AS high_{place} ON high_{place}.step = {high}",
        ]
        codes = [f"coalesce(low_{place}.code, 0)", f"coalesce(high_{place}.code, 0)"]
        # halves, because the difference of two HUGEINTs may be none
        width = domain[1] // 2 - domain[0] // 2
        plan["positions"] = database.numpy(
            f"SELECT CAST(step // 2 - ({domain[0] // 2}) AS DOUBLE) / {float(width)!r} AS position "
            f"FROM {table} ORDER BY code"
        )["position"]
        plan["domain_codes"] = database.rows(
            f"SELECT min(code) FILTER (step = {domain[0]}), min(code) FILTER (step = {domain[1]}) FROM {table}"
        )[0]
    plan["selected"] = [f"{codes[0]} AS low_{place}", missing]
    if low != high:
        plan["selected"].append(f"{codes[1]} AS high_{place}")
    return plan


def _coded_by_rank(database: Database, place: int, name: str, span: tuple[int, int], known: Known | None) -> bool:
    """Whether codes are ranks: where steps are too many, from the first release on."""
    wide = span[1] - span[0] >= EXACT_STEPS
    if known is None:
        return wide
    stored = database.value(f"SELECT typeof(low_{place}) FROM {known.members} LIMIT 1")
    if wide and stored != RANKED_TYPE:
        raise KanonError(
            f"{name} has values so far outside its domain that they cannot be counted in steps of it: "
            "CALL kanon.rebuild to give it a new domain"
        )
    return bool(stored == RANKED_TYPE)


def _observed_steps(
    database: Database, quasi_identifier: QuasiIdentifier, step: Step, low: str, high: str
) -> tuple[int, int] | None:
    """Least low and greatest high step that occur, None without values; both must be values of the column's type."""
    try:
        first, last = database.rows(
            f"SELECT CAST(min({low}) AS VARCHAR), CAST(max({high}) AS VARCHAR) FROM {SNAPSHOT} AS snapshot"
        )[0]
        if first is not None:
            ends = [step.text(step.bound(f"CAST({end} AS HUGEINT)")) for end in (first, last)]
            database.rows(f"SELECT {', '.join(ends)}")
    except StatementError as error:
        given = "left to its default" if quasi_identifier.step is None else shown(quasi_identifier.step)
        raise KanonError(
            f"quasi_identifiers.{quasi_identifier.name}.step is {given}: a multiple of it next "
            f"to the values does not fit {step.column_type}; name a smaller step, or cast to a wider type in the source"
        ) from error
    return None if first is None else (int(first), int(last))


def _numeric_attribute(name: str, place: int, plan: dict[str, Any], data: dict[str, Any]) -> NumericAttribute:
    """The encoded column of one numeric quasi-identifier, from what the plan's SQL has read."""
    low, missing = data[f"low_{place}"], data[f"missing_{place}"]
    high = data.get(f"high_{place}", low)
    first, last = plan["domain"]
    if plan["ranks"] is None:
        return NumericAttribute(name, plan["step"], low, high, missing, (0, last - first), first)
    return NumericAttribute(
        name, plan["step"], low, high, missing, plan["domain_codes"], 0, plan["ranks"], plan["positions"]
    )


def _refuse_endless(database: Database, name: str, column_type: str, column: str) -> None:
    """NaN and infinity have no place in an interval."""
    if column_type not in FLOATS and column_type not in UNITS_PER_DAY:
        return
    endless = database.value(f"SELECT count(*) FROM {SNAPSHOT} AS snapshot WHERE NOT isfinite({column})")
    if endless:
        raise KanonError(
            f"{name} is NaN or infinite in {endless} rows: such values have no place in an interval; "
            "make them NULL or leave the rows out in the source"
        )


def _refuse_unrounded(database: Database, quasi_identifier: QuasiIdentifier, column: str) -> None:
    """Decimals of which most occur once would show whole originals at their ends: they must name a step."""
    if quasi_identifier.step is not None or not quasi_identifier.column_type.startswith("DECIMAL"):
        return
    rows, single = database.rows(
        f"SELECT coalesce(sum(c), 0), coalesce(sum(c) FILTER (c = 1), 0) FROM "
        f"(SELECT count(*) AS c FROM {SNAPSHOT} AS snapshot WHERE {column} IS NOT NULL GROUP BY {column})"
    )[0]
    if 2 * single > rows:
        raise KanonError(
            f"quasi_identifiers.{quasi_identifier.name}.step is missing: over half of the rows hold a value that "
            "occurs once, so bounds would show whole originals; name a step, for example "
            "{'type': 'numeric', 'step': 10}"
        )


def _given_domain(database: Database, quasi_identifier: QuasiIdentifier, step: Step) -> tuple[int, int] | None:
    """The domain that the owner or an earlier release gave, in steps; None where it is to be observed."""
    if quasi_identifier.fixed_domain is not None:
        return quasi_identifier.fixed_domain
    if quasi_identifier.domain is None:
        return None
    argument = f"quasi_identifiers.{quasi_identifier.name}.domain"
    steps = []
    for end, to_step in zip(quasi_identifier.domain, (step.low, step.high), strict=True):
        if step.column_type in INTEGERS and isinstance(end, Decimal):  # a cast would round to the nearest
            end = math.floor(end) if to_step == step.low else math.ceil(end)
        value = database.value(f"SELECT CAST(TRY_CAST(? AS {step.column_type}) AS VARCHAR)", [str(end)])
        if value is None:
            raise KanonError(f"{argument} has the end {shown(end)}, which is no {step.column_type} value")
        bound = f"CAST('{value}' AS {step.column_type})"  # DuckDB's own text of a number or date
        steps.append(int(database.value(f"SELECT CAST({to_step(bound)} AS VARCHAR)")))
    if steps[0] > steps[1]:
        raise KanonError(f"{argument} is {list(quasi_identifier.domain)}: give the lower end first")
    return steps[0], steps[1]


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
    database: Database, place: int, quasi_identifier: QuasiIdentifier, known: Known | None, values: pa.Array
) -> tuple[BoundHierarchy, NDArray[np.int32]]:
    """The hierarchy of a categorical quasi-identifier over its values, after those known; leaf of each, and of NULL."""
    assert quasi_identifier.hierarchy is not None
    if known is None:
        bound = bind(database, quasi_identifier.hierarchy, values)
        if len(bound.missing):
            _refuse_missing(database, place, quasi_identifier, bound.missing)
    else:
        bound = known.hierarchies[place]
    leaf = pc.index_in(values, bound.values)
    if leaf.null_count:
        bound = extended(bound, bind(database, quasi_identifier.hierarchy, values.filter(pc.is_null(leaf))))
        leaf = pc.index_in(values, bound.values)
    return bound, np.append(array(filled(leaf, UNKNOWN_LEAF)), np.int32(NULL_LEAF))


def _refuse_missing(database: Database, place: int, quasi_identifier: QuasiIdentifier, missing: list[str]) -> None:
    """Refuse values without a leaf, naming the first of them, their rows, and near misses."""
    text = canonical_text(exp.column(f"quasi_identifier_{place}"), quasi_identifier.column_type).sql(dialect="duckdb")
    missing_values = pa.table({"value": texts(missing)})
    database.register("missing_values", missing_values)
    counts = database.rows(
        f"SELECT value, count(*) FROM {SNAPSHOT} JOIN missing_values ON value = {text} "
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

"""Source columns to codes and back: the encoded quasi-identifiers of the people of one masked view.

The source is read once, into a temporary snapshot, so that everything afterwards speaks of the same rows.
Its columns are renamed by role and number (``key_0``, ``quasi_identifier_0``, ...), whatever they are called.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.arguments import shown
from kanon_duck.arrow import numbers, texts
from kanon_duck.call import Call
from kanon_duck.encoding import LANES, Encoding
from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import BoundHierarchy, bind, canonical_text, resembling_leaves
from kanon_duck.numeric import FLOATS, INTEGERS, LARGEST_FLOAT_STEPS, UNITS_PER_DAY, Step, read_step
from kanon_duck.settings import QuasiIdentifier, Settings
from kanon_duck.sql import Database, StatementError

SNAPSHOT = "temp.kanon_snapshot"
"""The rows of the source, as they were when the call read them; numbered by DuckDB's rowid."""

LARGEST_CAP = 2**23
"""The search counts in float32, which tells whole numbers apart up to twice this."""

EXACT_STEPS = 2**62
"""Domains of fewer steps are coded by the step itself; wider ones by rank among the values that occur."""


@dataclass(frozen=True)
class NumericAttribute:
    """An encoded numeric quasi-identifier.

    ``low`` and ``high`` are codes of the low and the high step of each row (see `kanon_duck.numeric`):
    the step counted from the domain's lower end or, in a domain of over 2**62 steps, its rank.

    Attributes
    ----------
    name : str
    step : Step
    low, high : int64, shape (rows,)
        Codes; of no meaning where ``missing``.
    missing : bool, shape (rows,)
        NULLs.
    domain : tuple of int
        Codes of the domain's ends.
    base : int
        Step that code 0 stands for (not for ranks).
    ranks : str or None
        Temporary table (code, step) where codes are ranks.
    positions : float64 or None
        For ranks: position of each code in the domain, 0 to 1.
    """

    name: str
    step: Step
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    missing: NDArray[np.bool_]
    domain: tuple[int, int]
    base: int
    ranks: str | None = None
    positions: NDArray[np.float64] | None = None

    def share(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of the domain that intervals of codes take up: at most 1, and 0 where the domain is a point."""
        first, last = self.domain
        if last == first:
            return np.zeros(len(low))
        if self.positions is not None:
            return np.minimum(self.positions[high] - self.positions[low], 1.0)
        return np.minimum((high - low) / (last - first), 1.0)


@dataclass(frozen=True)
class CategoricalAttribute:
    """An encoded categorical quasi-identifier.

    Attributes
    ----------
    name : str
    hierarchy : BoundHierarchy
    leaf : int32, shape (rows,)
        Index into ``hierarchy.values``, which are in depth-first order; -1 for NULL.
    """

    name: str
    hierarchy: BoundHierarchy
    leaf: NDArray[np.int32]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """NULLs."""
        return self.leaf < 0


Attribute = NumericAttribute | CategoricalAttribute


@dataclass(frozen=True)
class Microdata:
    """The encoded rows of a source.

    Attributes
    ----------
    attributes : list
        One per quasi-identifier, in the order of the settings; their rows stand as they were read.
    place : int64, shape (rows,)
        Place in the snapshot of each row as it was read.
    encoding : Encoding
        What the search works on. Its rows stand in the order of a hash of their identity, which neither the
        source's order nor the number of threads can change.
    row : int64, shape (rows,)
        Which of the rows as they were read each row of the encoding is.
    warnings : list of str
        What the owner should know about the data.
    """

    attributes: list[Attribute]
    place: NDArray[np.int64]
    encoding: Encoding
    row: NDArray[np.int64]
    warnings: list[str]

    def as_read(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of the encoding's rows, for the rows as they were read."""
        read = np.empty_like(labels)
        read[self.row] = labels
        return read

    def as_in_snapshot(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of the encoding's rows, for the rows as they stand in the snapshot."""
        placed = np.empty_like(labels)
        placed[self.place] = self.as_read(labels)
        return placed


def take_snapshot(call: Call, settings: Settings) -> int:
    """Read the source into the snapshot; returns the number of rows.

    Raises
    ------
    KanonError
        When a key column is NULL.
    """
    columns = [
        exp.column(name, quoted=True).as_(f"{role}_{number}")
        for role, names in settings.roles().items()
        for number, name in enumerate(names)
    ]
    query = exp.select(*columns).from_(settings.query.subquery("source"))
    database = call.database
    database.execute(f"DROP TABLE IF EXISTS {SNAPSHOT}")
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    with call.in_callers_schema():
        database.execute(exp.Create(this=exp.to_table(SNAPSHOT), kind="TABLE", properties=temporary, expression=query))
    rows = int(database.value(f"SELECT count(*) FROM {SNAPSHOT}"))
    if settings.key and rows:
        _refuse_null_keys(database, settings)
    return rows


def _refuse_null_keys(database: Database, settings: Settings) -> None:
    """A key is never NULL."""
    counts = ", ".join(f"count(*) - count(key_{number})" for number in range(len(settings.key)))
    for name, nulls in zip(settings.key, database.rows(f"SELECT {counts} FROM {SNAPSHOT}")[0], strict=True):
        if nulls:
            raise KanonError(f"key {name} is NULL in {nulls} rows of the source: name columns that are never NULL")


def _refuse_repeated_keys(database: Database, settings: Settings, identities: NDArray[np.uint64]) -> None:
    """A key is never the same twice; only rows whose hashes (sorted) are equal can break this."""
    if not settings.key or not np.any(identities[1:] == identities[:-1]):
        return
    names = ", ".join(f"key_{number}" for number in range(len(settings.key)))
    repeated = database.value(
        f"SELECT count(*) FROM (SELECT {names} FROM {SNAPSHOT} GROUP BY {names} HAVING count(*) > 1)"
    )
    if repeated:
        raise KanonError(
            f"key {', '.join(settings.key)} is not unique: {repeated} of its values stand in several rows of the "
            "source; name columns that identify one row"
        )


def encode(database: Database, settings: Settings) -> Microdata:
    """Encode the quasi-identifiers of the snapshot.

    Cost: one pass over the snapshot for the domains, one to read codes into NumPy arrays.

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
    hierarchies: dict[int, BoundHierarchy] = {}
    for number, quasi_identifier in enumerate(settings.quasi_identifiers):
        if quasi_identifier.hierarchy is None:
            plan = _plan_numeric(database, number, quasi_identifier, warnings)
            numeric[number] = plan
            selected += plan["selected"]
            joins += plan["joins"]
        else:
            hierarchies[number] = _bind(database, number, quasi_identifier)
            text = canonical_text(exp.column(f"quasi_identifier_{number}", "snapshot"), quasi_identifier.column_type)
            joins.append(f"LEFT JOIN leaves_{number} ON leaves_{number}.value = {text.sql(dialect='duckdb')}")
            selected.append(f"coalesce(leaves_{number}.leaf, -1) AS leaf_{number}")
    data = database.numpy(f"SELECT {', '.join(selected)} FROM {SNAPSHOT} AS snapshot {' '.join(joins)}")
    for number in hierarchies:
        database.unregister(f"leaves_{number}")

    attributes: list[Attribute] = []
    for number, quasi_identifier in enumerate(settings.quasi_identifiers):
        if number in hierarchies:
            leaf = np.asarray(data[f"leaf_{number}"], dtype=np.int32)
            attributes.append(CategoricalAttribute(quasi_identifier.name, hierarchies[number], leaf))
        else:
            attributes.append(_numeric_attribute(quasi_identifier.name, number, numeric[number], data))
    weights = [settings.weights.get(attribute.name, 1.0) for attribute in attributes]
    row = np.argsort(data["identity"])  # without a key, rows of equal identity are interchangeable
    _refuse_repeated_keys(database, settings, data["identity"][row])
    place = data["row"] - data["row"].min()
    return Microdata(attributes, place, _encoding(attributes, weights, row), row, warnings)


def _identity(settings: Settings) -> str:
    """SQL for what tells rows apart: the key, or the whole row where there is none."""
    roles = {"key": settings.key} if settings.key else settings.roles()
    return ", ".join(f"snapshot.{role}_{number}" for role, names in roles.items() for number in range(len(names)))


def _plan_numeric(
    database: Database, number: int, quasi_identifier: QuasiIdentifier, warnings: list[str]
) -> dict[str, Any]:
    """Step, domain and the SQL that reads the codes of one numeric quasi-identifier."""
    name, column_type = quasi_identifier.name, quasi_identifier.column_type
    column = f"snapshot.quasi_identifier_{number}"
    _refuse_endless(database, name, column_type, column)
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
    missing = f"{column} IS NULL AS missing_{number}"
    span = (min(observed[0], domain[0]), max(observed[1], domain[1]))
    if span[1] - span[0] < EXACT_STEPS:
        codes = [f"coalesce(CAST({steps} - ({domain[0]}) AS BIGINT), 0)" for steps in (low, high)]
    else:
        table = f"temp.kanon_ranks_{number}"
        ends = f"SELECT CAST({domain[0]} AS HUGEINT) AS step UNION SELECT CAST({domain[1]} AS HUGEINT)"
        occurring = (
            f"SELECT {low} FROM {SNAPSHOT} AS snapshot WHERE {column} IS NOT NULL "
            f"UNION SELECT {high} FROM {SNAPSHOT} AS snapshot WHERE {column} IS NOT NULL"
        )
        database.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {table} AS SELECT row_number() OVER (ORDER BY step) - 1 AS code, step "
            f"FROM ({ends} UNION {occurring})"
        )
        plan["ranks"] = table
        plan["joins"] = [
            f"LEFT JOIN {table} AS low_{number} ON low_{number}.step = {low}",
            f"LEFT JOIN {table} AS high_{number} ON high_{number}.step = {high}",
        ]
        codes = [f"coalesce(low_{number}.code, 0)", f"coalesce(high_{number}.code, 0)"]
        # halves, because the difference of two HUGEINTs may be none
        width = domain[1] // 2 - domain[0] // 2
        plan["positions"] = database.numpy(
            f"SELECT CAST(step // 2 - ({domain[0] // 2}) AS DOUBLE) / {float(width)!r} AS position "
            f"FROM {table} ORDER BY code"
        )["position"]
        plan["domain_codes"] = database.rows(
            f"SELECT min(code) FILTER (step = {domain[0]}), min(code) FILTER (step = {domain[1]}) FROM {table}"
        )[0]
    plan["selected"] = [f"{codes[0]} AS low_{number}", missing]
    if low != high:
        plan["selected"].append(f"{codes[1]} AS high_{number}")
    return plan


def _observed_steps(
    database: Database, quasi_identifier: QuasiIdentifier, step: Step, low: str, high: str
) -> tuple[int, int] | None:
    """Least low and greatest high step that occur, None without values; both must be values of the column's type."""
    try:
        first, last = database.rows(
            f"SELECT CAST(min({low}) AS VARCHAR), CAST(max({high}) AS VARCHAR) FROM {SNAPSHOT} AS snapshot"
        )[0]
        for end in (first, last) if first is not None else ():
            database.rows(f"SELECT {step.text(step.bound(f'CAST({end} AS HUGEINT)'))}")
    except StatementError as error:
        raise KanonError(
            f"quasi_identifiers.{quasi_identifier.name}.step is {shown(quasi_identifier.step)}: a multiple of it next "
            f"to the values does not fit {step.column_type}; name a smaller step, or cast to a wider type in the source"
        ) from error
    return None if first is None else (int(first), int(last))


def _numeric_attribute(name: str, number: int, plan: dict[str, Any], data: dict[str, Any]) -> NumericAttribute:
    """The encoded column of one numeric quasi-identifier, from what the plan's SQL has read."""
    low = np.asarray(data[f"low_{number}"], dtype=np.int64)
    high = np.asarray(data[f"high_{number}"], dtype=np.int64) if f"high_{number}" in data else low
    missing = np.asarray(data[f"missing_{number}"], dtype=bool)
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
    """The domain that the owner gave, in steps; None where it is to be observed."""
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


def _bind(database: Database, number: int, quasi_identifier: QuasiIdentifier) -> BoundHierarchy:
    """The hierarchy bound to the values that occur, registered as the relation leaves_<number>."""
    assert quasi_identifier.hierarchy is not None
    column = exp.column(f"quasi_identifier_{number}")
    text = canonical_text(column, quasi_identifier.column_type).sql(dialect="duckdb")
    values = database.arrow(
        f"SELECT DISTINCT {text} AS value FROM {SNAPSHOT} WHERE quasi_identifier_{number} IS NOT NULL"
    ).column("value")
    bound = bind(database, quasi_identifier.hierarchy, values)
    if len(bound.missing):
        _refuse_missing(database, number, quasi_identifier, list(map(str, bound.missing)), text)
    leaf = np.arange(len(bound.values), dtype=np.int32)
    database.register(f"leaves_{number}", pa.table({"value": texts(bound.values), "leaf": numbers(leaf)}))
    return bound


def _refuse_missing(
    database: Database, number: int, quasi_identifier: QuasiIdentifier, missing: list[str], text: str
) -> None:
    """Refuse values without a leaf, naming the first of them, their rows, and near misses."""
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
        f"have no leaf in hierarchy {quasi_identifier.hierarchy}: {first}{more}; extend the hierarchy or correct "
        f"the source{near}"
    )


def _encoding(attributes: list[Attribute], weights: list[float], row: NDArray[np.int64]) -> Encoding:
    """The search's view of the attributes; ``row`` says which of their rows stands where."""
    trees = [each.hierarchy for each in attributes if isinstance(each, CategoricalAttribute)]
    most_codes = max((int(tree.level_codes.max(initial=0)) for tree in trees), default=0)
    dtype: type[np.unsignedinteger] = np.uint16 if most_codes < np.iinfo(np.uint16).max else np.uint32
    null = np.iinfo(dtype).max
    # an attribute has a column also where its hierarchy has height 0, to tell NULL from values
    sizes = [1 if isinstance(each, NumericAttribute) else max(each.hierarchy.height, 1) for each in attributes]
    columns = sum(sizes)
    width = -(-columns // LANES) * LANES
    codes = np.zeros((len(row), width), dtype=dtype)
    caps = np.zeros(width, dtype=dtype)
    unit_weights = np.zeros(width, dtype=np.float32)
    first = 0
    for attribute, weight, size in zip(attributes, weights, sizes, strict=True):
        block = slice(first, first + size)
        if isinstance(attribute, NumericAttribute):
            position, caps[block] = _positions(attribute, min(int(null) // 2, LARGEST_CAP))
            codes[:, first] = np.where(attribute.missing, null, position).take(row)
            unit_weights[block] = weight / caps[first]
        else:
            levels = np.zeros((len(attribute.hierarchy.values) + 1, size), dtype=dtype)
            levels[:-1, : attribute.hierarchy.height] = attribute.hierarchy.level_codes
            levels[-1] = null
            codes[:, block] = levels[attribute.leaf.take(row)]  # NULL is leaf -1, the last
            caps[block] = 1
            unit_weights[block] = weight / size
        first += size
    return Encoding(
        codes=codes,
        caps=caps,
        weights=unit_weights,
        columns=columns,
        attributes=np.repeat(np.arange(len(attributes)), sizes),
        numeric=np.array([isinstance(attribute, NumericAttribute) for attribute in attributes]),
    )


def _positions(attribute: NumericAttribute, largest: int) -> tuple[NDArray[np.int64], int]:
    """Positions of the rows in the domain, 0 to a cap of at most ``largest``, and that cap (at least 1).

    Where a step holds values between its multiples, these stand halfway between them.
    """
    first, last = attribute.domain
    if attribute.positions is not None:
        scaled = np.rint(np.clip(attribute.positions, 0, 1) * largest).astype(np.int64)
        return scaled[attribute.low], largest
    between = attribute.high != attribute.low
    factor = 2 if between.any() else 1
    span = factor * (last - first)
    position = np.clip(factor * (attribute.low - first) + between, 0, span)
    if span > largest:
        position = (position.astype(np.float64) * (largest / span)).astype(np.int64)
    return position, max(min(span, largest), 1)

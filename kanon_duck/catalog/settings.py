"""Reads the options of a masked view and checks them against the source's columns, but not yet its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from kanon_duck.catalog.column_names import CLASS, FROM_RELEASE, TO_RELEASE, WEIGHT, cells
from kanon_duck.catalog.options import (
    CAPTURE,
    EFFORT,
    FULL_DOMAIN,
    LONGEST_SEARCH,
    MAINTENANCE,
    METHODS,
    ON_DELETE,
    P_SENSITIVE_METHODS,
    PATIENCE,
)
from kanon_duck.encoding.numeric import is_numeric
from kanon_duck.errors import KanonError
from kanon_duck.hierarchy import FLAT, root
from kanon_duck.privacy.models import PrivacyModel, SensitiveAttribute, read_model
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.source import columns as source_columns
from kanon_duck.runtime.source import find_source

COLUMN = "column of the source"


@dataclass(frozen=True)
class QuasiIdentifier:
    """A quasi-identifier as declared.

    Attributes
    ----------
    name : str
        The source's column.
    column_type : str
        Its DuckDB type.
    hierarchy : str or None
        Name of the hierarchy, 'flat' included; None for a numeric one.
    step, domain
        As typed, None where left to the default.
    fixed_domain, fixed_bulk : tuple of int or None
        The domain in steps that an earlier release was made with, and the bulk of its values (see
        `kanon_duck.encoding.bulk`).
    """

    name: str
    column_type: str
    hierarchy: str | None
    step: Any = None
    domain: tuple[Any, Any] | None = None
    fixed_domain: tuple[int, int] | None = None
    fixed_bulk: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Settings:
    """The settings of a masked view.

    Attributes
    ----------
    view : tuple of str
        Schema and name of the view.
    name : str
        The name by which `kanon.masked_views` lists it.
    source : str
        The source as typed.
    query : sqlglot expression
        The SELECT that reads it.
    source_warnings : list of str
        What of it may change although no table does.
    columns : dict
        DuckDB type of each column of the source; in its order, but those of earlier releases first.
    key, keep : list of str
    sensitive : dict
        Sensitive columns with the hierarchy of each, or None.
    quasi_identifiers : list of QuasiIdentifier
        In the order of the columns.
    model : PrivacyModel
    method : str
    effort : str or float
        Of the method auto: light, medium, heavy, or seconds.
    max_suppression : float
        Largest share of the source's rows that may be left out for quality.
    method_options, weights : dict
    maintenance, capture : str
        See ``MAINTENANCE`` and ``CAPTURE``.
    secure, independent : bool
    on_delete : str
        Of a secure view, see ``ON_DELETE``; "remove" of others, as I3M- does.
    reserve : float
        Share of new cohorts that carry one counterfeit from the start.
    patience : int
        Releases that a person may wait for a better place.
    seed : int
    allow_unsafe_keep : list of str
    derive_from : str or None
        Name of the masked view of whose classes those of this one are unions.
    """

    view: tuple[str, str]
    name: str
    source: str
    query: exp.Query
    source_warnings: list[str]
    columns: dict[str, str]
    key: list[str]
    quasi_identifiers: list[QuasiIdentifier]
    sensitive: dict[str, str | None]
    keep: list[str]
    model: PrivacyModel
    method: str
    effort: str | float
    max_suppression: float
    method_options: dict[str, Any]
    weights: dict[str, float]
    maintenance: str
    capture: str
    secure: bool
    independent: bool
    on_delete: str
    reserve: float
    patience: int
    seed: int
    allow_unsafe_keep: list[str]
    derive_from: str | None

    @property
    def has_counterfeits(self) -> bool:
        """Whether released classes may have rows of nobody; then readers see the share of people as ``weight``."""
        return self.secure and (self.on_delete == "counterfeit" or self.reserve > 0)

    def weights_in_order(self) -> list[float]:
        """The weight of each quasi-identifier."""
        return [self.weights.get(each.name, 1.0) for each in self.quasi_identifiers]

    def roles(self) -> dict[str, list[str]]:
        """The columns of each role, by the role's name in private tables."""
        return {
            "key": self.key,
            "quasi_identifier": [each.name for each in self.quasi_identifiers],
            "sensitive": list(self.sensitive),
            "kept": self.keep,
            "unit": [] if self.model.unit is None else [self.model.unit],
        }


def read_settings(call: Call, known: Mapping[str, str] | None = None) -> Settings:
    """Read the options of create_masked_view.

    Parameters
    ----------
    call : Call
    known : mapping, optional
        The columns that earlier releases have used, by which the source's are spelled and ordered now.

    Raises
    ------
    KanonError
        For every option that is missing, of the wrong form, or names what is not there.
    """
    given = call.arguments
    view = view_parts(call, read.text(given, "view_name"))
    source = read.text(given, "source")
    found = find_source(call, source, "source")
    columns = _as_known(dict(source_columns(call, found.query)), known or {})
    key = read.columns(given, "key", columns, COLUMN)
    secure = read.boolean(given, "secure", True)
    if not key and secure:
        raise KanonError(
            "key is missing: a secure masked view must know its people again at every refresh; name the column(s) "
            "that identify a row, or accept secure => false"
        )
    method = _method(given)
    maintenance = _maintenance(given, method, secure)
    sensitive = _sensitive(call, columns)
    keep = read.columns(given, "keep", columns, COLUMN)
    keep.sort(key=list(columns).index)
    unit = None if given.get("unit") is None else read.one_of("unit", read.text(given, "unit"), columns, COLUMN)
    settings = Settings(
        view=view,
        name=names.display(view if view[0] != "main" else view[1:]),
        source=source,
        query=found.query,
        source_warnings=found.warnings,
        columns=columns,
        key=key,
        quasi_identifiers=read_quasi_identifiers(call, columns),
        sensitive=sensitive,
        keep=keep,
        model=read_model(given, _sensitive_attributes(call, sensitive, columns), unit),
        method=method,
        effort=_effort(given, method),
        max_suppression=_max_suppression(given, method),
        method_options=_method_options(given, method),
        weights={},
        maintenance=maintenance,
        capture=read.choice(given, "capture", CAPTURE, "diff"),
        secure=secure,
        independent=read.boolean(given, "independent", False),
        on_delete=_on_delete(given, secure),
        reserve=_reserve(given, secure),
        patience=_patience(given, secure),
        seed=read.integer(given, "seed", 0, 0),
        allow_unsafe_keep=read.columns(given, "allow_unsafe_keep", keep, "kept column"),
        derive_from=given.get("derive_from"),
    )
    _check_method(settings)
    _check_secure(settings)
    settings.weights.update(_weights(given, settings))
    _check_roles(settings)
    _check_released_names(settings)
    return settings


def _as_known(columns: dict[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The source's columns, those that readers know first, as they know them.

    Guarantee: a source whose columns stand in another order, or are written in another case, is the same source.

    Raises
    ------
    KanonError
        When one of them is gone.
    """
    spelled = {read.fold(name): name for name in known}
    found = {spelled.get(read.fold(name), name): column_type for name, column_type in columns.items()}
    gone = [name for name in known if name not in found]
    if gone:
        columns_gone = f"column {gone[0]}" if len(gone) == 1 else f"columns {', '.join(gone)}"
        raise KanonError(
            f"source: {columns_gone}, which the view was made with, {'is' if len(gone) == 1 else 'are'} gone from the "
            "source: put back what is missing, or drop the masked view and make it again"
        )
    return {name: found[name] for name in known} | found


def _on_delete(given: read.Arguments, secure: bool) -> str:
    """What becomes of deleted people's classes; without ``secure``, classes follow I3M-."""
    on_delete = read.choice(given, "on_delete", ON_DELETE, "retire" if secure else "remove")
    if not secure and on_delete != "remove":
        raise KanonError(f"on_delete is {read.shown(on_delete)}, which only a secure masked view can do: leave it out")
    return on_delete


def _reserve(given: read.Arguments, secure: bool) -> float:
    """Share of new cohorts with a counterfeit."""
    value = given.get("reserve")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value <= 1:
        raise KanonError(f"reserve is {read.shown(value)}: it must be a number from 0 to 1")
    if value and not secure:
        raise KanonError(f"reserve is {read.shown(value)}, which only a secure masked view can have: leave it out")
    return float(value)


def _patience(given: read.Arguments, secure: bool) -> int:
    """Releases that a person may wait for a better place."""
    patience = read.integer(given, "patience", PATIENCE, 0)
    if patience != PATIENCE and not secure:
        raise KanonError(f"patience is {patience}, which only a secure masked view can have: leave it out")
    return patience


def _check_secure(settings: Settings) -> None:
    """Secure releases are proved safe for k, l and p, of people; other models have no such proof."""
    if not settings.secure:
        return
    model = settings.model
    unproved = [
        name for name in ("entropy_l", "recursive_cl", "alpha", "t", "unit") if getattr(model, name) is not None
    ]
    unproved += ["protected"] * any(each.protected for each in model.attributes)
    for name in [*settings.sensitive, *settings.keep]:
        if "INTERVAL" in settings.columns[name]:
            raise KanonError(
                f"column {name} is {settings.columns[name]}, of which DuckDB compares different values as equal, so "
                "that nothing could be proved: cast it in the source, or accept secure => false"
            )
    if settings.method == FULL_DOMAIN:
        raise KanonError(
            f"method is {read.shown(settings.method)}, which makes all classes anew at every refresh and so cannot be "
            "secure: choose another method, or accept that readers compare releases with secure => false"
        )
    if unproved:
        raise KanonError(
            f"{unproved[0]} is set, but secure releases are proved safe for k, l and p alone: leave it out, or accept "
            "that readers compare releases with secure => false"
        )


def view_parts(call: Call, given: str) -> tuple[str, str]:
    """Schema and name of a masked view, from its name as typed."""
    parts = names.parse(given)
    if len(parts) > 3:
        raise KanonError(f"view_name is {read.shown(given)}: it has more parts than database, schema and name")
    if len(parts) == 3 and parts[0].lower() != call.catalog.lower():
        raise KanonError(
            f"view_name is {read.shown(given)}: a masked view is made in the current database {call.catalog}, "
            f"where its private tables are; USE {parts[0]} first"
        )
    schema, name = (parts[-2], parts[-1]) if len(parts) > 1 else (call.schema, parts[-1])
    known = [
        row[0]
        for row in call.database.rows(
            "SELECT schema_name FROM duckdb_schemas() "
            "WHERE database_name = ? AND (NOT internal OR schema_name = 'main')",
            [call.catalog],
        )
        if row[0].split("_")[0] != "kanon"
    ]
    if read.fold(schema).split("_")[0] == "kanon":
        raise KanonError(f"view_name is {read.shown(given)}: schema {schema} is kanon_duck's own; choose another")
    return read.one_of("view_name", schema, known, "schema"), name


def read_quasi_identifiers(call: Call, columns: dict[str, str]) -> list[QuasiIdentifier]:
    """The quasi-identifiers in any of their three spellings."""
    given = call.arguments.get("quasi_identifiers")
    if not given:
        raise KanonError(
            "quasi_identifiers is missing: name the columns that an intruder may know, as in {'age': 'numeric'}"
        )
    if isinstance(given, str):
        given = [given]
    known = [row[0] for row in call.database.rows("SELECT hierarchy FROM kanon.hierarchies")]
    if isinstance(given, list):
        specifications = dict.fromkeys(read.names(call.arguments, "quasi_identifiers"))
        if len(specifications) < len(given):
            raise KanonError(f"quasi_identifiers names a column twice: {', '.join(given)}")
    else:
        specifications = read.mapping(call.arguments, "quasi_identifiers")
    found: dict[str, QuasiIdentifier] = {}
    for name, specification in specifications.items():
        column = read.one_of("quasi_identifiers", name, columns, COLUMN)
        if column in found:
            raise KanonError(f"quasi_identifiers names column {column} twice")
        found[column] = _quasi_identifier(column, columns[column], specification, known)
    return [found[column] for column in columns if column in found]


def _quasi_identifier(name: str, column_type: str, specification: Any, known: list[str]) -> QuasiIdentifier:
    """One quasi-identifier: a type or hierarchy, a structure, or nothing (then it is inferred)."""
    argument = f"quasi_identifiers.{name}"
    details = specification if isinstance(specification, dict) else {"type": specification}
    for option in details:
        if option not in ("type", "step", "domain"):
            raise KanonError(f"{argument} has the option {read.shown(option)}: there are type, step and domain")
    kind = details.get("type")
    if kind is None:
        hierarchies = [each for each in known if each.lower() == name.lower()]
        kind = (
            hierarchies[0]
            if hierarchies
            else "numeric"
            if is_numeric(column_type) and column_type != "BOOLEAN"
            else "flat"
        )
    if not isinstance(kind, str):
        raise KanonError(f"{argument} is {read.shown(kind)}: it must be numeric, flat or the name of a hierarchy")
    if kind.lower() == "numeric":
        if not is_numeric(column_type):
            raise KanonError(
                f"{argument} is numeric, but column {name} is {column_type}: declare it flat or with a hierarchy, "
                "or cast it in the source"
            )
        domain = details.get("domain")
        if domain is not None and (not isinstance(domain, list) or len(domain) != 2 or None in domain):
            raise KanonError(f"{argument}.domain is {read.shown(domain)}: give its two ends, as in [0, 100]")
        return QuasiIdentifier(name, column_type, None, details.get("step"), tuple(domain) if domain else None)
    hierarchy = read.one_of(argument, kind, ["numeric", FLAT, *known], "type or hierarchy")
    for option in ("step", "domain"):
        if details.get(option) is not None:
            raise KanonError(f"{argument}.{option} is for numeric quasi-identifiers; {hierarchy} is a hierarchy")
    return QuasiIdentifier(name, column_type, hierarchy)


def _sensitive(call: Call, columns: dict[str, str]) -> dict[str, str | None]:
    """Sensitive columns in the source's order, from a list or with a hierarchy each."""
    given = call.arguments.get("sensitive")
    named = given if isinstance(given, dict) else read.columns(call.arguments, "sensitive", columns, COLUMN)
    pairs = named if isinstance(named, dict) else dict.fromkeys(named)
    known = [row[0] for row in call.database.rows("SELECT hierarchy FROM kanon.hierarchies")]
    sensitive: dict[str, str | None] = {}
    for name, tree in pairs.items():
        column = read.one_of("sensitive", name, columns, COLUMN)
        if column in sensitive:
            raise KanonError(f"sensitive names {column} twice: name it once")
        if tree is not None and not isinstance(tree, str):
            raise KanonError(f"sensitive.{name} is {read.shown(tree)}: it must be the name of a hierarchy")
        sensitive[column] = (
            None if tree is None else read.one_of(f"sensitive.{name}", tree, [FLAT, *known], "hierarchy")
        )
    return {name: sensitive[name] for name in columns if name in sensitive}


def _sensitive_attributes(
    call: Call, sensitive: dict[str, str | None], columns: dict[str, str]
) -> tuple[SensitiveAttribute, ...]:
    """The sensitive columns with their protected nodes."""
    protected: dict[str, list[str]] = {}
    for name in (nodes := read.mapping(call.arguments, "protected")):
        column = read.one_of("protected", name, sensitive, "sensitive column")
        hierarchy = sensitive[column]
        if hierarchy is None:
            raise KanonError(
                f"protected names {column}, which has no hierarchy: name one, as in sensitive => {{'{column}': 'icd9'}}"
            )
        protected[column] = _protected_nodes(call, f"protected.{column}", read.names(nodes, name), hierarchy)
    return tuple(
        SensitiveAttribute(name, columns[name], hierarchy, protected.get(name, []))
        for name, hierarchy in sensitive.items()
    )


def _protected_nodes(call: Call, argument: str, nodes: list[str], hierarchy: str) -> list[str]:
    """Nodes of a hierarchy that are to count as one value each; below the root, where all values would be one."""
    known = [
        label
        for (label,) in call.database.rows(
            "SELECT DISTINCT ancestor FROM kanon.hierarchy_nodes WHERE lower(hierarchy) = lower(?)", [hierarchy]
        )
    ]
    for node in nodes:
        if node == root(call.database, hierarchy):
            raise KanonError(
                f"{argument} names the root {read.shown(node)}, where all values are one: name nodes below"
            )
        if known and node not in known:  # the nodes of a rule are nowhere listed
            read.one_of(argument, node, known, f"node of hierarchy {hierarchy}")
            raise KanonError(f"{argument} names {read.shown(node)}: write it as hierarchy {hierarchy} does")
    return nodes


def _method(given: read.Arguments) -> str:
    """The clustering method."""
    return read.choice(given, "method", METHODS, "auto")


def _maintenance(given: read.Arguments, method: str, secure: bool) -> str:
    """How a refresh makes classes."""
    if method == FULL_DOMAIN:
        maintenance = read.choice(given, "maintenance", MAINTENANCE, "static")
        if maintenance != "static":
            raise KanonError(
                f"maintenance is {read.shown(maintenance)}, but method {method} makes all classes anew at every "
                "refresh: leave it out, or say static"
            )
        return maintenance
    maintenance = read.choice(given, "maintenance", MAINTENANCE, "incremental")
    if secure and maintenance != "incremental":
        raise KanonError(
            f"maintenance is {read.shown(maintenance)}, which is not secure: leave it out, or accept that readers "
            "compare releases with secure => false"
        )
    return maintenance


def _max_suppression(given: read.Arguments, method: str) -> float:
    """Largest share of the rows that may be left out for quality."""
    most = read.share(given, "max_suppression", 0.0)
    if most and method == FULL_DOMAIN:
        raise KanonError(f"max_suppression is {most}, but method {method} leaves nobody out: leave it out")
    return most


def _check_method(settings: Settings) -> None:
    """A method that is about p has one; `l` stands for it where p is not set, both count different values."""
    if settings.method in P_SENSITIVE_METHODS and settings.model.p is None and settings.model.l is None:
        raise KanonError(
            f"p is missing: method {settings.method} makes classes of p different sensitive values; set p (or l), "
            "or choose another method"
        )


def _effort(given: read.Arguments, method: str) -> str | float:
    """How long the method auto may search: a word, or seconds."""
    typed = given.get("effort")
    if isinstance(typed, int | float | Decimal) and not isinstance(typed, bool):
        if not 0 <= typed <= LONGEST_SEARCH:
            raise KanonError(f"effort is {typed}: seconds must lie between 0 and {LONGEST_SEARCH}")
        effort: str | float = float(typed)
    else:
        effort = read.choice(given, "effort", EFFORT, "medium", ", or a number of seconds")
    if method != "auto" and effort != "medium":
        raise KanonError(f"effort is {read.shown(typed)}, but method {method} has no effort to set: leave it out")
    return effort


def _method_options(given: read.Arguments, method: str) -> dict[str, Any]:
    """Options of the method, by name."""
    options = read.mapping(given, "method_options")
    for option in options:
        if option not in METHODS[method]:
            there = ", ".join(METHODS[method]) or "none"
            raise KanonError(f"method_options has {read.shown(option)}, but the options of {method} are: {there}")
    return options


def _weights(given: read.Arguments, settings: Settings) -> dict[str, float]:
    """Weights of quasi-identifiers in the search."""
    weights: dict[str, float] = {}
    known = [each.name for each in settings.quasi_identifiers]
    for name, weight in read.mapping(given, "weights").items():
        column = read.one_of("weights", name, known, "quasi-identifier")
        if isinstance(weight, bool) or not isinstance(weight, int | float | Decimal) or not 1e-6 <= weight <= 1e6:
            raise KanonError(f"weights.{name} is {read.shown(weight)}: it must be a number from 0.000001 to 1000000")
        if column in weights:
            raise KanonError(f"weights names {column} twice")
        weights[column] = float(weight)
    return weights


def _check_roles(settings: Settings) -> None:
    """A column has one role."""
    roles: dict[str, str] = {}
    words = {
        "key": "key",
        "quasi_identifier": "quasi_identifiers",
        "sensitive": "sensitive",
        "kept": "keep",
        "unit": "unit",
    }
    for role, columns in settings.roles().items():
        for column in columns:
            if role == "unit" and column in settings.key:  # a person may be part of what identifies a row
                continue
            if column in roles:
                raise KanonError(
                    f"{words[role]} names {column}, which {roles[column]} names already: a column has one role"
                )
            roles[column] = words[role]


def _check_released_names(settings: Settings) -> None:
    """A numeric quasi-identifier x is released as x, x_min and x_max: no other released column has these names.

    Guarantee: no released column has the name of one that released rows have for our own use.
    """
    arguments = {"quasi_identifier": "quasi_identifiers", "sensitive": "sensitive", "kept": "keep"}
    released = {read.fold(name): arguments[role] for role in arguments for name in settings.roles()[role]}
    own = (CLASS, FROM_RELEASE, TO_RELEASE, *((WEIGHT,) if settings.has_counterfeits else ()))
    for name in own:
        if name in released:
            raise KanonError(
                f"{released[name]} names {name}, which is a column of kanon_duck's own beside the released ones: "
                "give it another name in a SELECT"
            )
    for quasi_identifier in settings.quasi_identifiers:
        for name in cells(quasi_identifier.name, quasi_identifier.hierarchy is None)[1:]:
            if read.fold(name) in released:
                raise KanonError(
                    f"quasi_identifiers.{quasi_identifier.name} would be released with a column {name}, which the "
                    "source has too: give that one another name in a SELECT"
                )
            released[read.fold(name)] = "quasi_identifiers"


def declared(quasi_identifiers: list[QuasiIdentifier]) -> dict[str, Any]:
    """The argument quasi_identifiers that leaves nothing to be inferred: later hierarchies change no meaning."""
    return {
        each.name: {"type": each.hierarchy or "numeric", "step": each.step, "domain": each.domain}
        for each in quasi_identifiers
    }


def hierarchies_used(settings: Settings) -> set[str]:
    """Names of the hierarchies that a masked view with these settings uses."""
    declared = [each.hierarchy for each in settings.quasi_identifiers] + list(settings.sensitive.values())
    return {name for name in declared if name is not None and name != FLAT}


def standing_warnings(settings: Settings) -> list[str]:
    """What the owner should know of every release with these settings."""
    unhidden = () if settings.model.on_values else settings.sensitive
    warnings = [f"{name} is released without l, p, alpha or t" for name in unhidden] + settings.source_warnings
    return warnings + [f"{name} is released unchanged although it is linkable" for name in settings.allow_unsafe_keep]

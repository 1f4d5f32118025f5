"""What readers are given of a masked view: the rows of a release, and what they are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from kanon_duck.catalog.column_names import CLASS, FROM_RELEASE, WEIGHT, cells
from kanon_duck.catalog.tables import released_table, slots_table
from kanon_duck.catalog.views import MaskedView, declared_model
from kanon_duck.errors import KanonError
from kanon_duck.privacy.models import ON_VALUES, PrivacyModel
from kanon_duck.release.slots import has_slots
from kanon_duck.runtime.call import Call

MARK = "kanon_duck: release "
"""What a target says of itself, so that no table or file of somebody's else is ever replaced."""

EARLIER = "releases"
"""The schema of earlier releases in a published DuckDB file."""


@dataclass(frozen=True)
class Content:
    """One release of a masked view, as it is published.

    Attributes
    ----------
    view : MaskedView
    release : int
    released_at : datetime
    table : str
        Name of the table in the target.
    rows : sqlglot query
        The released rows.
    types : dict
        DuckDB's type of each column, as published.
    model : PrivacyModel
        Declared when the release was made.
    cells : list of str
        Columns that show quasi-identifiers; their values make a class.
    comment : str
    column_comments : dict
    """

    view: MaskedView
    release: int
    released_at: datetime
    table: str
    rows: exp.Select
    types: dict[str, str]
    model: PrivacyModel
    cells: list[str]
    comment: str
    column_comments: dict[str, str]

    @property
    def is_current(self) -> bool:
        """Whether the release is the one that the masked view shows."""
        return self.release == self.view.release

    @property
    def in_order(self) -> exp.Select:
        """The released rows, sorted by what they show.

        Guarantee: the order in which rows are published follows from what they show and from nothing else. The current
        release of a secure view is stored in such an order (`kanon_duck.release.make_current`); other rows are sorted.
        """
        if self.is_current and self.view.secure:
            return self.rows
        return self.rows.order_by(*(exp.column(name, quoted=True) for name in self.types))


def current(call: Call, view: MaskedView) -> Content:
    """The current release of a masked view."""
    return _content(call, view, view.release, view.view)


def earlier(call: Call, view: MaskedView) -> list[Content]:
    """The earlier releases that may be given away together with the current one.

    Guarantee: of a secure view these are only releases of the present series, which are proved safe together.
    """
    database, first = call.database, view.first_release
    if view.secure and view.derive_from is None:  # a derived view is of one series, which cannot end before it
        if not has_slots(database, view.number):
            return []  # made by an early kanon_duck, which proved nothing
        first = max(first, database.value(f"SELECT min(born) FROM {slots_table(view.number)}") or view.release)
    releases = database.rows(
        "SELECT release FROM kanon_private.releases WHERE view_number = ? AND release >= ? AND release < ? "
        "ORDER BY release",
        [view.number, first, view.release],
    )
    return [_content(call, view, release, f"{view.view}_{release}") for (release,) in releases]


def refuse_same_names(views: list[MaskedView]) -> None:
    """Refuse masked views that would be one table of the target.

    Raises
    ------
    KanonError
        When a view is named twice, or two views of different schemas have the same name.
    """
    seen: dict[str, str] = {}
    for view in views:
        other = seen.setdefault(view.view.lower(), view.name)
        if other != view.name:
            raise KanonError(
                f"view_name has {other} and {view.name}, which would both be table {view.view} of the target: "
                "publish them into different targets"
            )
    if len(seen) < len(views):
        raise KanonError("view_name has a masked view twice: name each once")


def _content(call: Call, view: MaskedView, release: int, table: str) -> Content:
    columns = dict(_released_columns(call, view))
    model = declared_model(call.database, view, release)
    released_at = call.database.value(
        "SELECT released_at FROM kanon_private.releases WHERE view_number = ? AND release = ?", [view.number, release]
    )
    own = _own_comments(call, view)
    described = f"{MARK}{release} of masked view {view.name}, {released_at:%Y-%m-%d}; {model_text(model)}"
    told = dict(_column_comments(view, model))
    return Content(
        view=view,
        release=release,
        released_at=released_at,
        table=table,
        rows=_rows(view, release, columns),
        types={name: _published_type(kind) for name, kind in columns.items()},
        model=model,
        cells=[cell for name in view.quasi_identifiers for cell in view.cells(name)],
        comment=_joined(own.get(None), described),
        column_comments={name: _joined(own.get(name), told[name]) for name in columns},
    )


def _released_columns(call: Call, view: MaskedView) -> Iterator[tuple[str, str]]:
    """Names and types of the columns that readers see, in their order."""
    table = released_table(view.name)
    yield from call.database.rows(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? "
        "AND table_name = ? AND column_name NOT IN (?, ?) ORDER BY column_index",
        [call.catalog, table.db, table.name, CLASS, FROM_RELEASE],
    )


def _published_type(released: str) -> str:
    """The type of a published column: clients that know no ENUM get its text."""
    return "VARCHAR" if released.startswith("ENUM(") and not released.endswith("]") else released


def _rows(view: MaskedView, release: int, columns: dict[str, str]) -> exp.Select:
    """The rows of a release.

    Guarantee: they are read from the table of released rows, never from the source or what else the owner has put in
    the place of the masked view.
    """
    relation: exp.Expression = released_table(view.name)
    if release != view.release:
        name, number = exp.Literal.string(view.name), exp.Literal.number(release)
        relation = exp.Table(this=exp.func("kanon.as_of", name, number, dialect="duckdb"))
    selected = [
        exp.cast(exp.column(name, quoted=True), "VARCHAR").as_(name, quoted=True)
        if _published_type(kind) != kind
        else exp.column(name, quoted=True)
        for name, kind in columns.items()
    ]
    return exp.select(*selected).from_(relation)


def model_text(model: PrivacyModel) -> str:
    """The declared models in words: 'k = 5, l = 3 for diagnosis'."""
    values = [f"{name} = {_written(getattr(model, name))}" for name in ON_VALUES if getattr(model, name) is not None]
    protected = [node for each in model.attributes for node in each.protected]
    if protected:
        values.append(f"protected {', '.join(protected)}")
    of_values = f", {', '.join(values)} for {', '.join(each.name for each in model.attributes)}" if values else ""
    return f"k = {model.k}{of_values}{f', counted by {model.unit}' if model.unit else ''}"


def _written(value: object) -> str:
    """A model's number, or the pair of recursive (c, l)-diversity."""
    return f"({value[0]:g}, {value[1]})" if isinstance(value, tuple) else f"{value:g}"


def _column_comments(view: MaskedView, model: PrivacyModel) -> Iterator[tuple[str, str]]:
    """What readers are told of each released column."""
    for name, declared in view.quasi_identifiers.items():
        numeric = declared["type"] == "numeric"
        shown, *bounds = cells(name, numeric)
        if numeric:
            yield shown, f"quasi-identifier: the interval of the class, in steps of {declared['step']}"
            yield from zip(bounds, ("lower end of the interval", "upper end of the interval"), strict=True)
        else:
            yield shown, f"quasi-identifier: the common label of the class in hierarchy {declared['type']}"
    for name in view.sensitive:
        yield name, "sensitive: as it is in the source"
    for name in view.keep:
        yield name, "kept as it is in the source"
    yield WEIGHT, "people of the class / rows of the class: sum(weight) counts people"


def _own_comments(call: Call, view: MaskedView) -> dict[str | None, str]:
    """What the owner has written on the masked view (None) and on its columns; never what stands on the source."""
    place = [call.catalog, view.schema, view.view]
    where = "database_name = ? AND schema_name = ? AND {} = ? AND comment IS NOT NULL"
    rows = call.database.rows(f"SELECT NULL, comment FROM duckdb_views() WHERE {where.format('view_name')}", place)
    rows += call.database.rows(
        f"SELECT column_name, comment FROM duckdb_columns() WHERE {where.format('table_name')}", place
    )
    return dict(rows)


def _joined(own: str | None, described: str) -> str:
    return described if own is None else f"{own} ({described})"

"""Makes a release the current one: writes its rows, checks them as a reader sees them, makes the masked view."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlglot import exp

from kanon_duck.catalog.column_names import CLASS, FROM_RELEASE
from kanon_duck.catalog.columns import private_names, released_columns
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import classes_table, released_table
from kanon_duck.catalog.views import now
from kanon_duck.encoding.loss import average_class_size
from kanon_duck.encoding.microdata import Attribute, NumericAttribute
from kanon_duck.encoding.numeric import written_step
from kanon_duck.errors import RefusedReleaseError
from kanon_duck.intake.numeric_columns import bound_texts
from kanon_duck.privacy.check import class_sizes, released_measures
from kanon_duck.privacy.diversity import measure, persons
from kanon_duck.release.classes import (
    Ended,
    class_losses,
    class_summary,
    least_diversity,
    released_people,
    released_rows,
)
from kanon_duck.release.rewrite import replace_table
from kanon_duck.release.shown import show_release
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import Database

REPORT = "nothing was released; please report this as an error of kanon_duck"


MOST_CELLS = 4_000_000
"""Cells of a release that are written anew within about 0.2 seconds on two cores."""

IN_PLACE = (
    f"a release of more than {MOST_CELLS:,} cells is not written anew for each refresh where secure is false: what "
    "changed last stands last, and a count of distinct values in the table's statistics may be that of earlier "
    "releases; CALL kanon.rebuild writes it anew"
)
"""What the owner is told of a release in which only changed classes were written."""


def make_current(call: Call, view_number: int, settings: Settings, release: int, is_first: bool) -> list[str]:
    """Write all rows of a release, check them as a reader would, and only then, of the first, make the masked view.

    Returns warnings.

    Raises
    ------
    RefusedReleaseError
        When the released rows break the declared model; they are never visible then.
    """
    warnings = _write_anew(call, view_number, settings)
    _check(call.database, view_number, settings, release)
    if is_first:
        show_release(call.database, call.catalog, settings.view, settings.name)
    return warnings


def make_changes_current(call: Call, settings: Settings, ended: Ended) -> list[str]:
    """Write the rows of the next release, and check the changed classes as a reader would.

    All rows are written anew, as for a first release. Only where that takes long, and the masked view is not secure,
    rows of unchanged classes are left alone, unless the extreme of a column leaves with the others.

    Returns warnings.

    Raises
    ------
    RefusedReleaseError
        When rows of these classes break the declared model; nothing is visible then.
    """
    columns = len(released_columns(settings))
    rows = call.database.value(f"SELECT sum(rows) FROM {classes_table(ended.view_number)}")
    if settings.secure or rows * columns <= MOST_CELLS:
        warnings = _write_anew(call, ended.view_number, settings)
    else:
        warnings = _write_in_place(call, settings, ended)
    _check(call.database, ended.view_number, settings, ended.release)
    return warnings


def _write_anew(call: Call, view_number: int, settings: Settings) -> list[str]:
    """Write all released rows into a new table; returns warnings.

    Guarantee: the order of the rows, and every statistic that DuckDB keeps of them, follow from what they show and
    from nothing else. Neither the order of the source nor any earlier release plays a part.
    """
    return replace_table(call, released_table(settings.name), _rows(view_number, settings))


def _write_in_place(call: Call, settings: Settings, ended: Ended) -> list[str]:
    """Write the rows of changed reader classes anew, and all rows where an extreme has left; returns warnings."""
    database, table, gone = call.database, released_table(settings.name), "temp.kanon_gone"
    changed = exp.column(CLASS, quoted=True).isin(query=exp.select("reader_class").from_(ended.table))
    columns = [exp.column(name, quoted=True).sql(dialect="duckdb") for name, _ in released_columns(settings)]
    ends = [
        end
        for place, column in enumerate(columns)
        for end in (
            f"min({column}) AS low_{place}",
            f"max({column}) AS high_{place}",
            f"count({column}) < count(*) AS has_null_{place}",
        )
    ]
    ended_rows = exp.select(*ends, dialect="duckdb").from_(table).where(changed)
    database.execute(f"CREATE OR REPLACE TEMPORARY TABLE {gone} AS {ended_rows.sql(dialect='duckdb')}")
    database.execute(exp.delete(table, where=changed))
    new = exp.column("from_release").eq(ended.release)
    database.execute(exp.insert(_rows(ended.view_number, settings, new), table, copy=False))
    # a row is soon found that is at least as extreme, unless the extreme has left
    at_least = [
        f"({needed} OR EXISTS (SELECT 1 FROM {table.sql(dialect='duckdb')} WHERE {as_extreme} LIMIT 1))"
        for place, column in enumerate(columns)
        for needed, as_extreme in (
            (f"low_{place} IS NULL", f"{column} <= (SELECT low_{place} FROM {gone})"),
            (f"high_{place} IS NULL", f"{column} >= (SELECT high_{place} FROM {gone})"),
            (f"NOT has_null_{place}", f"{column} IS NULL"),
        )
    ]
    if database.value(f"SELECT {' AND '.join(at_least)} FROM {gone}"):
        return [IN_PLACE]
    return _write_anew(call, ended.view_number, settings)


def _rows(view_number: int, settings: Settings, which: exp.Condition | None = None) -> exp.Select:
    """Released rows, all or those of some classes, sorted by the cells of their class and by what else they show.

    Classes are sorted with a list of what is shown of their members, because sorting their rows costs twice as much.
    Nothing but the unfolding of these lists comes after the sort: a join does not keep the order of either side. A
    row's own columns go through this as one struct, so that they are sorted once, not once for each of them.
    """
    classes = exp.select("*").from_(exp.to_table(classes_table(view_number)))
    if which is not None:
        classes = classes.where(which)
    names = private_names(settings, "sensitive", "kept")
    own = f"struct_pack({', '.join(f'{name} := {name}' for name in names)})" if names else "NULL"
    rows = (
        exp.select("reader_class", "class", f"{own} AS own", dialect="duckdb")
        .from_(f"{released_rows(view_number, settings)} AS released", dialect="duckdb")
        .join(classes.subquery(), using=["class"])
        .order_by("reader_class")  # lists grow fast where their elements follow each other
    )
    together = exp.select("min(class) AS class", "list(own ORDER BY own) AS own", dialect="duckdb")
    together = together.from_(rows.subquery()).group_by("reader_class")
    in_order = (
        exp.select("*")
        .from_(together.subquery())
        .join(classes.subquery(), using=["class"])  # any class of a reader class has its cells
        .order_by(*(source.name for _, source in released_columns(settings) if source.table == "classes"))
    )
    kept = exp.Star(except_=[exp.to_identifier("own")])
    unfolded = exp.select(kept, "unnest(own) AS own").from_(in_order.subquery())
    return exp.select(
        *(
            exp.column(source.name, "own" if source.table == "members" else None).as_(name, quoted=True)
            for name, source in released_columns(settings)
        ),
        exp.column("reader_class").as_(CLASS, quoted=True),
        exp.column("from_release").as_(FROM_RELEASE, quoted=True),
    ).from_(unfolded.subquery())


def _shown(settings: Settings) -> exp.Select:
    """The current release as readers see it."""
    columns = (exp.column(name, quoted=True) for name, _ in released_columns(settings))
    return exp.select(*columns).from_(released_table(settings.name))


def _check(database: Database, view_number: int, settings: Settings, release: int) -> None:
    """Every class that a release is the first to show satisfies the models as a reader sees it, or nobody sees it."""
    cells = [name for name, source in released_columns(settings) if source.table == "classes"]
    new = exp.column(FROM_RELEASE, quoted=True).eq(release)
    sizes = class_sizes(database, _shown(settings).where(new), cells, settings.model)
    if not sizes.passes(settings.model):
        raise RefusedReleaseError(
            f"the release would have a class of {sizes.smallest} rows where k is {settings.model.k}: {REPORT}"
        )
    model = settings.model
    if model.on_size_alone:
        return
    whole = model.t is not None  # distances are to all rows, so every class is at a new one
    if model.unit is None:
        measures = released_measures(database, _shown(settings).where(exp.true() if whole else new), cells, model)
    else:
        changed = "" if whole else f"WHERE from_release = {int(release)}"
        measures = measure(database, model, f"(FROM {released_people(view_number)} {changed})", ["reader_class"])
    for found in measures:
        if not found.passed:
            of = f" of {found.attribute}" if found.attribute else ""
            raise RefusedReleaseError(
                f"the release would have a class whose {found.requirement}{of} is {found.achieved} where "
                f"{found.required} is required: {REPORT}"
            )


def in_force(database: Database, attributes: list[Attribute], settings: Settings) -> dict[str, dict[str, Any]]:
    """Type or hierarchy, step and domain of each quasi-identifier, as the release was made with them."""
    described: dict[str, dict[str, Any]] = {}
    for declared, attribute in zip(settings.quasi_identifiers, attributes, strict=True):
        if isinstance(attribute, NumericAttribute):
            described[declared.name] = {
                "type": "numeric",
                "step": written_step(declared.column_type, declared.step),
                "domain": bound_texts(database, attribute, attribute.domain),
            }
        else:
            described[declared.name] = {"type": declared.hierarchy}
    return described


@dataclass(frozen=True)
class PeopleCounts:
    """What happened to people from one release to the next.

    Attributes
    ----------
    inserted, updated, deleted : int
        Rows of the source that are new in the release, have other values, or are gone from it.
    moved : int
        Rows that are in another class although their quasi-identifiers are the same.
    waiting, suppressed : int
        Rows of the source that the release holds back until they can be shown, and left out for quality.
    counterfeits : int
        Released rows of nobody.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    moved: int = 0
    waiting: int = 0
    suppressed: int = 0
    counterfeits: int = 0


def describe_release(
    database: Database, view_number: int, settings: Settings, release: int, cause: str, counts: PeopleCounts
) -> tuple[Row, dict[str, float]]:
    """The row of a release in the history, recomputed from the classes, and the loss of each quasi-identifier."""
    sizes = class_summary(database, view_number, settings.model)
    losses, loss = class_losses(database, view_number, settings)
    l_achieved, max_frequency = least_diversity(database, view_number)
    k_achieved: float | None = sizes.smallest
    if settings.model.unit is not None:
        k_achieved = persons(database, settings.model, released_people(view_number), ["reader_class"]).achieved
    released = {name for name, _ in released_columns(settings)}
    return {
        "release": release,
        "released_at": now(),
        "cause": cause,
        "rows": sizes.rows,
        "classes": sizes.classes,
        **asdict(counts),
        "k_achieved": k_achieved,
        "l_achieved": l_achieved,
        "max_frequency": max_frequency,
        "information_loss": loss,
        "information_loss_per_row": loss / sizes.rows,
        "discernibility": sizes.discernibility,
        "average_class_size": average_class_size(sizes.rows, sizes.classes, settings.model.k),
        "vulnerable_rows": None,
        "method": settings.method,
        "not_released": [name for name in settings.columns if name not in released],
    }, losses

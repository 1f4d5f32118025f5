"""Keeps what earlier releases showed and the current one no longer shows, for `kanon.as_of`.

Rows and the cells of their classes stand in two tables, joined by class and by the release that first showed the
class so: where a class changes, its cells are written once, not for each row.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from kanon_duck.catalog.column_names import CLASS, FROM_RELEASE, TO_RELEASE
from kanon_duck.catalog.columns import released_columns
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import history_classes_table, history_table, released_table, retired_table
from kanon_duck.catalog.views import MaskedView
from kanon_duck.release.classes import Ended
from kanon_duck.release.rewrite import replace_table
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database

VERSION = (CLASS, FROM_RELEASE)
"""What tells one version of a class from others."""


def create_history(database: Database, settings: Settings) -> None:
    """Make the empty tables for rows and cells that releases to come will no longer show."""
    released = exp.select(*_quoted(_cells(settings)), *_quoted(VERSION)).from_(released_table(settings.name)).limit(0)
    database.execute(exp.Create(this=history_classes_table(settings.name), kind="TABLE", expression=released))
    ended = exp.select(*_quoted(_own(settings)), *_quoted(VERSION), _number(0).as_(TO_RELEASE, quoted=True))
    database.execute(
        exp.Create(
            this=history_table(settings.name),
            kind="TABLE",
            expression=ended.from_(released_table(settings.name)).limit(0),
        )
    )


def keep_history(database: Database, settings: Settings, ended: Ended) -> None:
    """Copy rows of the reader classes that a release, the first without them, ends, and the cells of these."""
    cells = exp.select(
        *(exp.column(source).as_(name, quoted=True) for name, source in _cells(settings).items()),
        "reader_class",
        "from_release",
    )
    cells = cells.from_(exp.maybe_parse(ended.one_of_each(), dialect="duckdb").subquery("classes"))
    database.execute(exp.insert(cells, history_classes_table(settings.name), copy=False))
    rows = exp.select(*_quoted(_own(settings)), *_quoted(VERSION), _number(ended.release))
    rows = rows.from_(released_table(settings.name))
    rows = rows.where(exp.column(CLASS, quoted=True).isin(query=exp.select("reader_class").from_(ended.table)))
    database.execute(exp.insert(rows, history_table(settings.name), copy=False))


def forget_before(call: Call, view: MaskedView, release: int) -> int:
    """Erase what only releases before some release have shown; returns the number of rows.

    What stays is written anew: no statistic of the tables tells of what has gone.
    """
    rows, classes = history_table(view.name), history_classes_table(view.name)
    old = exp.column(TO_RELEASE, quoted=True) <= _number(release)
    count = call.database.value(exp.select(exp.Count(this=exp.Star())).from_(rows).where(old))
    replace_table(call, rows, exp.select("*").from_(rows).where(exp.not_(old)))
    versions = exp.select(*_quoted(VERSION)).from_(rows)
    used = exp.select("*").from_(classes).join(versions.subquery(), using=list(VERSION), join_type="semi")
    replace_table(call, classes, used)
    return int(count)


def retire_released_rows(database: Database, view: MaskedView) -> None:
    """Take all released rows from readers, and keep them with the private history for later checks."""
    released, rows, classes = released_table(view.name), history_table(view.name), history_classes_table(view.name)
    ended = exp.select("*").from_(rows).join(classes, using=list(VERSION))
    kept = exp.to_table(retired_table(view.number))
    database.execute(exp.Create(this=kept, kind="TABLE", expression=ended))
    database.execute(exp.Insert(this=kept, by_name=True, expression=exp.select("*").from_(released)))
    for table in (rows, classes, released):
        database.execute(exp.Drop(tables=[table], kind="TABLE"))


def _cells(settings: Settings) -> dict[str, str]:
    """Released columns that show cells, and the column of the classes that holds each."""
    return {name: source.name for name, source in released_columns(settings) if source.table == "classes"}


def _own(settings: Settings) -> list[str]:
    """Released columns that show members' own values."""
    return [name for name, source in released_columns(settings) if source.table == "members"]


def _quoted(names: Iterable[str]) -> list[exp.Column]:
    """Columns by name."""
    return [exp.column(name, quoted=True) for name in names]


def _number(release: int) -> exp.Expression:
    """The number of a release."""
    return exp.cast(exp.Literal.number(release), "BIGINT")

"""Reads the series of a masked view's own releases from its private history, and counts vulnerable rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import (
    classes_table,
    members_table,
    stays_table,
    values_table,
    versions_table,
    vulnerable_table,
)
from kanon_duck.inference.bounds import LeastPossible
from kanon_duck.inference.channels import vulnerable
from kanon_duck.inference.comparison import comparisons
from kanon_duck.inference.compatibility import Part, Region, below_labels, part_of_numbers
from kanon_duck.inference.rows import Names
from kanon_duck.inference.series import Integers, Series, series_of_classes
from kanon_duck.intake.hashing import hash_of, person, tuple_hash, typed_columns
from kanon_duck.intake.snapshot import key_text
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.release.slots import slot_rows
from kanon_duck.release.stays import cell_columns, has_history, own_columns
from kanon_duck.runtime.arrow import array, numbers
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database

IN_ORDER = "ORDER BY reader_class, from_release"


Columns = dict[str, NDArray[Any]]
"""Stays, or names, column by column."""


class Stays(NamedTuple):
    """Who was in which version of a class, those of the current release included.

    Attributes
    ----------
    table : str
        Temporary table of them.
    columns : dict
        The same, read.
    """

    table: str
    columns: Columns


@dataclass(frozen=True)
class OwnSeries:
    """The series of one masked view or more, or a part of it.

    Attributes
    ----------
    series : Series
        Release r of the first view is number r - 1, those of the next views follow.
    person : uint64, shape (people,)
        Numbers of the people in the private history, rising.
    value : uint64, shape (values,)
        Hash of each value, rising.
    codes : dict of int64, shape (values,)
        The value of each attribute that is released as it is, sensitive ones first, in each tuple.
    """

    series: Series
    person: NDArray[np.uint64]
    value: NDArray[np.uint64]
    codes: dict[str, Integers]


def requirements(model: PrivacyModel, codes: dict[str, Integers], secure: bool) -> list[LeastPossible]:
    """What every set of people that can be told apart must have: rows, and values of each sensitive attribute.

    Models on frequencies and distances are not looked at; nodes that stand for several values are not either. Where
    nothing is released of people as it is, all rows of a class are alike: comparing releases then tells no more than
    who is in which class, which the intruder knows anyway, and nothing is required.
    """
    if not codes:
        return []
    found = [LeastPossible(None, None, model.k, alike=secure)]
    least = max(model.l or 0, model.p or 0)
    if least:
        found += [LeastPossible(attribute.name, codes[attribute.name], least) for attribute in model.attributes]
    return found


def read_stays(
    database: Database, view_number: int, settings: Settings, release: int, people: str | None = None
) -> Stays:
    """Read who was in which version of a class, up to a release that is written already.

    Parameters
    ----------
    view_number, release : int
        Of the masked view, and its current release.
    people : str, optional
        SQL for a relation with a column ``person``: read only what has to do with these, all versions of classes that
        they have been in, and the present classes of everybody in those. By default everything.
    """
    table = _collect(database, view_number, settings, release, people)
    nobody = "hash(reader_class, from_release, row_number() OVER ())"  # a number that no person has
    query = f"SELECT * REPLACE (coalesce(person, {nobody}) AS person), person IS NULL AS is_nobody FROM {table}"
    return Stays(table, database.numpy(query))


def series_of_stays(attributes: list[str], views: list[tuple[int, Columns]]) -> OwnSeries:
    """Put stays together to a series.

    Parameters
    ----------
    attributes : list of str
        What is released of people as it is, by the order of the private columns.
    views : list of (int, dict)
        Number of releases and stays of each masked view. People are the same where key and values are.
    """
    offsets = np.cumsum([0] + [releases for releases, _ in views])
    stays = {name: np.concatenate([columns[name] for _, columns in views]) for name in views[0][1]}
    view = np.repeat(np.arange(len(views)), [len(columns["person"]) for _, columns in views])
    people, of_person, person_number = _numbered(stays["person"])
    values, of_value, value_number = _numbered(stays["value"])
    span = int(stays["reader_class"].max(initial=0)) + 1
    first_release = stays["from_release"] + offsets[view] - 1
    _, of_version, group = np.unique(
        (view * span + stays["reader_class"]) * offsets[-1] + first_release, return_index=True, return_inverse=True
    )
    ends = (stays["to_release"] + offsets[view] - 1)[of_version]
    series = series_of_classes(
        len(people), int(offsets[-1]), person_number, group, first_release[of_version], ends, value_number[of_person]
    )
    series = replace(series, nobody=stays["is_nobody"][of_person])
    codes = {name: _numbered(stays[f"code_{place}"][of_value])[2] for place, name in enumerate(attributes)}
    return OwnSeries(series, people, values, codes)


def _numbered(hashes: NDArray[Any]) -> tuple[NDArray[np.uint64], Integers, Integers]:
    """Distinct hashes, the first place of each, and their numbers."""
    distinct, first, number = np.unique(np.asarray(hashes, np.uint64), return_index=True, return_inverse=True)
    return distinct, first, number.astype(np.int64)


def current_people(view_number: int, settings: Settings) -> str:
    """SQL for the people of the current release: who, in which class, and what is released of each."""
    own = ", ".join([f"{person(settings)} AS person", "reader_class", "from_release", *own_columns(settings)])
    classes = f"(SELECT class, reader_class, from_release FROM {classes_table(view_number)})"
    people = f"SELECT {own} FROM {members_table(view_number)} JOIN {classes} USING (class)"
    if settings.has_counterfeits:  # rows of nobody: their person is NULL
        nobody = ", ".join(["NULL AS person", "reader_class", "from_release", *own_columns(settings)])
        rows = f"{slot_rows(view_number, settings)} JOIN {classes} USING (class) WHERE NOT is_held"
        people += f" UNION ALL SELECT {nobody} FROM {rows}"
    return f"({people})"


def companions(view_number: int, settings: Settings, person_number: int) -> str:
    """SQL for the people who are, or have been, in a class with a person; for ``people`` of `read_stays`."""
    now, stays = current_people(view_number, settings), stays_table(view_number)
    of_person = f"WHERE person = {person_number}"
    return (
        f"(SELECT person FROM {now} SEMI JOIN (SELECT reader_class FROM {now} {of_person}) USING (reader_class) "
        f"UNION SELECT person FROM {stays} SEMI JOIN (SELECT reader_class, from_release FROM {stays} {of_person}) "
        "USING (reader_class, from_release))"
    )


def _collect(database: Database, view_number: int, settings: Settings, release: int, people: str | None) -> str:
    """Put the stays together that are to be looked at; returns the table of them."""
    collected = "temp.kanon_stays"
    now, stays = current_people(view_number, settings), stays_table(view_number)
    columns = typed_columns(settings, "sensitive", "kept")
    hashes = "".join(f", {hash_of([column])} AS code_{place}" for place, column in enumerate(columns))
    numbered = f"person, reader_class, {tuple_hash(settings)} AS value{hashes}"
    chosen, standing = "", ""
    if people is not None:
        database.execute(f"CREATE OR REPLACE TEMPORARY TABLE kanon_near AS SELECT DISTINCT person FROM {people}")
        database.execute(
            "CREATE OR REPLACE TEMPORARY TABLE kanon_touched AS SELECT DISTINCT reader_class, from_release "
            f"FROM {stays} SEMI JOIN temp.kanon_near USING (person)"
        )
        chosen = "SEMI JOIN temp.kanon_touched USING (reader_class, from_release)"
    versions = f"(SELECT reader_class, from_release, to_release FROM {versions_table(view_number)})"
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {collected} AS SELECT {numbered}, from_release, to_release "
        f"FROM {stays} {chosen} JOIN {versions} USING (reader_class, from_release)"
    )
    if people is not None:
        around = f"(SELECT person FROM {collected} UNION SELECT person FROM temp.kanon_near)"
        database.execute(
            "CREATE OR REPLACE TEMPORARY TABLE kanon_standing AS SELECT DISTINCT reader_class "
            f"FROM {now} SEMI JOIN {around} USING (person)"
        )
        standing = "SEMI JOIN temp.kanon_standing USING (reader_class)"
    database.execute(
        f"INSERT INTO {collected} BY NAME SELECT {numbered}, from_release, CAST({release + 1} AS BIGINT) AS to_release "
        f"FROM {now} {standing}"
    )
    return collected


@dataclass(frozen=True)
class ViewNames:
    """What is written for the hashes of one view's stays.

    Attributes
    ----------
    labels, regions : list
        Of the versions of classes, by reader class and first release.
    texts : dict
        Hash of each value, rising, as ``value``, and texts of the whole, ``text_0``, and its attributes.
    keys : dict
        Numbers of ``person``, rising, and ``key``, of those who are members now.
    """

    labels: list[str]
    regions: list[Region]
    texts: Columns
    keys: Columns


def read_names(database: Database, view_number: int, settings: Settings, stays: str) -> ViewNames:
    """Read what is written for the stays of a table that `read_stays` has made."""
    quasi = ", ".join(
        f"{exp.Literal.string(each.name + ' ').sql(dialect='duckdb')} || coalesce(quasi_identifier_{place}, 'NULL')"
        for place, each in enumerate(settings.quasi_identifiers)
    )
    cells = ", ".join(["reader_class", "from_release", *cell_columns(settings)])
    classes = f"SELECT DISTINCT ON (reader_class) {cells} FROM {classes_table(view_number)}"
    cells_shown = "temp.kanon_cells"
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {cells_shown} AS SELECT {cells}, concat_ws(', ', {quasi}) AS label FROM ("
        f"SELECT {cells} FROM {versions_table(view_number)} UNION ALL {classes}) "
        f"SEMI JOIN {stays} USING (reader_class, from_release)"
    )
    columns = own_columns(settings)
    shown = [f"coalesce(CAST({column} AS VARCHAR), 'NULL')" for column in columns]
    texts = [f"concat_ws(', ', {', '.join(shown)})" if shown else "'a row'", *shown]
    selected = ", ".join(f"any_value({text}) AS text_{place}" for place, text in enumerate(texts))
    own = ", ".join(columns) if columns else "NULL"
    held = f"(SELECT {own} FROM {stays_table(view_number)} UNION ALL SELECT {own} FROM {members_table(view_number)})"
    value = f"{tuple_hash(settings)} AS value"
    key = key_text([(name, exp.column(f"key_{place}")) for place, name in enumerate(settings.key)])
    texts_of_values = database.arrow(
        f"SELECT {value}, {selected} FROM {held} GROUP BY value "
        f"HAVING value IN (SELECT value FROM {stays}) ORDER BY value"
    )
    keys = database.arrow(
        f"SELECT {person(settings)} AS person, {key.sql(dialect='duckdb')} AS key "
        f"FROM {members_table(view_number)} ORDER BY person"
    )
    return ViewNames(
        [label for (label,) in database.rows(f"SELECT label FROM {cells_shown} {IN_ORDER}")],
        _regions(database, view_number, settings, cells_shown),
        _columns(texts_of_values),
        _columns(keys),
    )


def _columns(table: pa.Table) -> Columns:
    """Numbers and texts as arrays."""
    return {
        name: array(column) if pa.types.is_integer(column.type) else np.array(column.to_pylist(), object)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _regions(database: Database, view_number: int, settings: Settings, cells: str) -> list[Region]:
    """The regions of the versions of classes; of a label, as far as members have had values below it."""
    parts: list[list[Part]] = []
    for place, each in enumerate(settings.quasi_identifiers):
        name = f"quasi_identifier_{place}"
        if each.hierarchy is None:
            rows = database.rows(f"SELECT {name}, {name}_min, {name}_max FROM {cells} {IN_ORDER}")
            parts.append([part_of_numbers(*row) for row in rows])
        else:
            known = (
                f"(SELECT value FROM {values_table(view_number)} WHERE quasi_identifier = {place} UNION SELECT NULL)"
            )
            covered = below_labels(database, each.hierarchy, name, cells, known)
            parts.append([covered[label] for (label,) in database.rows(f"SELECT {name} FROM {cells} {IN_ORDER}")])
    return [list(region) for region in zip(*parts, strict=True)]


def names_of(own: OwnSeries, views: list[tuple[str, int, ViewNames]]) -> Names:
    """What is written for the numbers of a series, from the name, the releases and the names of each view."""
    numbers = [release for _, releases, _ in views for release in range(1, releases + 1)]
    titles = [
        f"{name} release {release}" if len(views) > 1 else f"release {release}"
        for name, releases, _ in views
        for release in range(1, releases + 1)
    ]
    attributes = [None, *own.codes]
    values: dict[str | None, NDArray[Any]] = {name: np.empty(len(own.value), object) for name in attributes}
    keys = np.full(len(own.person), None, object)
    for _, _, names in views:
        places = np.searchsorted(own.value, names.texts["value"])
        for place, texts in enumerate(values.values()):
            texts[places] = names.texts[f"text_{place}"]
        known = np.isin(names.keys["person"], own.person)
        keys[np.searchsorted(own.person, names.keys["person"][known])] = names.keys["key"][known]
    labels = [label for _, _, names in views for label in names.labels]
    regions = [region for _, _, names in views for region in names.regions]
    return Names(numbers, titles, labels, {name: list(texts) for name, texts in values.items()}, regions, list(keys))


MOST_PEOPLE = 50_000
"""People whom a release may change and still be compared with all earlier ones at once: for more of them it takes
longer than everything else."""

NOT_COUNTED = (
    f"vulnerable rows were not counted, because it changes more than {MOST_PEOPLE} people or follows one that was not "
    "counted: FROM kanon.inference_channels looks at everybody"
)
"""What the owner is told of such a release."""


def _counted(database: Database, view_number: int, release: int) -> bool:
    """Whether the vulnerable rows of a release were counted."""
    query = "SELECT vulnerable_rows FROM kanon_private.releases WHERE view_number = ? AND release = ?"
    return database.value(query, [view_number, release]) is not None


def count_vulnerable(
    call: Call, view_number: int, settings: Settings, release: int, near: bool
) -> tuple[int | None, list[str]]:
    """How many rows of the current release are those of people of whom the releases so far tell too much.

    Who has once been vulnerable stays so, since no release takes anything back.

    Parameters
    ----------
    near : bool
        Look at the people whom the release may have made vulnerable; else at everybody, as under new requirements.
        At everybody, too, where the release before was not counted.

    Returns
    -------
    int or None
        None where people cannot be known again, and where more than ``MOST_PEOPLE`` are to be looked at.
    list of str
        What the owner should know of that.
    """
    if not has_history(settings):
        return None, []
    if release == 1:
        return 0, []
    database, table = call.database, vulnerable_table(view_number)
    now = current_people(view_number, settings)
    near = near and _counted(database, view_number, release - 1)
    people = database.value(f"SELECT count(*) FROM {now}" + (f" WHERE from_release = {release}" if near else ""))
    if people > MOST_PEOPLE:
        return None, [NOT_COUNTED]
    near_by = f"(SELECT person FROM {now} WHERE from_release = {release})" if near else None
    stays = read_stays(database, view_number, settings, release, near_by)
    known = series_of_stays([*settings.sensitive, *settings.keep], [(release, stays.columns)])
    compared = comparisons(known.series, [release - 1] if near else None, call.checkpoint)
    found = vulnerable(known.series, requirements(settings.model, known.codes, settings.secure), compared)
    if not near:
        database.execute(f"DELETE FROM {table}")
    database.register("found", pa.table({"person": numbers(known.person[found])}))
    database.execute(f"INSERT INTO {table} FROM found ANTI JOIN {table} USING (person)")
    database.unregister("found")
    return int(database.value(f"SELECT count(*) FROM {now} SEMI JOIN {table} USING (person)")), []

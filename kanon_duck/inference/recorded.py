"""The series of a masked view's own releases, from its private history, and how many of its rows are vulnerable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.arrow import numbers
from kanon_duck.catalog import (
    classes_table,
    members_table,
    released_table,
    stays_table,
    versions_table,
    vulnerable_table,
)
from kanon_duck.classes import AFFECTED
from kanon_duck.inference.bounds import Requirement
from kanon_duck.inference.channels import vulnerable
from kanon_duck.inference.conclusion import comparisons, conclude
from kanon_duck.inference.series import Integers, Series, series_of_classes
from kanon_duck.members import hash_of
from kanon_duck.membership import has_history, own_columns, person
from kanon_duck.models import PrivacyModel
from kanon_duck.settings import Settings
from kanon_duck.sql import Database

STAYS = "temp.kanon_stays"
"""Who was in which version of a class, those of the current release included."""


@dataclass(frozen=True)
class Recorded:
    """A masked view's series, or a part of it.

    Attributes
    ----------
    series : Series
        Release r is number r - 1.
    person : uint64, shape (people,)
        Numbers of the people in the private history.
    reader_class, from_release : int64, shape (groups,)
        The version of a class that each group is.
    value : uint64, shape (values,)
        Hash of each value.
    codes : list of int64, shape (values,)
        Codes of the values of each sensitive attribute.
    """

    series: Series
    person: NDArray[np.uint64]
    reader_class: Integers
    from_release: Integers
    value: NDArray[np.uint64]
    codes: list[Integers]


def requirements(model: PrivacyModel, codes: list[Integers]) -> list[Requirement]:
    """What every set of people that can be told apart must have: rows, and values of each sensitive attribute.

    Models on frequencies and distances are not looked at; nodes that stand for several values are not either.
    """
    found = [Requirement(None, None, model.k)]
    least = max(model.l or 0, model.p or 0)
    if least:
        found += [
            Requirement(attribute.name, values, least)
            for attribute, values in zip(model.attributes, codes, strict=True)
        ]
    return found


def read_recorded(database: Database, number: int, settings: Settings, release: int, near: bool) -> Recorded:
    """Read the series that ends with a release, which is written already.

    Parameters
    ----------
    number, release : int
        Of the masked view, and its current release.
    near : bool
        Only what has to do with the classes that the release has changed: their people, all versions of classes that
        these have been in, and the present classes of the people of those.
    """
    _collect(database, number, settings, release, near)
    attributes = len(settings.sensitive)
    hashes = "".join(f", hash(sensitive_{place}) AS code_{place}" for place in range(attributes))
    data = database.numpy(
        f"SELECT person, reader_class, from_release, to_release, {hash_of(own_columns(settings))} AS value{hashes} "
        f"FROM {STAYS}"
    )
    people, of_person, person_number = _numbered(data["person"])
    values, of_value, value_number = _numbered(data["value"])
    versions, of_version, group = np.unique(
        np.stack([data["reader_class"], data["from_release"]]), axis=1, return_index=True, return_inverse=True
    )
    series = series_of_classes(
        len(people), release, person_number, group.ravel(), versions[1] - 1, data["to_release"][of_version] - 1,
        value_number[of_person],
    )  # fmt: skip
    codes = [_numbered(data[f"code_{place}"][of_value])[2] for place in range(attributes)]
    return Recorded(series, people, versions[0], versions[1], values, codes)


def _numbered(hashes: NDArray[Any]) -> tuple[NDArray[np.uint64], Integers, Integers]:
    """Distinct hashes, the first place of each, and their numbers."""
    distinct, first, number = np.unique(np.asarray(hashes, np.uint64), return_index=True, return_inverse=True)
    return distinct, first, number.astype(np.int64)


def _collect(database: Database, number: int, settings: Settings, release: int, near: bool) -> None:
    """Put the stays together that are to be looked at."""
    own = ", ".join(["person", "reader_class", *own_columns(settings)])
    now = (
        f"(SELECT {person(settings)} AS person, reader_class{''.join(f', {name}' for name in own_columns(settings))} "
        f"FROM {members_table(number)} JOIN (SELECT class, reader_class FROM {classes_table(number)}) USING (class))"
    )
    stays, chosen, standing = stays_table(number), "", ""
    if near:
        changed = f"(SELECT person FROM {now} SEMI JOIN {AFFECTED} USING (reader_class))"
        database.execute(
            "CREATE OR REPLACE TEMPORARY TABLE kanon_touched AS SELECT DISTINCT reader_class, from_release "
            f"FROM {stays} SEMI JOIN {changed} USING (person)"
        )
        chosen = "SEMI JOIN temp.kanon_touched USING (reader_class, from_release)"
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {STAYS} AS SELECT {own}, from_release, to_release "
        f"FROM {stays} {chosen} JOIN {_only(versions_table(number))} USING (reader_class, from_release)"
    )
    if near:
        standing = (
            f"SEMI JOIN (SELECT reader_class FROM {AFFECTED} UNION SELECT reader_class FROM {now} SEMI JOIN {STAYS} "
            "USING (person)) USING (reader_class)"
        )
    released = (
        exp.select('"kanon_class" AS reader_class', 'min("kanon_from_release") AS from_release', dialect="duckdb")
        .from_(released_table(settings.name))
        .group_by("ALL")
    )
    database.execute(
        f"INSERT INTO {STAYS} BY NAME SELECT {own}, from_release, CAST({release + 1} AS BIGINT) AS to_release "
        f"FROM {now} {standing} JOIN ({released.sql(dialect='duckdb')}) USING (reader_class)"
    )


def _only(versions: str) -> str:
    """The releases that showed each version."""
    return f"(SELECT reader_class, from_release, to_release FROM {versions})"


def count_vulnerable(database: Database, number: int, settings: Settings, release: int, near: bool) -> int | None:
    """How many rows of the current release are those of people of whom the releases so far tell too much.

    Who has once been vulnerable stays so, since no release takes anything back.

    Parameters
    ----------
    near : bool
        Look at the people whom the release may have made vulnerable; else at everybody, as under new requirements.

    Returns
    -------
    int or None
        None where people cannot be known again.
    """
    if not has_history(settings):
        return None
    table = vulnerable_table(number)
    recorded = read_recorded(database, number, settings, release, near)
    compared = list(comparisons(recorded.series, [release - 1] if near else None))
    conclusion = conclude(recorded.series, compared)
    found = vulnerable(recorded.series, requirements(settings.model, recorded.codes), compared, conclusion)
    if not near:
        database.execute(f"DELETE FROM {table}")
    database.register("found", pa.table({"person": numbers(recorded.person[found])}))
    database.execute(f"INSERT INTO {table} FROM found ANTI JOIN {table} USING (person)")
    database.unregister("found")
    now = f"(SELECT {person(settings)} AS person FROM {members_table(number)} WHERE class IS NOT NULL)"
    return int(database.value(f"SELECT count(*) FROM {now} SEMI JOIN {table} USING (person)"))

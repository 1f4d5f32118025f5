"""Builds the series of releases from tables that any tool has released, and the people who are in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from kanon_duck.catalog.column_names import cells
from kanon_duck.catalog.settings import QuasiIdentifier, read_quasi_identifiers
from kanon_duck.errors import KanonError
from kanon_duck.inference.bounds import LeastPossible
from kanon_duck.inference.compatibility import Part, Region, below_labels, part_of_numbers
from kanon_duck.inference.regions import series_of_regions
from kanon_duck.inference.rows import Names
from kanon_duck.inference.series import Integers, Series, Sets
from kanon_duck.intake.snapshot import create_temporary, key_text
from kanon_duck.kernels.regions import covering_classes
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database
from kanon_duck.runtime.source import columns as source_columns
from kanon_duck.runtime.source import read_source

POPULATION, PEOPLE = "temp.kanon_population", "temp.kanon_people"
ROWS, CONTENTS = "temp.kanon_audited", "temp.kanon_contents"


@dataclass(frozen=True)
class Audit:
    """What is to be audited.

    Attributes
    ----------
    quasi_identifiers : list of QuasiIdentifier
    sensitive, keep : list of str
    releases : int
    """

    quasi_identifiers: list[QuasiIdentifier]
    sensitive: list[str]
    keep: list[str]
    releases: int

    def cells(self, place: int) -> list[str]:
        """Private names of the released columns of a quasi-identifier."""
        return cells(f"quasi_identifier_{place}", self.quasi_identifiers[place].hierarchy is None)

    def all_cells(self) -> list[str]:
        """Private names of all cells."""
        return [cell for place in range(len(self.quasi_identifiers)) for cell in self.cells(place)]

    def own(self) -> list[str]:
        """Private names of what is released as it is."""
        return [f"sensitive_{place}" for place in range(len(self.sensitive))] + [
            f"kept_{place}" for place in range(len(self.keep))
        ]


def read_released(call: Call) -> tuple[Series, Names, dict[str, Integers]]:
    """Read the arguments of ``kanon.audit``, the releases and the people.

    Raises
    ------
    KanonError
        For every argument that is missing or wrong, and where people and releases do not fit.
    """
    given = call.arguments
    releases = read.names(given, "releases")
    if not releases:
        raise KanonError("releases is missing: name the released tables in their order, as in ['january', 'february']")
    population = read_source(call, read.text(given, "population"), "population")
    columns = dict(source_columns(call, population))
    key = [read.one_of("key", name, columns, "column of the population") for name in read.names(given, "key")]
    if not key:
        raise KanonError("key is missing: name the column(s) of the population that identify a person")
    declared = read_quasi_identifiers(call, columns)
    sensitive, keep = read.names(given, "sensitive"), read.names(given, "keep")
    audit = Audit(declared, sensitive, keep, len(releases))
    call.phase("reading")
    _read_people(call, audit, population, columns, key)
    for number, text in enumerate(releases):
        _read_release(call, audit, number, text)
    return _series(call.database, audit)


def requirements(call: Call, codes: dict[str, Integers]) -> list[LeastPossible]:
    """What must stay possible, from the arguments ``k`` and ``l``."""
    given = call.arguments
    found = []
    if given.get("l") is not None:
        diverse = read.integer(given, "l", None, 2)
        if not codes:
            raise KanonError("l is given without sensitive columns: name these, or give k")
        found += [LeastPossible(name, values, diverse) for name, values in codes.items()]
    if given.get("k") is not None:
        found.append(LeastPossible(None, None, read.integer(given, "k", None, 2)))
    if not found:
        raise KanonError("k and l are missing: say what every set of people must have, as in l => 2")
    return found


def _read_people(call: Call, audit: Audit, population: exp.Query, columns: dict[str, str], key: list[str]) -> None:
    """Read everybody with the quasi-identifiers, and the releases that they are in."""
    known = {read.fold(name): name for name in columns}
    given = [known.get(name) for name in ("first_release", "last_release")]
    for name in given:
        if name is not None and columns[name] not in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"):
            raise KanonError(f"population: column {name} is {columns[name]}: it must be a whole number from 1 on")
    # the caller's text stands beside no function: a macro of the caller's might have its name
    query = exp.select(
        *(exp.column(name, quoted=True).as_(f"key_{place}") for place, name in enumerate(key)),
        *(
            exp.column(each.name, quoted=True).as_(f"quasi_identifier_{place}")
            for place, each in enumerate(audit.quasi_identifiers)
        ),
        *(
            (exp.null() if name is None else exp.column(name, quoted=True)).as_(end)
            for name, end in zip(given, ("first_release", "last_release"), strict=True)
        ),
    ).from_(population.subquery("population"))
    create_temporary(call, POPULATION, query)
    text = key_text([(name, exp.column(f"key_{place}")) for place, name in enumerate(key)])
    call.database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {PEOPLE} AS SELECT {text.sql(dialect='duckdb')} AS key, "
        "COLUMNS('^quasi_identifier'), coalesce(first_release, 1) AS first_release, "
        f"coalesce(last_release, {audit.releases}) AS last_release FROM {POPULATION} ORDER BY rowid"
    )
    repeated = call.database.row(f"SELECT key FROM {PEOPLE} GROUP BY key HAVING count(*) > 1")
    if repeated is not None:
        raise KanonError(f"key {', '.join(key)} is not unique in the population: {read.shown(repeated[0])} comes twice")


def _read_release(call: Call, audit: Audit, number: int, text: str) -> None:
    """Read the rows of one release."""
    argument = f"releases[{number + 1}]"
    query = read_source(call, text, argument)
    columns = [name for name, _ in source_columns(call, query)]

    def column(name: str) -> exp.Column:
        return exp.column(read.one_of(argument, name, columns, f"column of {text}"), quoted=True)

    selected: list[exp.Expr] = [exp.cast(exp.Literal.number(number), "BIGINT").as_("release")]
    for place, each in enumerate(audit.quasi_identifiers):
        selected.append(exp.cast(column(each.name), "VARCHAR").as_(f"quasi_identifier_{place}"))
        if each.hierarchy is None:
            bounds = zip(cells(each.name, True)[1:], audit.cells(place)[1:], strict=True)
            selected += [column(released).as_(private) for released, private in bounds]
    for name, shown in zip(audit.own(), audit.sensitive + audit.keep, strict=True):
        selected.append(exp.cast(column(shown), "VARCHAR").as_(name))
    rows = exp.select(*selected).from_(query.subquery("released"))
    if number == 0:
        create_temporary(call, ROWS, rows)
    else:
        with call.in_callers_schema():
            call.database.execute(exp.insert(rows, exp.to_table(ROWS)))


def _series(database: Database, audit: Audit) -> tuple[Series, Names, dict[str, Integers]]:
    """Put classes and people together."""
    cells, own = audit.all_cells(), audit.own()
    value = f"dense_rank() OVER (ORDER BY {', '.join(own)}) - 1" if own else "0"
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE {CONTENTS} AS "
        f"SELECT *, dense_rank() OVER (ORDER BY release, {', '.join(cells)}) - 1 AS class, {value} AS value "
        f"FROM (SELECT release, {', '.join(cells + own)}, count(*) AS rows FROM {ROWS} GROUP BY ALL)"
    )
    data = database.numpy(f"SELECT class, value, rows FROM {CONTENTS} ORDER BY class, value")
    count = int(data["class"].max(initial=-1)) + 1
    stops = np.searchsorted(data["class"], np.arange(count), side="right")
    rows = data["rows"].astype(np.int64)
    contents = Sets(stops, data["value"].astype(np.int64), rows, rows, rows)
    release = database.numpy(f"SELECT DISTINCT class, release FROM {CONTENTS} ORDER BY class")["release"]
    class_stops = np.searchsorted(release, np.arange(audit.releases), side="right")
    people = int(database.value(f"SELECT count(*) FROM {PEOPLE}"))
    candidates = _candidates(database, audit, class_stops)
    series = series_of_regions(people, contents, class_stops, candidates)
    return series, *_names(database, audit)


def _candidates(database: Database, audit: Audit, class_stops: Integers) -> list[tuple[Integers, Integers]]:
    """Who may be in which class of each release, by quasi-identifiers."""
    tables: list[NDArray[np.bool_]] = []
    starts, widths = [], []
    of_people, of_classes = [], []
    for place, each in enumerate(audit.quasi_identifiers):
        name, cells = f"quasi_identifier_{place}", audit.cells(place)
        of_people.append(f"dense_rank() OVER (ORDER BY {name}) - 1 AS value_{place}")
        of_classes.append(f"dense_rank() OVER (ORDER BY {', '.join(cells)}) - 1 AS cell_{place}")
        table = _covers(database, name, cells, each)
        starts.append(sum(part.size for part in tables))
        widths.append(table.shape[1])
        tables.append(table)
    codes = database.numpy(f"SELECT {', '.join(of_people)}, first_release, last_release FROM {PEOPLE} ORDER BY rowid")
    people = np.stack([codes[f"value_{place}"] for place in range(len(tables))], axis=1).astype(np.int64)
    cells_of = database.numpy(f"SELECT DISTINCT class, {', '.join(of_classes)} FROM {CONTENTS} ORDER BY class")
    classes = np.stack([cells_of[f"cell_{place}"] for place in range(len(tables))], axis=1).astype(np.int64)
    covers = np.concatenate([table.ravel() for table in tables])
    found = []
    for release, stop in enumerate(class_stops):
        there = np.flatnonzero((codes["first_release"] <= release + 1) & (release + 1 <= codes["last_release"]))
        first = int(class_stops[release - 1]) if release else 0
        stops, number = covering_classes(people[there], classes[first:stop], np.array(starts), np.array(widths), covers)
        lengths = np.diff(stops, prepend=0)
        rows = int(database.value(f"SELECT count(*) FROM {ROWS} WHERE release = {release}"))
        if rows != len(there):
            raise KanonError(
                f"population has {len(there)} people in release {release + 1}, which has {rows} rows: name the people "
                "of each release by columns first_release and last_release"
            )
        if not lengths.all():
            key = database.value(f"SELECT key FROM {PEOPLE} WHERE rowid = {int(there[np.argmin(lengths)])}")
            raise KanonError(
                f"population: no class of release {release + 1} covers the person with key {read.shown(key)}: look "
                "whether the quasi-identifiers are those that the release was made from"
            )
        found.append((np.repeat(there, lengths), number + first))
    return found


def _covers(database: Database, name: str, cells: list[str], declared: QuasiIdentifier) -> NDArray[np.bool_]:
    """Whether a cell covers a value, for each value of the people and each cell of the classes."""
    if declared.hierarchy is None:
        covered = (
            f"CASE WHEN cells.{name}_min IS NOT NULL "
            f"THEN coalesce(value BETWEEN cells.{name}_min AND cells.{name}_max, false) "
            f"WHEN cells.{name} IS NULL THEN value IS NULL ELSE true END"
        )
    else:
        hierarchy = exp.Literal.string(declared.hierarchy).sql(dialect="duckdb")
        covered = f"kanon.covers({hierarchy}, cells.{name}, value)"
    data = database.numpy(
        f"""
        SELECT number, cells.code, coalesce({covered}, false) AS covered
        FROM (SELECT DISTINCT {name} AS value, dense_rank() OVER (ORDER BY {name}) - 1 AS number FROM {PEOPLE})
        CROSS JOIN (SELECT DISTINCT {", ".join(cells)}, dense_rank() OVER (ORDER BY {", ".join(cells)}) - 1 AS code
                    FROM {CONTENTS}) AS cells
        """
    )
    table = np.zeros((int(data["number"].max(initial=-1)) + 1, int(data["code"].max(initial=-1)) + 1), bool)
    table[data["number"], data["code"]] = data["covered"]
    return table


def _names(database: Database, audit: Audit) -> tuple[Names, dict[str, Integers]]:
    """What classes and values are called, and the codes of the sensitive attributes in the values."""
    shown = ", ".join(
        f"{exp.Literal.string(each.name + ' ').sql(dialect='duckdb')} || coalesce(quasi_identifier_{place}, 'NULL')"
        for place, each in enumerate(audit.quasi_identifiers)
    )
    labels = database.rows(f"SELECT DISTINCT class, concat_ws(', ', {shown}) FROM {CONTENTS} ORDER BY class")
    own = [f"coalesce({name}, 'NULL')" for name in audit.own()]
    whole = f"concat_ws(', ', {', '.join(own)})" if own else "'a row'"
    texts: dict[str | None, list[str]] = {}
    codes: dict[str, Integers] = {}
    texts[None] = [text for _, text in database.rows(f"SELECT DISTINCT value, {whole} FROM {CONTENTS} ORDER BY value")]
    for place, name in enumerate(audit.sensitive):
        data = database.rows(
            f"SELECT value, any_value({own[place]}), dense_rank() OVER (ORDER BY any_value({own[place]})) - 1 "
            f"FROM {CONTENTS} GROUP BY value ORDER BY value"
        )
        texts[name] = [text for _, text, _ in data]
        codes[name] = np.array([code for _, _, code in data], np.int64)
    releases = list(range(1, audit.releases + 1))
    keys = [key for (key,) in database.rows(f"SELECT key FROM {PEOPLE} ORDER BY rowid")]
    names = Names(
        releases,
        [f"release {number}" for number in releases],
        [label for _, label in labels],
        texts,
        _regions(database, audit),
        keys,
    )
    return names, codes


def _regions(database: Database, audit: Audit) -> list[Region]:
    """The regions of all classes; of a label, as far as there are people with values below it."""
    parts: list[list[Part]] = []
    for place, each in enumerate(audit.quasi_identifiers):
        cells = audit.cells(place)
        rows = database.rows(f"SELECT DISTINCT class, {', '.join(cells)} FROM {CONTENTS} ORDER BY class")
        if each.hierarchy is None:
            parts.append([part_of_numbers(label, low, high) for _, label, low, high in rows])
        else:
            name = f"quasi_identifier_{place}"
            covered = below_labels(database, each.hierarchy, name, CONTENTS, f"(SELECT {name} AS value FROM {PEOPLE})")
            parts.append([covered[label] for _, label in rows])
    return [list(region) for region in zip(*parts, strict=True)]

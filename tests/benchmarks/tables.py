"""The tables of the benchmarks: those that settings are chosen on, and those held out.

``CHOOSING`` and ``HELD_OUT`` name their tables; `open_table` makes a database with one of them in it. The
real ones are read from the folder that KANON_DUCK_DATA names; the made-up one comes from ``synthetic``.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

import kanon_duck
from kanon_duck.catalog.settings import read_settings
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.loss import information_loss
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.intake.encode import EncodedSnapshot, encode
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.release.generalization import generalize
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database
from tests.benchmarks import synthetic
from tests.test_real_data import ADULT_QUASI_IDENTIFIERS, load_adult


@dataclass(frozen=True)
class Table:
    """A table that stands in a database under its name, with a column ``id``.

    Attributes
    ----------
    name : str
    quasi_identifiers : list or dict
        As create_masked_view takes them.
    load : function
        Makes the table and its hierarchies from the data folder.
    """

    name: str
    quasi_identifiers: list[str] | dict[str, str]
    load: Callable[[duckdb.DuckDBPyConnection, Path], None]


def data_folder() -> Path | None:
    """The folder of the real data sets, where there is one."""
    folder = os.environ.get("KANON_DUCK_DATA")
    return Path(folder) if folder else None


def create_synthetic(connection: duckdb.DuckDBPyConnection, name: str, rows: int) -> None:
    """Make a made-up table, and its hierarchy."""
    connection.register("made_up", synthetic.table(rows, seed=1))
    connection.execute(f"CREATE TABLE {name} AS SELECT person_id AS id, * EXCLUDE (person_id) FROM made_up")
    connection.unregister("made_up")
    connection.execute("CALL kanon.create_hierarchy('postcode', prefix => 5)")


def _read(connection: duckdb.DuckDBPyConnection, name: str, file: Path, key: str, numeric: str | None) -> None:
    """A file of values that are separated by ';', all text but one column."""
    replaced = f"REPLACE (CAST({numeric} AS INTEGER) AS {numeric})" if numeric else ""
    connection.execute(
        f"CREATE TABLE {name} AS SELECT {key} AS id, * {replaced} FROM read_csv('{file}', delim = ';', all_varchar = true)"
    )


def _hierarchies(connection: duckdb.DuckDBPyConnection, folder: Path, columns: list[str]) -> None:
    for column in columns:
        levels = folder / f"{folder.name.split('_')[0]}_hierarchy_{column}.csv"
        connection.execute(f"CALL kanon.create_hierarchy('{column}', levels => '{levels}')")


def _published(
    name: str, file: str, categorical: list[str], numeric: str | None = None, key: str | None = None
) -> Table:
    """A data set whose folder holds a file of rows and a file ``..._hierarchy_COLUMN.csv`` for each hierarchy."""

    def load(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        _read(connection, name, folder / name / file, key or "row_number() OVER ()", numeric)
        _hierarchies(connection, folder / name, categorical)

    kinds = {column: column for column in categorical} | ({numeric: "numeric"} if numeric else {})
    return Table(name, kinds, load)


QUALITY_K = (3, 5, 10)
"""What both halves are clustered for."""

SPEED_K = 5
"""What speed is measured at."""

SENSITIVE = ", sensitive => 'diagnosis'"
"""An option for the made-up table."""

SYNTHETIC_ROWS = 100_000
ADULT = Table(
    "adult",
    ast.literal_eval(ADULT_QUASI_IDENTIFIERS),
    lambda connection, folder: load_adult(connection, folder / "adult"),
)
SYNTHETIC = Table(
    "synthetic",
    synthetic.QUASI_IDENTIFIERS,
    lambda connection, folder: create_synthetic(connection, "synthetic", SYNTHETIC_ROWS),
)
CUP = _published("cup", "cup.csv", ["ZIP", "GENDER", "INCOME", "STATE"], "AGE")
FARS = _published(
    "fars",
    "fars_subset.csv",
    ["iage", "irace", "ideathmon", "ideathday", "isex", "ihispanic", "istatenum", "iinjury"],
)
# its ages and places of birth have several paths for one label: ages are numbers, places are left out
ITALIA = _published("italia", "italia.csv", ["zip_code"], "age", "ID")
ADULT_ARX = _published(
    "adult_arx",
    "adult.csv",
    ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"],
)

CHOOSING = [ADULT, SYNTHETIC]
"""The constants of the engine were chosen on these (see ``settings``)."""

HELD_OUT = [CUP, FARS, ITALIA, ADULT_ARX]
"""Only reported on. ``adult_arx`` holds the people of ``adult``, under other hierarchies."""


def open_table(table: Table, folder: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory with one table and its hierarchies."""
    connection = kanon_duck.connect()
    table.load(connection, folder)
    return connection


def encoded(
    connection: duckdb.DuckDBPyConnection, table: str, quasi_identifiers: list[str] | dict[str, str]
) -> EncodedSnapshot:
    """The encoded rows of a table, for partitions that no method of ours has made."""
    database = Database(connection.cursor())
    arguments: dict[str, Any] = {
        "view_name": "none", "source": table, "key": "id", "k": 2, "quasi_identifiers": quasi_identifiers
    }  # fmt: skip
    catalog = str(database.value("SELECT current_database()"))
    call = Call(database, arguments, catalog=catalog)
    settings = read_settings(call)
    return encode(database, settings, take_snapshot(call, settings).table)


def encode_synthetic(rows: int) -> Encoding:
    """A made-up table as the search sees it."""
    with kanon_duck.connect() as connection:
        create_synthetic(connection, "synthetic", rows)
        return encoded(connection, "synthetic", synthetic.QUASI_IDENTIFIERS).microdata.encoding


def loss_per_row(microdata: Microdata, labels: NDArray[np.int64]) -> float:
    """Information loss per row of any partition, by the measure that all figures share.

    Rows that are left out, with label -1, count as if nothing were told of them: one for each quasi-identifier.
    """
    classes = generalize(microdata, labels)
    loss = information_loss(classes.sizes, classes.shares)[1]
    return (loss + np.count_nonzero(labels < 0) * len(microdata.attributes)) / len(labels)

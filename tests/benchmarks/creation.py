"""Figures of creating a masked view, each beside its goal and a baseline measured in the same run.

    python -m tests.benchmarks.creation OUTPUT [--rows 1000000]

writes ``creation.md``, ``creation.csv`` and two plots (loss against seconds on Adult, seconds against rows)
to the folder OUTPUT. Everything goes through SQL, warm; times are of the wall clock. The real data sets are
looked for in the folder that KANON_DUCK_DATA names; without it their part is left out, and said so.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import matplotlib
import numba
import numpy as np
import pandas as pd

import kanon_duck
from kanon_duck.call import Call, no_checkpoint
from kanon_duck.clustering.order import order
from kanon_duck.generalization import generalize
from kanon_duck.loss import information_loss
from kanon_duck.microdata import Microdata, encode, take_snapshot
from kanon_duck.settings import read_settings
from kanon_duck.sql import Database
from tests.benchmarks import synthetic
from tests.test_real_data import ADULT_QUASI_IDENTIFIERS, load_adult

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

ADULT_GOALS = {3: 0.24, 5: 0.38, 10: 0.60, 25: 0.98}
QUALITY_K = (3, 5, 10)


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    data: str
    rows: int
    k: int
    method: str
    loss: float
    seconds: float
    goal: str = ""
    baseline: str = ""


def mask(connection: duckdb.DuckDBPyConnection, source: str, quasi_identifiers: str, k: int, more: str = "") -> Figure:
    """Mask a table twice and drop the views; the figures of the second time, when everything is compiled."""
    for _ in range(2):
        started = time.perf_counter()
        connection.execute(
            f"CALL kanon.create_masked_view('benchmark', source => '{source}', key => 'id', k => {k}, "
            f"quasi_identifiers => {quasi_identifiers}, independent => true{more})"
        )
        seconds = time.perf_counter() - started
        [(rows, loss, method, passed)] = connection.execute(
            "SELECT r.rows, r.information_loss_per_row, r.method, c.passed "
            "FROM kanon.releases AS r, kanon.check('benchmark') AS c WHERE r.view_name = 'benchmark'"
        ).fetchall()
        assert passed
        connection.execute("CALL kanon.drop_masked_view('benchmark')")
    return Figure(source, rows, k, method, loss, seconds)


def encoded(connection: duckdb.DuckDBPyConnection, source: str, quasi_identifiers: Any) -> Microdata:
    """The encoded rows of a table, for baselines that are no method of ours."""
    database = Database(connection.cursor())
    arguments = {"view_name": "none", "source": source, "key": "id", "k": 2, "quasi_identifiers": quasi_identifiers}
    settings = read_settings(Call(database, arguments))
    take_snapshot(database, settings)
    return encode(database, settings)


def loss_of(microdata: Microdata, labels: np.ndarray) -> float:
    """Information loss per row of any partition, by the measure that all figures share."""
    classes = generalize(microdata, labels)
    return information_loss(classes.sizes, classes.shares)[1] / len(labels)


def every_k_rows(microdata: Microdata, k: int) -> float:
    """Loss per row of the same order, cut every k rows."""
    rows = microdata.encoding.rows
    labels = np.empty(rows, np.int64)
    labels[order(microdata.encoding, no_checkpoint)] = np.minimum(np.arange(rows) // k, rows // k - 1)
    return loss_of(microdata, labels)


def peer_mondrian(
    connection: duckdb.DuckDBPyConnection, microdata: Microdata, names: list[str], k: int
) -> Figure | None:
    """The Mondrian of the package anonypy on the first 3,000 rows of Adult, where the package is installed."""
    if importlib.util.find_spec("anonypy") is None:
        return None
    from anonypy.mondrian import Mondrian

    frame = connection.execute(f"SELECT {', '.join(names)} FROM adult_3000 ORDER BY id").df()
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype("category")
    started = time.perf_counter()
    partitions = Mondrian(frame, names).partition(k)
    seconds = time.perf_counter() - started
    label = np.empty(len(frame), np.int64)
    for number, rows in enumerate(partitions):
        label[rows] = number
    return Figure("adult_3000", len(frame), k, "anonypy mondrian", loss_of(microdata, label[microdata.row]), seconds)


def on_adult(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Figure]:
    """Goals and methods on Adult, and the peer on a part of it."""
    load_adult(connection, folder / "adult")
    figures = []
    for k, goal in ADULT_GOALS.items():
        base = mask(connection, "adult", ADULT_QUASI_IDENTIFIERS, k, ", method => 'k_member'")
        figures.append(base)
        for effort in ("light", "medium", "heavy") if k == 5 else ("medium",):
            figure = mask(connection, "adult", ADULT_QUASI_IDENTIFIERS, k, f", effort => '{effort}'")
            ratio = f"loss {figure.loss / base.loss:.2f} of k_member's"
            goals = f"loss {goal}, 2 s" if effort == "medium" else ""
            figures.append(Figure("adult", figure.rows, k, f"auto {effort}", figure.loss, figure.seconds, goals, ratio))
        figures.append(mask(connection, "adult", ADULT_QUASI_IDENTIFIERS, k, ", method => 'oka'"))
    connection.execute("CREATE TABLE adult_3000 AS FROM adult ORDER BY id LIMIT 3000")
    names = [name.strip("' ") for name in ADULT_QUASI_IDENTIFIERS.strip("[]").split(",")]
    microdata = encoded(connection, "adult_3000", names)
    # the encoded rows stand in the order of a hash; `row` tells which row of the table each one is
    peer = peer_mondrian(connection, microdata, names, 5)
    if peer is not None:
        ours = mask(connection, "adult_3000", ADULT_QUASI_IDENTIFIERS, 5)
        ratio = f"loss {ours.loss / peer.loss:.2f}, time {ours.seconds / peer.seconds:.2f} of anonypy's"
        figures += [peer, Figure("adult_3000", ours.rows, 5, "auto medium", ours.loss, ours.seconds, "", ratio)]
    return figures


def on_other_tables(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Figure]:
    """All methods on CUP, FARS and a made-up table of 100,000 rows: `auto` is to lose least everywhere."""
    read = (
        "CREATE TABLE {0} AS SELECT row_number() OVER () AS id, * FROM read_csv('{1}', delim = ';', all_varchar = true)"
    )
    connection.execute(read.format("cup", folder / "cup" / "cup.csv"))
    connection.execute("ALTER TABLE cup ALTER AGE TYPE INTEGER")
    connection.execute(read.format("fars", folder / "fars" / "fars_subset.csv"))
    for data, columns in (("cup", ("ZIP", "GENDER", "INCOME", "STATE")), ("fars", FARS)):
        for column in columns:
            path = folder / data / f"{data}_hierarchy_{column}.csv"
            connection.execute(f"CALL kanon.create_hierarchy('{column}', levels => '{path}')")
    register(connection, "synthetic_100k", 100_000)
    tables = {
        "cup": "['ZIP', 'AGE', 'GENDER', 'INCOME', 'STATE']",
        "fars": str(list(FARS)),
        "synthetic_100k": str(synthetic.QUASI_IDENTIFIERS),
    }
    figures = []
    for table, quasi_identifiers in tables.items():
        for k in QUALITY_K:
            others = [
                mask(connection, table, quasi_identifiers, k, f", method => '{method}'")
                for method in ("k_member", "oka")
            ]
            best = min(other.loss for other in others)
            ours = mask(connection, table, quasi_identifiers, k)
            ratio = f"loss {ours.loss / best:.2f} of the best other method's"
            figures += [
                *others,
                Figure(table, ours.rows, k, "auto medium", ours.loss, ours.seconds, "ratio < 1", ratio),
            ]
    return figures


FARS = ("iage", "irace", "ideathmon", "ideathday", "isex", "ihispanic", "istatenum", "iinjury")


def register(connection: duckdb.DuckDBPyConnection, name: str, rows: int) -> None:
    """A made-up table in the database, and its hierarchy."""
    connection.register("made_up", synthetic.table(rows, seed=1))
    connection.execute(f"CREATE TABLE {name} AS SELECT person_id AS id, * EXCLUDE (person_id) FROM made_up")
    connection.unregister("made_up")
    if not connection.execute("SELECT 1 FROM kanon.hierarchies WHERE hierarchy = 'postcode'").fetchall():
        connection.execute("CALL kanon.create_hierarchy('postcode', prefix => 5)")


def on_many_rows(connection: duckdb.DuckDBPyConnection, most: int) -> list[Figure]:
    """Made-up tables of rising size; the largest beside the goals for a million rows."""
    figures = []
    for rows in sorted({most // 100, most // 10, most // 3, most}):
        name = f"synthetic_{rows}"
        register(connection, name, rows)
        fixed = every_k_rows(encoded(connection, name, synthetic.QUASI_IDENTIFIERS), 5)
        figure = mask(connection, name, str(synthetic.QUASI_IDENTIFIERS), 5, ", sensitive => 'diagnosis'")
        goal = "5 s, loss 0.80 of the order cut every k rows" if rows == 1_000_000 else ""
        ratio = f"loss {figure.loss / fixed:.3f} of the order cut every k rows"
        figures.append(Figure(name, rows, 5, "auto medium", figure.loss, figure.seconds, goal, ratio))
    return figures


def write(figures: list[Figure], notes: list[str], output: Path) -> None:
    """The table as Markdown and CSV, and the plots."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / "creation.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(Figure.__dataclass_fields__)
        lines.writerows(vars(figure).values() for figure in figures)
    table = [
        f"| {f.data} | {f.rows:,} | {f.k} | {f.method} | {f.loss:.4f} | {f.seconds:.2f} | {f.goal} | {f.baseline} |"
        for f in figures
    ]
    head = [
        "| data | rows | k | method | loss per row | seconds | goal | beside |",
        "|---|---|---|---|---|---|---|---|",
    ]
    text = "\n".join(["# Creating a masked view", "", *(f"- {note}" for note in notes), "", *head, *table, ""])
    (output / "creation.md").write_text(text, encoding="utf-8")

    figure, axes = pyplot.subplots()
    for each in (each for each in figures if each.data == "adult" and each.k == 5):
        axes.scatter(each.seconds, each.loss, label=each.method)
    axes.set(xscale="log", xlabel="seconds", ylabel="information loss per row", title="Adult, k = 5")
    axes.legend()
    figure.savefig(output / "loss_against_seconds.png")
    figure, axes = pyplot.subplots()
    sizes = [each for each in figures if each.data.startswith("synthetic_") and each.data != "synthetic_100k"]
    axes.plot([each.rows for each in sizes], [each.seconds for each in sizes], marker="o")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="auto, k = 5, 10 quasi-identifiers")
    figure.savefig(output / "seconds_against_rows.png")


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    versions = f"kanon_duck {kanon_duck.__version__}, DuckDB {duckdb.__version__}, numba {numba.__version__}"
    notes = [f"{versions}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors"]
    figures: list[Figure] = []
    folder = os.environ.get("KANON_DUCK_DATA")
    with kanon_duck.connect() as connection:
        if folder is None:
            notes.append("KANON_DUCK_DATA is not set: Adult, CUP and FARS were left out")
        else:
            figures += on_adult(connection, Path(folder)) + on_other_tables(connection, Path(folder))
        figures += on_many_rows(connection, options.rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    notes.append(f"peak memory of the whole run, tables included: {peak:.2f} GB")
    write(figures, notes, options.output)
    print((options.output / "creation.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

"""The p-sensitive methods beside others, as in section 4 of Truta, Campan and Meyer 2007.

    python -m tests.benchmarks.p_sensitive OUTPUT

writes ``p_sensitive.md`` and ``p_sensitive.csv`` to the folder OUTPUT: Adult, 10,000 rows drawn with a seed, k = 20 and
several p. Adult is looked for in the folder that KANON_DUCK_DATA names. Everything goes through SQL; seconds are those
of the process, on a second run.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

import kanon_duck
from kanon_duck.clustering import METHODS
from tests.benchmarks import report
from tests.benchmarks.tables import data_folder
from tests.test_real_data import load_adult

QUASI_IDENTIFIERS = {
    "age": "numeric",
    "workclass": "workclass",
    "marital_status": "marital_status",
    "race": "race",
    "sex": "sex",
    "native_country": "native_country",
}
SENSITIVE = ["education_num", "education", "occupation"]
ROWS, K = 10_000, 20
EACH_P = (2, 4, 6, 8, 10)
COMPARED = ("enhanced_pk", "greedy_pk", "auto", "incognito", "mondrian")


@dataclass(frozen=True)
class Figure:
    """What a method makes of the rows."""

    method: str
    p: int
    average_class_size: float
    discernibility: int
    loss: float
    classes: int
    seconds: float


def measured(connection: duckdb.DuckDBPyConnection, method: str, p: int) -> Figure:
    """Create a masked view twice; the second is measured."""
    for attempt in ("first", "second"):
        begun = time.process_time()
        result = connection.execute(
            f"CALL kanon.create_masked_view('{method}_{p}_{attempt}', source => 'drawn', key => 'id', k => {K}, "
            f"p => {p}, quasi_identifiers => {QUASI_IDENTIFIERS}, sensitive => {SENSITIVE}, method => '{method}', "
            "independent => true)"
        )
        seconds = time.process_time() - begun
    names = [column[0] for column in result.description]
    release = dict(zip(names, result.fetchall()[0], strict=True))
    return Figure(
        method,
        p,
        release["average_class_size"],
        release["discernibility"],
        release["information_loss"] / ROWS,
        release["classes"],
        seconds,
    )


def main() -> None:
    """Measure every method that is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    folder = data_folder()
    if folder is None:
        parser.error("KANON_DUCK_DATA is not set: name the folder of the data sets there")
    output.mkdir(parents=True, exist_ok=True)
    with kanon_duck.connect() as connection:
        load_adult(connection, folder / "adult")
        connection.execute(
            f"CREATE TABLE drawn AS SELECT * FROM adult ORDER BY hash(id, 1) LIMIT {ROWS}"  # the same on every machine
        )
        figures = [measured(connection, method, p) for p in EACH_P for method in COMPARED if method in METHODS]
    report.write_csv(figures, output / "p_sensitive.csv")
    notes = [*report.machine(), f"Adult, {ROWS:,} rows, k = {K}, sensitive: {', '.join(SENSITIVE)}"]
    print(report.write("p-sensitive methods", notes, [report.table(figures)], output / "p_sensitive.md"))


if __name__ == "__main__":
    main()

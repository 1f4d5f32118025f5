"""How far the checks of a series of releases fall short of an exact intruder, and what releases of Adult give away.

    python -m tests.benchmarks.inference OUTPUT [--series 400]

writes ``inference.md``, ``exact.csv`` and, with the real data sets in the folder that KANON_DUCK_DATA names, ``adult.csv``
and a plot of the vulnerable rows to the folder OUTPUT. The exact intruder looks at tiny random series, as many of each
kind as ``--series`` says. The experiment on Adult is that of Byun et al. 2006, section 5 and Fig. 8: 10,000 rows, then
20 batches of 1,000; it also runs with 2% of the people deleted and 2% changed before each batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import report
from tests.benchmarks.tables import ADULT, data_folder, open_table
from tests.measured import Measured, measure

RELEASES = (2, 3, 5)
KINDS = ("inserts", "deletes", "updates")

QUASI_IDENTIFIERS = ["age", "workclass", "marital_status", "occupation", "race", "sex", "native_country", "income"]
"""Those of the paper; the sensitive attribute is education."""

FIRST, BATCH, BATCHES = 10_000, 1_000, 20
DIVERSE = (5, 7)
CHURN = 0.02
"""Share of the people who are deleted, and of those who change, before each batch."""

WAYS = {
    "static, mondrian (Static I)": ("secure => false, maintenance => 'static', method => 'mondrian'", 0.0),
    "static, auto (Static I)": ("secure => false, maintenance => 'static'", 0.0),
    "append (Static II)": ("secure => false, maintenance => 'append'", 0.0),
    "incremental": ("secure => false", 0.0),
    "incremental, deletes and updates": ("secure => false", CHURN),
    "secure": ("secure => true", 0.0),
    "secure, reserve": ("secure => true, reserve => 1", 0.0),
    "secure, deletes and updates, counterfeit": ("secure => true, on_delete => 'counterfeit'", CHURN),
    "secure, deletes and updates, retire": ("secure => true, on_delete => 'retire'", CHURN),
}
"""Options of the masked view, and the share of changes."""


@dataclass(frozen=True)
class BesideExact:
    """The fast checks beside the exact intruder, over random series of one kind.

    Attributes
    ----------
    kind : str
    releases : int
    required : str
        What must stay possible for everybody.
    series, people, disclosed, missed, false_alarms, clean, unnoticed : int
        As in `Measured`.
    missed_ratio : float
        Of those disclosed.
    """

    kind: str
    releases: int
    required: str
    series: int
    people: int
    disclosed: int
    missed: int
    false_alarms: int
    clean: int
    unnoticed: int
    missed_ratio: float


@dataclass(frozen=True)
class Released:
    """One release of Adult.

    Attributes
    ----------
    way : str
    l : int
    release, rows, waiting, counterfeits : int
    vulnerable : int
        People whom the releases so far, compared, tell too much of.
    vulnerable_ratio : float
        Of the rows.
    loss, seconds : float
        Per row, and of the whole refresh.
    """

    way: str
    l: int  # noqa: E741 - the field's name for it
    release: int
    rows: int
    waiting: int
    counterfeits: int
    vulnerable: int
    vulnerable_ratio: float
    loss: float
    seconds: float


def beside_exact(series: int) -> Iterator[BesideExact]:
    """Let both intruders look at random series of every kind."""
    for by_rows in (False, True):
        for least in (2, 3):
            for kind in KINDS:
                for releases in RELEASES:
                    found = Measured()
                    for seed in range(series):
                        found += measure(seed, releases, kind, least, by_rows)
                    yield BesideExact(
                        kind, releases, f"{least} {'rows' if by_rows else 'values'}", *astuple(found),
                        found.missed / max(found.disclosed, 1),
                    )  # fmt: skip


def on_adult(folder: Path) -> Iterator[Released]:
    """The releases of every way to bring in the batches."""
    for diverse in DIVERSE:
        for way, (options, churn) in WAYS.items():
            with open_table(ADULT, folder) as connection:
                connection.execute(f"CREATE TABLE people AS FROM adult WHERE id <= {FIRST}")
                connection.execute(
                    "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 2, "
                    f"l => {diverse}, quasi_identifiers => {QUASI_IDENTIFIERS}, sensitive => ['education'], "
                    f"{options})"
                )
                for batch in range(BATCHES):
                    _change(connection, batch, churn)
                    started = time.perf_counter()
                    [(release, rows, waiting, counterfeits, vulnerable, loss)] = connection.execute(
                        "SELECT release, rows, waiting, counterfeits, vulnerable_rows, information_loss_per_row "
                        "FROM kanon.refresh('masked')"
                    ).fetchall()
                    seconds = time.perf_counter() - started
                    yield Released(
                        way, diverse, release, rows, waiting, counterfeits, vulnerable, vulnerable / rows, loss, seconds
                    )
                [(victims,)] = connection.execute(
                    "SELECT coalesce(sum(victims), 0) FROM kanon.inference_channels('masked')"
                ).fetchall()
            print(f"measured {way}, l = {diverse}: {victims} victims of channels", flush=True)


def _change(connection: Any, batch: int, churn: float) -> None:
    """Bring in the next batch, after some people have gone and others changed."""
    if churn:
        some = f"(SELECT id FROM people ORDER BY hash(id * 31 + {batch}) LIMIT (SELECT CAST({churn} * count(*) AS INT) FROM people)"
        connection.execute(f"DELETE FROM people WHERE id IN {some})")
        connection.execute(
            f"UPDATE people SET education = other.education, age = other.age FROM adult AS other "
            f"WHERE other.id = 1 + (people.id * 7 + {batch}) % 30000 AND people.id IN {some} OFFSET 1000)"
        )
    last = FIRST + batch * BATCH
    connection.execute(f"INSERT INTO people FROM adult WHERE id > {last} AND id <= {last + BATCH}")


def draw_plot(releases: list[Released], output: Path) -> None:
    """Fig. 8: vulnerable rows against the rows of the release."""

    def draw(axes: Any) -> None:
        for number, diverse in enumerate(DIVERSE):
            for way in WAYS:
                these = [each for each in releases if each.way == way and each.l == diverse]
                axes[number].plot([each.rows for each in these], [each.vulnerable_ratio for each in these], label=way)
            axes[number].set(xlabel="rows", ylabel="vulnerable share", title=f"l = {diverse}", yscale="symlog")
        axes[-1].legend()

    report.plot(output / "adult.png", draw, columns=len(DIVERSE))


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--series", type=int, default=400)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    notes = report.machine()
    figures = list(beside_exact(options.series))
    report.write_csv(figures, options.output / "exact.csv")
    parts = [report.section("Beside the exact intruder", report.table(figures))]
    series, disclosed, missed, false_alarms, clean, unnoticed = (
        sum(getattr(each, name) for each in figures)
        for name in ("series", "disclosed", "missed", "false_alarms", "clean", "unnoticed")
    )
    notes.append(
        f"{series} series: {disclosed} people disclosed, {missed} of them missed ({missed / disclosed:.2%}), "
        f"{false_alarms} false alarms; of {clean} series in which the checks name nobody, somebody is disclosed in "
        f"{unnoticed}"
    )
    print(notes[-1], flush=True)
    real = data_folder()
    if real is None:
        notes.append("KANON_DUCK_DATA is not set: the experiment on Adult was left out")
    else:
        releases = list(on_adult(real))
        report.write_csv(releases, options.output / "adult.csv")
        draw_plot(releases, options.output)
        parts.append(report.section("Adult", report.table(releases)))
    print(report.write("What a series of releases gives away", notes, parts, options.output / "inference.md"))


if __name__ == "__main__":
    main()

"""What proved safety costs: loss, waiting and counterfeits of secure releases beside `auto` without safety.

    python -m tests.benchmarks.secure OUTPUT [--tables NAME ...] [--streams NAME ...] [--year] [--series 10000]

writes ``secure.md`` and ``secure.csv`` to the folder OUTPUT; the tables are read from the folder that KANON_DUCK_DATA
names. A stream begins with 10,000 people, then come 20 batches of 1,000, in the order of the file; in some streams
people leave, change value, or change quasi-identifiers before each batch. Loss is that of the rows shown, as a ratio to
`auto` from scratch on all who are there; who waits has no place, or a class that is not shown; counterfeits are told as
a share of the people shown. ``--year`` adds a year of daily releases; ``--series`` looks at so many tiny random series as an intruder who tries every
assignment, and confirms every assignment that a certificate names.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import read_settings
from kanon_duck.clustering.auto import auto
from kanon_duck.encoding.codes import Encoding
from kanon_duck.encoding.microdata import Sensitive
from kanon_duck.intake.encode import EncodedSnapshot, encode
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database
from kanon_duck.secure.bounds import Bounds
from kanon_duck.secure.certificates import RULES, certificates
from kanon_duck.secure.people import Changes
from kanon_duck.secure.release import Release, first_release, next_release
from kanon_duck.secure.settings import SeriesSettings
from kanon_duck.secure.state import NONE
from tests.benchmarks import report
from tests.benchmarks.tables import ADULT, CUP, Table, data_folder, open_table
from tests.secure_series import below_bound, check_certificates, random_series

FIRST, BATCH, BATCHES = 10_000, 1_000, 20


@dataclass(frozen=True)
class Source:
    """A table, what is masked, and the models."""

    table: Table
    quasi_identifiers: list[str] | dict[str, str]
    sensitive: str
    k: int
    l: int  # noqa: E741 - the field's name for it


ADULT_SOURCE = Source(
    ADULT,
    ["age", "workclass", "marital_status", "occupation", "race", "sex", "native_country"],
    "education",
    5,
    5,
)
CUP_SOURCE = Source(CUP, {"ZIP": "ZIP", "AGE": "numeric", "GENDER": "GENDER", "STATE": "STATE"}, "INCOME", 5, 3)
SOURCES = {"adult": ADULT_SOURCE, "cup": CUP_SOURCE}


@dataclass(frozen=True)
class Stream:
    """What happens before each batch, as shares of those who are there, and the options."""

    leave: float
    change: float
    move: float
    settings: SeriesSettings


PATIENCE = 10
STREAMS = {
    "inserts, none": Stream(0, 0, 0, SeriesSettings("retire", 0.0, PATIENCE)),
    "inserts, reserve": Stream(0, 0, 0, SeriesSettings("counterfeit", 1.0, PATIENCE)),
    "deletes and changes, counterfeit": Stream(0.02, 0.01, 0, SeriesSettings("counterfeit", 0.0, PATIENCE)),
    "deletes, changes and moves, counterfeit": Stream(0.02, 0.01, 0.01, SeriesSettings("counterfeit", 0.0, PATIENCE)),
    "deletes and changes, retire": Stream(0.02, 0.01, 0, SeriesSettings("retire", 0.0, PATIENCE)),
}


@dataclass(frozen=True)
class Figure:
    """One release of a stream."""

    table: str
    stream: str
    release: int
    people: int
    loss: float
    auto_loss: float
    loss_ratio: float
    waiting: float
    counterfeits: float
    longest_wait: int
    cohorts: int
    seconds: float


@dataclass
class People:
    """People who come and go: a row of the encoding each, also those who have left."""

    encoding: Encoding
    value: NDArray[np.int64]
    there: NDArray[np.bool_]

    def add(self, codes: NDArray[Any], value: NDArray[np.int64]) -> NDArray[np.int64]:
        """New people; returns their rows."""
        rows = np.arange(len(self.value), len(self.value) + len(value))
        self.encoding = replace(self.encoding, codes=np.concatenate([self.encoding.codes, codes]))
        self.value = np.append(self.value, value)
        self.there = np.append(self.there, np.ones(len(value), bool))
        return rows


def read(source: Source, folder: Path) -> tuple[EncodedSnapshot, Encoding, NDArray[np.int64]]:
    """The encoded rows of a table, and their sensitive values from 0."""
    with open_table(source.table, folder) as connection:
        database = Database(connection.cursor())
        arguments: dict[str, Any] = {
            "view_name": "none", "source": source.table.name, "key": "id", "k": source.k, "l": source.l,
            "quasi_identifiers": source.quasi_identifiers, "sensitive": [source.sensitive],
        }  # fmt: skip
        call = Call(database, arguments, catalog=str(database.value("SELECT current_database()")))
        settings = read_settings(call)
        snapshot = encode(database, settings, take_snapshot(call, settings).table)
    assert snapshot.microdata.sensitive is not None
    value = np.unique(snapshot.microdata.sensitive.values[0], return_inverse=True)[1].astype(np.int64)
    return snapshot, snapshot.microdata.encoding, value


def cost(encoding: Encoding, low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    """Loss per row of boxes."""
    return np.minimum(high - low, encoding.caps) @ encoding.weights.astype(np.float64)


def loss_per_row(encoding: Encoding, labels: NDArray[np.int64]) -> float:
    """Loss per row of classes from 0."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    low = np.minimum.reduceat(encoding.codes[order], starts)
    high = np.maximum.reduceat(encoding.codes[order], starts)
    return float(cost(encoding, low, high) @ np.bincount(labels) / len(labels))


def from_scratch(snapshot: EncodedSnapshot, people: People, source: Source) -> NDArray[np.int64]:
    """Classes of all who are there, by `auto` under the models."""
    rows = np.flatnonzero(people.there)
    values = people.value[rows][None]
    sensitive = Sensitive(np.empty(0, np.int64), values, values, values[:0], (), ())
    microdata = replace(
        snapshot.microdata,
        encoding=replace(people.encoding, codes=people.encoding.codes[rows]),
        sensitive=sensitive,
    )
    return auto(microdata, PrivacyModel(source.k, source.l), np.random.default_rng(1), no_check)


def no_check(_share: float | None) -> None:
    """Nobody interrupts."""


def changes_before(people: People, stream: Stream, generator: np.random.Generator) -> Changes:
    """Let people leave, change value, and move; the changed ones are new people."""
    there = np.flatnonzero(people.there)
    drawn = generator.permutation(there)
    counts = np.cumsum([round(share * len(there)) for share in (stream.leave, stream.change, stream.move)])
    left, changed, moved = np.split(drawn, counts)[:3]
    people.there[left] = False
    people.there[changed] = False
    values = people.value[generator.choice(there, len(changed))]
    new = people.add(people.encoding.codes[changed], values)
    codes = people.encoding.codes.copy()
    others = generator.choice(there, len(moved))
    for attribute in (0, 3):  # age or occupation
        columns = np.flatnonzero(people.encoding.attributes == attribute % len(people.encoding.numeric))
        some = generator.random(len(moved)) < 0.5
        codes[np.ix_(moved[some], columns)] = codes[np.ix_(others[some], columns)]
    people.encoding = replace(people.encoding, codes=codes)
    return Changes(np.concatenate([left, changed]), new, moved)


def releases(
    source: Source, stream: Stream, folder: Path, first: int, batch: int, batches: int, compare: int
) -> Iterator[tuple[Release, People, float, float]]:
    """The releases of a stream, with the seconds each took and, at every so many, the loss from scratch."""
    snapshot, encoding, value = read(source, folder)
    bounds = Bounds(source.k, np.arange(value.max() + 1)[:, None], np.array([source.l]))
    generator = np.random.default_rng(7)
    people = People(replace(encoding, codes=encoding.codes[:first]), value[:first], np.ones(first, bool))
    labels = from_scratch(snapshot, people, source)
    started = time.perf_counter()
    release = first_release(people.encoding, people.value, labels, bounds, stream.settings, 0, no_check)
    yield release, people, loss_per_row(people.encoding, labels), time.perf_counter() - started
    next_row = first
    auto_loss = np.nan
    for number in range(1, batches + 1):
        changes = changes_before(people, stream, generator)
        rows = np.arange(next_row, next_row + batch) % len(value)
        next_row += batch
        new = people.add(encoding.codes[rows], value[rows])
        changes = replace(changes, arrived=np.concatenate([changes.arrived, new]))
        started = time.perf_counter()
        release = next_release(
            release.state, people.encoding, people.value, changes, bounds, stream.settings, number, no_check
        )
        seconds = time.perf_counter() - started
        if number % compare == 0:
            present = replace(people.encoding, codes=people.encoding.codes[people.there])
            auto_loss = loss_per_row(present, from_scratch(snapshot, people, source))
        yield release, people, auto_loss, seconds
    every = np.flatnonzero(release.state.slot != NONE)
    found = certificates(release.state, bounds, every)
    assert found.candidates.min() >= source.k
    assert np.diff(found.stops, prepend=0).min() >= source.l


def figure(table: str, stream: str, release: Release, people: People, auto_loss: float, seconds: float) -> Figure:
    """The figures of one release."""
    state = release.state
    classes = state.classes()
    shown = classes[classes != NONE]
    loss = float(cost(people.encoding, state.low, state.high)[shown].mean())
    there = int(people.there.sum())
    waits = state.waiting != NONE
    return Figure(
        table, stream, state.release, there, loss, auto_loss, loss / auto_loss,
        1 - len(shown) / there, release.counterfeits / len(shown),
        int((state.release - state.waiting[waits]).max(initial=0)), int(state.living().sum()), seconds,
    )  # fmt: skip


def run_stream(
    table: str, name: str, stream: Stream, folder: Path, first: int, batch: int, batches: int, compare: int = 1
) -> list[Figure]:
    """All figures of a stream."""
    made = []
    for each in releases(SOURCES[table], stream, folder, first, batch, batches, compare):
        made.append(figure(table, name, *each))
    later = made[1:]
    ratios = [each.loss_ratio for each in later]
    print(
        f"{table}, {name}: ratio {np.nanmean(ratios):.3f} ({ratios[-1]:.3f}), waiting "
        f"{np.mean([each.waiting for each in later]):.2%} ({later[-1].waiting:.2%}), counterfeits "
        f"{np.mean([each.counterfeits for each in later]):.2%}, first {made[0].loss_ratio:.3f}, longest wait "
        f"{later[-1].longest_wait}, {np.mean([each.seconds for each in later]):.2f} s",
        flush=True,
    )
    return made


def tiny_series(count: int) -> str:
    """Random series beside the intruder who tries everything."""
    series, people, below = 0, 0, 0
    rules = np.zeros(len(RULES), np.int64)
    for seed in range(100_000, 100_000 + count):
        outcome = random_series(seed)
        if outcome is None:
            continue
        series += 1
        people += len(outcome.releases.everybody())
        below += len(below_bound(outcome))
        rules += check_certificates(outcome)
        if series % 500 == 0:
            print(f"{series} tiny series, {people} people, {below} below the bounds", flush=True)
    by_rule = ", ".join(f"{number} by {rule}" for rule, number in zip(RULES, rules, strict=True))
    return f"{series} tiny random series, {people} people ({by_rule}): {below} below the bounds"


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--tables", nargs="*", default=list(SOURCES))
    parser.add_argument("--streams", nargs="*", default=list(STREAMS))
    parser.add_argument("--effort", type=float, default=SeriesSettings().effort)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--year", action="store_true")
    parser.add_argument("--series", type=int, default=0)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    folder = data_folder()
    if folder is None:
        raise SystemExit("KANON_DUCK_DATA is not set")
    figures: list[Figure] = []
    for table in options.tables:
        for name in options.streams:
            stream = STREAMS[name]
            stream = replace(stream, settings=replace(stream.settings, effort=options.effort))
            figures += run_stream(table, name, stream, folder, FIRST, BATCH, options.batches)
    if options.year:
        stream = Stream(0.001, 0.0005, 0.0005, SeriesSettings("counterfeit", 0.0, PATIENCE, options.effort))
        figures += run_stream("cup", "a year", stream, folder, 50_000, 100, 365, 73)
    if figures:
        report.write_csv(figures, options.output / "secure.csv")
    notes = [*report.machine(), f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"]
    if options.series:
        notes.append(tiny_series(options.series))
    parts = [report.section("Releases", report.table(figures))] if figures else []
    report.write("What proved safety costs", notes, parts, options.output / "secure.md")


if __name__ == "__main__":
    main()

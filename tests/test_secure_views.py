"""Secure masked views through SQL: random histories, in which nobody must ever be told too much of."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import kanon_duck
from kanon_duck.maintenance import secure_refresh
from tests.people import one

ILLNESSES = ["flu", "asthma", "cancer", "diabetes"]
WARDS = ["north", "south"]

COLUMNS = "age, age_min, age_max, zip, sex"


class History:
    """A secure masked view of a few people, and random changes of them."""

    def __init__(self, path: str, seed: int, people: int = 60) -> None:
        self.random = random.Random(seed)
        self.path = path
        self.next_id = 0
        self.gone: list[tuple[Any, ...]] = []
        self.copies: dict[int, Counter[Any]] = {}
        self.connection = kanon_duck.connect(path)
        self.execute(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, age INTEGER, zip VARCHAR, sex VARCHAR, illness VARCHAR, "
            "habit VARCHAR, ward VARCHAR)"
        )
        self.execute("CALL kanon.create_hierarchy('zip', prefix => 3)")
        for _ in range(people):
            self.insert(self.somebody())

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, list(values) or None).fetchall()

    def somebody(self) -> tuple[Any, ...]:
        self.next_id += 1
        choose = self.random.choice
        zip_code = None if self.random.random() < 0.05 else f"1{choose('12')}{choose('123')}"
        age = self.random.randrange(20, 60)
        return (
            self.next_id,
            age,
            zip_code,
            choose("mf"),
            choose(ILLNESSES),
            choose(["yes", "no", "some"]),
            choose(WARDS),
        )

    def insert(self, person: tuple[Any, ...]) -> None:
        self.execute("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", *person)

    def create(self, options: str) -> None:
        self.execute(
            "CALL kanon.create_masked_view('v', source => 'people', key => 'id', "
            f"quasi_identifiers => {{'age': 'numeric', 'zip': 'zip', 'sex': 'flat'}}, {options})"
        )
        self.shown = [name for name, *_ in self.execute("DESCRIBE v")]
        self.copies[1] = self.rows("v")

    def rows(self, relation: str) -> Counter[Any]:
        return Counter(map(repr, self.execute(f"FROM {relation}")))

    def change(self) -> None:
        people = self.execute("FROM people ORDER BY id")
        self.random.shuffle(people)
        for person in people[:3]:
            self.execute("DELETE FROM people WHERE id = ?", person[0])
            self.gone.append(person)
        for person in people[3:5]:
            self.execute("UPDATE people SET illness = ? WHERE id = ?", self.random.choice(ILLNESSES), person[0])
        for person in people[5:8]:
            self.execute("UPDATE people SET age = ? WHERE id = ?", self.random.randrange(20, 60), person[0])
        for _ in range(6):
            self.insert(self.somebody())
        if len(self.gone) > 4 and self.random.random() < 0.7:  # somebody returns
            self.insert(self.gone.pop(self.random.randrange(len(self.gone))))

    def reopen(self) -> None:
        """Go on as a process that remembers nothing."""
        self.connection.close()
        self.connection = kanon_duck.connect(self.path)

    def refresh(self) -> dict[str, Any]:
        foretold = one(self.connection, "CALL kanon.refresh('v', dry_run => true)")
        row = one(self.connection, "CALL kanon.refresh('v')")
        for figure in ("rows", "classes", "waiting", "counterfeits", "information_loss"):
            assert foretold[figure] == row[figure], figure
        if row["cause"] == "refresh":
            self.copies[row["release"]] = self.rows("v")
        return row

    def check(self, row: dict[str, Any], k: int, least: dict[str, int]) -> None:
        """What must hold after every release, recomputed from what readers see and from the source."""
        if row["cause"] == "held":
            return
        assert self.execute("SELECT bool_and(passed) FROM kanon.check('v')") == [(True,)]
        assert self.execute("FROM kanon.inference_channels('v')") == []
        assert row["vulnerable_rows"] == 0
        for release, rows in self.copies.items():
            assert self.rows(f"kanon.as_of('v', {release})") == rows
        [(people,)] = self.execute("SELECT count(*) FROM people")
        [(waiting,)] = self.execute("SELECT count(*) FROM kanon.waiting('v')")
        assert row["rows"] - row["counterfeits"] + waiting == people
        assert row["waiting"] == waiting
        if "weight" in self.shown:
            [(weight,)] = self.execute("SELECT sum(weight) FROM v")
            assert abs(weight - (people - waiting)) < 1e-6
        self.check_certificates(people - waiting, k, least)
        self.check_regions()

    def check_certificates(self, released: int, k: int, least: dict[str, int]) -> None:
        """Everybody of the release has one, for at least as many values and rows as the models ask for."""
        certificates = self.execute(
            "SELECT key, attribute, len(values), candidates, list_contains(values, illness) "
            "FROM kanon.certificates('v') JOIN people ON key = CAST(id AS VARCHAR)"
        )
        assert len({key for key, *_ in certificates}) == released
        for _, attribute, values, candidates, own_value in certificates:
            assert candidates >= k
            assert attribute is None or values >= least.get(attribute, 1)
            assert attribute != "illness" or own_value

    def check_regions(self) -> None:
        """The cells of each released person's class cover the person."""
        uncovered = self.execute(
            "SELECT id FROM people JOIN kanon_private.members_1 ON key_0 = id "
            "JOIN kanon_private.classes_1 AS classes USING (class) "
            "WHERE NOT (coalesce(age BETWEEN classes.quasi_identifier_0_min AND classes.quasi_identifier_0_max, "
            "classes.quasi_identifier_0 = '*') AND kanon.covers('zip', classes.quasi_identifier_1, zip) "
            "AND kanon.covers('flat', classes.quasi_identifier_2, sex))"
        )
        assert uncovered == []


MODELS = [
    ("k => 3, sensitive => ['illness'], l => 2", 3, {"illness": 2}),
    ("k => 2, sensitive => ['illness'], l => 3", 2, {"illness": 3}),
    ("k => 3, sensitive => ['illness', 'habit'], p => 2", 3, {"illness": 2, "habit": 2}),
    ("k => 3, sensitive => ['illness'], l => 2, keep => ['ward']", 3, {"illness": 2}),
    ("k => 3", 3, {}),
]
TREATMENTS = ["'retire'", "'counterfeit'", "'remove', reserve => 0.5", "'retire', reserve => 1, patience => 0"]


@pytest.mark.parametrize(("model", "treatment"), product(MODELS, TREATMENTS))
def test_random_histories(tmp_path: Path, model: tuple[str, int, dict[str, int]], treatment: str) -> None:
    options, k, least = model
    history = History(str(tmp_path / "people.duckdb"), seed=len(treatment) + len(options))
    history.create(f"{options}, on_delete => {treatment}")
    for step in range(5):
        history.change()
        if step == 2:
            history.reopen()
        history.check(history.refresh(), k, least)


def state_of(connection: duckdb.DuckDBPyConnection) -> Any:
    """The series as the process remembers it."""
    from kanon_duck.runtime.runner import _instances

    [state] = [each.memory.state for each in _instances.values() if each.memory.state is not None]
    return state


def test_what_is_remembered_is_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The series that the next call takes from memory equals the one that another process would read."""
    history = History(str(tmp_path / "people.duckdb"), seed=7)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    remembered: list[Any] = []
    encode = secure_refresh.encode_changes

    def noted(call: Any, view: Any, settings: Any, changes: str) -> Any:
        state, batch = encode(call, view, settings, changes)
        remembered.append(batch.before)
        return state, batch

    monkeypatch.setattr("kanon_duck.maintenance.refresh.encode_changes", noted)
    for _ in range(4):
        history.change()
        one(history.connection, "CALL kanon.refresh('v', dry_run => true)")  # takes the series from memory
        one(history.connection, "CALL kanon.refresh('v')")  # reads it again, since the dry run gave it up
        in_memory, read = remembered[-2:]
        for field in fields(in_memory.slots):
            mine, written = getattr(in_memory.slots, field.name), getattr(read.slots, field.name)
            if field.name in ("slot", "since", "waiting"):  # row numbers of nobody may be missing at the end
                length = min(len(mine), len(written))
                mine, written = mine[:length], written[:length]
            if field.name in ("low", "high"):  # of cohorts without people there is no box
                living = read.slots.living()
                mine, written = mine[living], written[living]
            assert np.array_equal(mine, written), field.name


def test_a_person_who_returns_is_the_same_person(tmp_path: Path) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=11)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    [person] = history.execute("FROM people WHERE id = 5")
    [(row,)] = history.execute("SELECT row FROM kanon_private.members_1 WHERE key_0 = 5")
    history.execute("DELETE FROM people WHERE id = 5")
    history.refresh()
    history.insert(person)
    history.refresh()
    assert history.execute("SELECT row FROM kanon_private.members_1 WHERE key_0 = 5") == [(row,)]
    assert history.execute("FROM kanon.inference_channels('v')") == []


@pytest.mark.surface
def test_retired_classes_leave_and_come_back(tmp_path: Path) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=3)
    history.create("k => 3, sensitive => ['illness'], l => 2")
    [(class_number,)] = history.execute("SELECT class FROM kanon_private.members_1 WHERE key_0 = 8")
    mates = [
        key for (key,) in history.execute("SELECT key_0 FROM kanon_private.members_1 WHERE class = ?", class_number)
    ]
    [person] = history.execute("FROM people WHERE id = 8")
    history.execute("DELETE FROM people WHERE id = 8")
    row = history.refresh()
    assert row["waiting"] == len(mates) - 1
    reasons = history.execute("SELECT DISTINCT reason FROM kanon.waiting('v')")
    assert reasons == [("its class lost somebody and is not shown until the empty place is filled",)]
    assert any("counterfeit" in warning for warning in row["warnings"])
    history.insert((9000, person[1], *person[2:]))  # the same values: the empty place is filled
    row = history.refresh()
    assert row["waiting"] == 0
    assert row["rows"] == 60


@pytest.mark.parametrize(
    "model", ["alpha => 0.9", "t => 0.9", "entropy_l => 1.1", "recursive_cl => [9, 2]", "unit => 'zip'"]
)
def test_models_without_a_proof_are_refused(tmp_path: Path, model: str) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=1)
    with pytest.raises(duckdb.Error, match="proved safe for k, l and p alone.*secure => false"):
        history.create(f"k => 3, sensitive => ['illness'], {model}")
    assert history.execute("FROM kanon.masked_views") == []


@pytest.mark.surface
def test_the_series_cannot_be_reset_by_accident(tmp_path: Path) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=2)
    options = "k => 3, sensitive => ['illness'], l => 2"
    history.create(options)
    again = (
        "CALL kanon.create_masked_view('{}', source => 'people', key => 'id', quasi_identifiers => ['age'], k => 3 {})"
    )
    with pytest.raises(duckdb.Error, match="source people has a masked view already, v:.*independent => true"):
        history.execute(again.format("w", ""))
    for setting in ("k => 2", "l => 3", "l => false"):
        with pytest.raises(duckdb.Error, match="new_series => true begins anew"):
            history.execute(f"CALL kanon.rebuild('v', {setting})")
    history.execute("CALL kanon.drop_masked_view('v')")
    with pytest.raises(duckdb.Error, match="source people had a masked view, v,.*new_series => true"):
        history.execute(again.format("w", ""))
    row = one(history.connection, again.format("w", ", new_series => true"))
    assert "whoever has releases of v can compare them" in row["warnings"]


@pytest.mark.surface
def test_a_view_becomes_secure_as_a_new_series_only(tmp_path: Path) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=4)
    history.create("k => 3, sensitive => ['illness'], l => 2, secure => false")
    history.change()
    history.refresh()
    with pytest.raises(duckdb.Error, match="new_series => true begins a secure series"):
        history.execute("CALL kanon.rebuild('v', secure => true)")
    row = one(history.connection, "CALL kanon.rebuild('v', secure => true, new_series => true)")
    assert any("releases 1 to 2 can compare" in warning for warning in row["warnings"])
    for _ in range(2):
        history.change()
        row = history.refresh()
        assert row["vulnerable_rows"] == 0
    assert history.execute("SELECT min(len(values)), min(candidates) FROM kanon.certificates('v')") >= [(2, 3)]


@pytest.mark.surface
def test_optimize_and_rebuild_stay_within_the_series(tmp_path: Path) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=5, people=120)
    history.create("k => 2, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    for verb in ("optimize", "rebuild", "optimize"):
        history.change()
        history.check(history.refresh(), 2, {"illness": 2})
        row = one(history.connection, f"CALL kanon.{verb}('v')")
        assert row["cause"] in (verb, "unchanged")
        if row["cause"] == verb:
            history.copies[row["release"]] = history.rows("v")
        assert history.execute("FROM kanon.inference_channels('v')") == []


def test_weight_is_a_column_of_its_own(tmp_path: Path) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=6)
    history.execute("ALTER TABLE people ADD COLUMN weight DOUBLE")
    with pytest.raises(duckdb.Error, match="sensitive names weight, which is a column of kanon_duck's own"):
        history.create("k => 3, sensitive => ['weight'], on_delete => 'counterfeit'")


@pytest.mark.parametrize("step", ["next_release", "store_series", "add_members", "update_waiting", "release_draft"])
def test_a_refresh_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    history = History(str(tmp_path / "people.duckdb"), seed=8)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    history.change()
    tables = [
        name
        for (name,) in history.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'kanon_private'")
    ]

    def everything() -> list[Any]:
        return [history.rows(f"kanon_private.{name}") for name in tables] + [history.rows("v")]

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("stopped here")

    before = everything()
    holder = "secure_series" if step == "next_release" else "secure_refresh"
    with monkeypatch.context() as patched:
        patched.setattr(f"kanon_duck.maintenance.{holder}.{step}", fails)
        with pytest.raises(duckdb.Error, match="stopped here"):
            history.execute("CALL kanon.refresh('v')")
    assert everything() == before
    history.check(history.refresh(), 3, {"illness": 2})

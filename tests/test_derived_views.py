"""Masked views that are derived from another through SQL: safe by themselves, and together with the other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import kanon_duck
from kanon_duck.maintenance import derived_release, secure_refresh
from tests.people import one
from tests.test_secure_views import History

REFRESHES = 2
"""Refreshes of each random history; what must hold is looked at after the last."""

KILLS = 1
"""Moments at which a refresh is killed."""


class DerivedHistory(History):
    """A secure masked view `v` of a few people, and `w`, which derives from it with higher bounds."""

    def derive(self, options: str) -> dict[str, Any]:
        row = one(self.connection, f"CALL kanon.create_masked_view('w', derive_from => 'v', {options})")
        self.copies_of_w: dict[int, Counter[Any]] = {row["release"]: self.rows("w")}
        self.regions: dict[int, list[int]] = {}
        return row

    def refresh_both(self, asked: str, foretold: bool = False) -> dict[str, dict[str, Any]]:
        """Refresh one of the views, after a dry run if it is to be foretold; returns what both are at now."""
        dry = one(self.connection, f"CALL kanon.refresh('{asked}', dry_run => true)") if foretold else None
        row = one(self.connection, f"CALL kanon.refresh('{asked}')")
        for figure in ("rows", "classes", "waiting", "counterfeits", "information_loss"):
            assert dry is None or dry[figure] == row[figure], figure
        if row["cause"] == "refresh":
            last = f"FROM kanon.releases WHERE view_name = '{asked}' AND release = {row['release']}"
            assert one(self.connection, last) == row
        for copies, view in ((self.copies, "v"), (self.copies_of_w, "w")):
            [(release,)] = self.execute("SELECT release FROM kanon.masked_views WHERE name = ?", view)
            copies[release] = self.rows(view)
        query = "FROM kanon.masked_views JOIN (SELECT view_name AS name, release, warnings FROM kanon.releases) USING (name, release)"
        names = [column for column, *_ in self.execute(f"DESCRIBE {query}")]
        return {row[names.index("name")]: dict(zip(names, row, strict=True)) for row in self.execute(query)}

    def check_series(self) -> None:
        """What must hold of all releases of both."""
        for view, copies in (("v", self.copies), ("w", self.copies_of_w)):
            for release, rows in copies.items():
                assert self.rows(f"kanon.as_of('{view}', {release})") == rows, (view, release)
            assert self.execute(f"FROM kanon.inference_channels('{view}')") == []
        assert self.execute("FROM kanon.inference_channels(['v', 'w'])") == []

    def check_both(self, now: dict[str, dict[str, Any]], bounds: dict[str, tuple[int, int]]) -> None:
        """What must hold after every release, with k and l of both."""
        [(people,)] = self.execute("SELECT count(*) FROM people")
        for view in ("v", "w"):
            assert self.execute(f"SELECT bool_and(passed) FROM kanon.check('{view}')") == [(True,)]
            if now[view]["status"] == "held":
                continue
            assert now[view]["release"] == now["v"]["release"]
            [(waiting, reasons)] = self.execute(f"SELECT count(*), count(reason) FROM kanon.waiting('{view}')")
            assert waiting == reasons == now[view]["waiting"]
            assert sum(rows for _, rows in self.execute(f"FROM kanon.pending('{view}')")) == 0
            k, least = bounds[view]
            certificates = self.execute(
                "SELECT key, len(values), candidates, list_contains(values, illness) "
                f"FROM kanon.certificates('{view}') JOIN people ON key = CAST(id AS VARCHAR) "
                "WHERE coalesce(attribute, 'illness') = 'illness'"
            )
            assert len(certificates) == people - waiting
            for _, values, candidates, own_value in certificates:
                assert candidates >= k
                assert values is None or (values >= least and own_value)
            if "weight" in self.shown:
                [(weight,)] = self.execute(f"SELECT sum(weight) FROM {view}")
                assert abs(weight - (people - waiting)) < 1e-6
        if now["w"]["status"] != "held":
            self.check_unions()

    def check_unions(self) -> None:
        """Who is together in a class of the one is together in a class of the other, and the cells cover everybody."""
        apart = self.execute(
            "SELECT inside.class FROM kanon_private.members_1 AS inside JOIN kanon_private.members_2 AS outside "
            "USING (key_0) WHERE inside.class IS NOT NULL GROUP BY ALL "
            "HAVING count(DISTINCT coalesce(outside.class, -1)) > 1"
        )
        assert apart == []
        assert self.execute("SELECT * FROM kanon_private.members_2 WHERE class IS NOT NULL AND row NOT IN (SELECT row "
                            "FROM kanon_private.members_1 WHERE class IS NOT NULL)") == []  # fmt: skip
        uncovered = self.execute(
            "SELECT id FROM people JOIN kanon_private.members_2 ON key_0 = id "
            "JOIN kanon_private.classes_2 AS classes USING (class) "
            "WHERE NOT (coalesce(age BETWEEN classes.quasi_identifier_0_min AND classes.quasi_identifier_0_max, "
            "classes.quasi_identifier_0 = '*') AND kanon.covers('zip', classes.quasi_identifier_1, zip) "
            "AND kanon.covers('flat', classes.quasi_identifier_2, sex))"
        )
        assert uncovered == []
        regions = {
            number: ends
            for number, *ends in self.execute(
                "SELECT class, coalesce(quasi_identifier_0_min, -1), coalesce(quasi_identifier_0_max, 999) "
                "FROM kanon_private.classes_2"
            )
        }
        for number, (low, high) in self.regions.items():  # they never shrink
            if number in regions:
                assert regions[number][0] <= low <= high <= regions[number][1]
        self.regions |= regions


VIEWS = [
    ("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'", "k => 8, l => 3", (3, 2), (8, 3)),
    ("k => 2, sensitive => ['illness'], l => 2, on_delete => 'retire'", "k => 6", (2, 2), (6, 2)),
    ("k => 3, sensitive => ['illness', 'habit'], p => 2, on_delete => 'counterfeit', reserve => 0.5", "k => 7",
     (3, 2), (7, 2)),
    ("k => 2, sensitive => ['illness'], l => 2, keep => ['ward'], on_delete => 'remove'", "k => 5, l => 3",
     (2, 2), (5, 3)),
    ("k => 3, on_delete => 'counterfeit'", "k => 9", (3, 1), (9, 1)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_random_histories(tmp_path: Path, number: int) -> None:
    inside, outside, of_v, of_w = VIEWS[number]
    late = number % 2 == 1
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=len(inside) + late, people=90)
    history.create(inside)
    if late:
        history.change()
        history.execute("CALL kanon.refresh('v')")
        history.copies[2] = history.rows("v")
    row = history.derive(outside)
    assert row["release"] == 1 + late
    assert row["vulnerable_rows"] == 0
    for step in range(REFRESHES):
        history.change()
        if step == 1:
            history.reopen()
        now = history.refresh_both("vw"[step % 2], foretold=number == step == 0)
    history.check_both(now, {"v": of_v, "w": of_w})
    waiting = now["w"]["waiting"] - now["v"]["waiting"]
    if now["w"]["status"] != "held" and waiting > 0.03 * now["v"]["rows"]:
        assert any("wait who are in v" in warning for warning in now["w"]["warnings"])
    history.check_series()


def test_what_is_remembered_is_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next call takes from memory of a derived view equals what another process would read."""
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=7, people=90)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    history.derive("k => 8")
    remembered: list[Any] = []
    encode = secure_refresh.encode_changes

    def noted(call: Any, view: Any, settings: Any, changes: str) -> Any:
        state, batch = encode(call, view, settings, changes)
        remembered.append(batch.before.derived[0])
        return state, batch

    monkeypatch.setattr("kanon_duck.maintenance.refresh.encode_changes", noted)
    for _ in range(2):
        history.change()
        history.refresh_both("w", foretold=True)
        in_memory, read = remembered[-2:]
        assert np.array_equal(in_memory.unions.union, read.unions.union)
        assert np.array_equal(in_memory.unions.formed, read.unions.formed)
        assert sorted(zip(in_memory.former, in_memory.cohort, strict=True)) == sorted(
            zip(read.former, read.cohort, strict=True)
        )


@pytest.mark.surface
def test_a_derived_view_is_released_together_with_its_parent(tmp_path: Path) -> None:
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=9, people=90)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    history.derive("k => 10, l => 3, source => 'people', quasi_identifiers => ['age', 'zip', 'sex']")
    for procedure in ("refresh('w')", "refresh_all()", "rebuild('v')", "optimize('v')"):
        history.change()
        if procedure.startswith("optimize"):
            history.execute("CALL kanon.refresh('v')")
        history.execute(f"CALL kanon.{procedure}")
        releases = history.execute("SELECT release, cause FROM kanon.releases WHERE view_name = 'v' ORDER BY ALL")
        assert releases == history.execute(
            "SELECT release, cause FROM kanon.releases WHERE view_name = 'w' ORDER BY ALL"
        )
    answers = history.execute("SELECT view_name, cause FROM kanon.refresh_all()")
    assert answers == [("v", answers[0][1]), ("w", answers[0][1])]
    history.execute("CALL kanon.drop_masked_view('w')")
    history.change()
    assert history.refresh()["cause"] == "refresh"
    history.execute("CALL kanon.drop_masked_view('v')")


def test_a_derived_view_whose_classes_all_lost_somebody_is_held(tmp_path: Path) -> None:
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=5, people=60)
    history.create("k => 3, sensitive => ['illness'], l => 2")
    history.derive("k => 25")
    one_of_each = "SELECT min(key_0) FROM kanon_private.members_2 WHERE class IS NOT NULL GROUP BY class"
    people = history.execute(f"FROM people WHERE id IN ({one_of_each})")
    history.execute(f"DELETE FROM people WHERE id IN ({one_of_each})")
    shown = history.rows("w")
    row = one(history.connection, "CALL kanon.refresh('w')")
    assert (row["cause"], row["release"]) == ("held", 1)
    assert history.rows("w") == shown
    assert history.execute("SELECT name, status, release FROM kanon.masked_views") == [
        ("v", "current", 2),
        ("w", "held", 1),
    ]
    for person in people:  # the same people come back to their places
        history.insert(person)
    now = history.refresh_both("w")
    assert now["w"]["status"] == "current"
    history.check_both(now, {"v": (3, 2), "w": (25, 2)})
    history.check_series()
    assert history.execute("SELECT release FROM kanon.releases WHERE view_name = 'w'") == [(1,), (3,)]


REFUSED = [
    ("derive_from => 'v'", "k is missing"),
    ("derive_from => 'x', k => 9", "derive_from names 'x', but there is no such masked view"),
    ("derive_from => 'w', k => 9", "derive_from names w, which is derived itself: name v"),
    ("derive_from => 'plain', k => 9", "derive_from names plain, which is not secure"),
    ("derive_from => 'v', k => 2", "k is 2, but v has 3"),
    ("derive_from => 'v', k => 9, l => 2", "l is 2, but v has 3"),
    ("derive_from => 'v', k => 9, source => 'others'", "source is 'others', and v has 'people'"),
    ("derive_from => 'v', k => 9, key => 'age'", "quasi_identifiers names age, which key names already"),
    ("derive_from => 'v', k => 9, quasi_identifiers => ['age']", "quasi_identifiers is .*leave it out"),
    ("derive_from => 'v', k => 9, sensitive => ['habit']", "sensitive is .*leave it out"),
    ("derive_from => 'v', k => 9, keep => ['ward']", "keep is .*leave it out"),
    ("derive_from => 'v', k => 9, on_delete => 'counterfeit'", "on_delete is 'counterfeit', but .* leave it out"),
    ("derive_from => 'v', k => 9, secure => false", "secure is false, but .* leave it out"),
    ("derive_from => 'v', k => 9, alpha => 0.5", "alpha is 0.5, but .* leave it out"),
    ("derive_from => 'v', k => 900", "not even all classes"),
]


@pytest.mark.surface
def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=2, people=60)
    history.create("k => 3, sensitive => ['illness'], l => 3")
    history.derive("k => 9, secure => true")
    history.execute(
        "CALL kanon.create_masked_view('plain', source => 'people', key => 'id', quasi_identifiers => ['age'], k => 3, "
        "secure => false, independent => true)"
    )
    before = history.rows("kanon.masked_views")
    for options, message in REFUSED:
        with pytest.raises(duckdb.Error, match=message):
            history.execute(f"CALL kanon.create_masked_view('y', {options})")
    for call, message in (
        ("drop_masked_view('v')", "masked view v is what w derives from: drop that first"),
        ("rebuild('v', new_series => true)", "new_series would end the series of v, from which w derives"),
        ("rebuild('v', secure => false)", "secure would end the series of v, from which w derives"),
        ("rebuild('w', k => 12)", r"derives from v: CALL kanon.rebuild\('v'\)"),
        ("optimize('w')", r"derives from v: CALL kanon.optimize\('v'\)"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            history.execute(f"CALL kanon.{call}")
    assert history.rows("kanon.masked_views") == before
    row = one(history.connection, "CALL kanon.create_masked_view('z', derive_from => 'v', k => 12)")
    assert "whoever has releases of plain, w can compare them" in row["warnings"]


def test_a_refresh_that_fails_leaves_both_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=8, people=90)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    history.derive("k => 8")
    history.change()
    tables = [
        name
        for (name,) in history.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'kanon_private'")
    ]

    def everything() -> list[Any]:
        return [history.rows(f"kanon_private.{name}") for name in tables] + [history.rows("v"), history.rows("w")]

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("stopped here")

    before = everything()
    for step in ("_write", "release_draft"):
        with monkeypatch.context() as patched:
            patched.setattr(derived_release, step, fails)
            with pytest.raises(duckdb.Error, match="stopped here"):
                history.execute("CALL kanon.refresh('v')")
        assert everything() == before
    history.check_both(history.refresh_both("v"), {"v": (3, 2), "w": (8, 2)})


@pytest.mark.timeout(120)
def test_kill_at_any_moment_of_a_refresh_leaves_both_at_one_release(tmp_path: Path) -> None:
    history = DerivedHistory(str(tmp_path / "people.duckdb"), seed=6, people=100)
    history.create("k => 3, sensitive => ['illness'], l => 2, on_delete => 'counterfeit'")
    history.derive("k => 10")
    history.connection.close()
    code = """
import sys, kanon_duck
connection = kanon_duck.connect(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[2]), 10**6):
    connection.execute(
        f"INSERT INTO people SELECT {number} * 100 + i, 20 + i, '112', 'f', 'flu', 'no', 'south' FROM range(4) AS t(i)"
    )
    connection.execute(f"UPDATE people SET illness = 'asthma' WHERE id = {number % 100}")
    connection.execute("CALL kanon.refresh('w')")
"""
    for attempt in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", code, history.path, str(1000 * attempt + 10)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(history.random.uniform(0.3, 1.5))
        process.kill()
        process.communicate()
        history.connection = kanon_duck.connect(history.path)
        now = history.execute("SELECT release FROM kanon.masked_views")
        assert now[0] == now[1]
        for view, copies in (("v", history.copies), ("w", history.copies_of_w)):
            for release, rows in copies.items():
                assert history.rows(f"kanon.as_of('{view}', {release})") == rows
            copies[now[0][0]] = history.rows(view)
        history.check_both(history.refresh_both("v"), {"v": (3, 2), "w": (10, 2)})
        history.connection.close()

"""Random changes of a source and calls on its masked view: after each the maintained state is the recomputed one."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import kanon_duck
from tests.encodings import Numeric, Tree
from tests.recomputation import Person, figures, released

pytestmark = pytest.mark.timeout(900)

CITIES = {"a": "a x *", "b": "b x *", "c": "c y z *", "d": "d z *", "e": "e *"}
NEW_CITIES = {"f": "f x *", "g": "g w x *", "h": "h y z *", "i": "i v u *"}
"""Ways to the root; g makes x higher, and i grows a branch of its own."""

ZIPS = {"11": "11 11* 1** *", "111": "111 11* 1** *", "112": "112 11* 1** *", "2": "2 2 2** *", "201": "201 20* 2** *"}
FAR_AGES = [-(10**9), 999, 10**9]
COLOURS = ["red", "green", "blue", *(f"shade_{number}" for number in range(40))]
UNKNOWN_ZIP, UNKNOWN_COLOUR = "1111", "*"

PEOPLE = st.tuples(
    st.none() | st.integers(0, 20),
    st.none() | st.sampled_from(list(ZIPS)),
    st.none() | st.sampled_from(list(CITIES)),
    st.none() | st.sampled_from(COLOURS[:3]),
    st.none() | st.sampled_from(["cold", "flu", "rash"]),
    st.integers(0, 2),
)
KEYS = {"one": ["id"], "two": ["number", "part"], "none": []}
HAS_TRIGGERS = duckdb.__version__ >= "2"
FIGURES = [
    "rows", "classes", "waiting", "suppressed", "inserted", "updated", "deleted", "moved", "k_achieved", "l_achieved",
    "max_frequency", "information_loss", "discernibility",
]  # fmt: skip


def tree(paths: Mapping[str, str]) -> Tree:
    """The tree of ways from leaves to the root; a label that stands twice in a row is one node."""
    parents = {}
    for path in paths.values():
        labels = list(dict.fromkeys(path.split()))
        parents |= dict(zip(labels, labels[1:], strict=False))
    return Tree(parents)


def levels(paths: Mapping[str, str]) -> str:
    """A query for a hierarchy of these ways, as an argument of a procedure."""
    longest = max(len(path.split()) for path in paths.values())
    rows = [[*path.split(), *[None] * (longest - len(path.split()))] for path in paths.values()]
    values = ", ".join(str(tuple(row)).replace("None", "NULL") for row in rows)
    return f"SELECT * FROM (VALUES {values})".replace("'", "''")


class MaskedTable:
    """A table t, its masked view v, and what is known of both.

    The columns ``number`` and ``part`` are the key ``id`` in two parts. ``captured`` has the people of the source
    by identity as they were when the view last took them in; ``copies`` the rows of every release when it was
    the current one.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection = kanon_duck.connect(path)
        self.connections: list[duckdb.DuckDBPyConnection] = []
        self.cities = dict(CITIES)
        self.next_id = 0
        self.copies: dict[int, Counter[Any]] = {}
        self.first_release = 1
        self.foretold: dict[str, Any] | None = None
        self.waiting_since: dict[Any, int] = {}
        self.execute(f"CALL kanon.create_hierarchy('city', levels => '{levels(CITIES)}')")
        self.execute("CALL kanon.create_hierarchy('zip', prefix => 3)")
        self.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER, part VARCHAR, age INTEGER, zip VARCHAR, "
            "city VARCHAR, colour VARCHAR, illness VARCHAR, ward INTEGER)"
        )

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def records(self, statement: str) -> list[dict[str, Any]]:
        """The rows that a statement returns."""
        result = self.connection.execute(statement)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def call(self, statement: str) -> dict[str, Any]:
        """The one row that a procedure returns."""
        [row] = self.records(statement)
        return row

    def connect_again(self) -> None:
        """Go on through a second connection of the same process."""
        self.connections.append(self.connection)
        self.connection = kanon_duck.install(self.connection.cursor())

    def close(self) -> None:
        for connection in (*self.connections, self.connection):
            connection.close()
        self.connections.clear()

    def reopen(self) -> None:
        """Another process remembers nothing of this one."""
        self.close()
        self.connection = kanon_duck.connect(self.path)

    def insert(self, people: list[tuple[Any, ...]]) -> None:
        for person in people:
            identity = self.next_id
            self.connection.execute(
                "INSERT INTO t (id, number, part, age, zip, city, colour, illness, ward) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [identity, identity // 3, identity % 3, *person],
            )
            self.next_id += 1

    def mask(self, key: str, k: int, step: int, options: str, most_left_out: float) -> None:
        self.key, self.k, self.step, self.most_left_out = KEYS[key], k, step, most_left_out
        named = f"key => {self.key}," if self.key else ""
        answer = self.call(
            f"CALL kanon.create_masked_view('v', source => 't', {named} k => {k}, secure => false, quasi_identifiers "
            f"=> {{'age': {{'type': 'numeric', 'step': {step}}}, 'zip': 'zip', 'city': 'city', 'colour': 'flat'}}, "
            f"sensitive => 'illness', keep => 'ward', allow_unsafe_keep => 'ward', "
            f"max_suppression => {most_left_out}, {options})"
        )
        self.from_scratch(answer)

    def from_scratch(self, answer: dict[str, Any]) -> None:
        """Take note of a release that fixed the domain, and check it."""
        [(low, high)] = self.execute("SELECT min(age), max(age) FROM t")
        low, high = (0, 0) if low is None else (low, high)
        self.domain = Numeric(low // self.step * self.step, -(-high // self.step) * self.step)
        self.capture()
        self.check(answer)

    def capture(self) -> None:
        """Remember the source as it is now."""
        self.captured = self.source()

    def source(self) -> dict[tuple[Any, ...], Person]:
        """The people of the source; without a key they are known by hashes and a number among equals."""
        names = ", ".join(self.key) or "qi_hash, other_hash, row_number() OVER (PARTITION BY qi_hash, other_hash)"
        rows = self.execute(
            f"SELECT age, zip, city, colour, illness, ward, {names} FROM (SELECT *, hash(age::BIGINT, zip, city, colour) "
            "AS qi_hash, hash(illness, ward::BIGINT) AS other_hash FROM t)"
        )
        people = {row[6:]: Person(row[:4], row[4], row[5]) for row in rows}
        assert len(people) == len(rows)
        return people

    def members(self) -> dict[tuple[Any, ...], tuple[int | None, int | None]]:
        """Class, and since when they wait, of the members of the view by identity."""
        names = ", ".join(f"key_{place}" for place in range(len(self.key)))
        names = names or "quasi_hash, other_hash, row_number() OVER (PARTITION BY quasi_hash, other_hash)"
        rows = self.execute(f"SELECT class, waiting_since, {names} FROM kanon_private.members_1")
        found = {row[2:]: row[:2] for row in rows}
        assert len(found) == len(rows)
        return found

    def view(self) -> Counter[Any]:
        return Counter(self.execute("SELECT age, age_min, age_max, zip, city, colour, illness, ward FROM v"))

    def is_unknown(self, person: Person) -> bool:
        """Whether a hierarchy does not know a value of the person."""
        known = (ZIPS, self.cities, COLOURS)
        return any(value not in values for value, values in zip(person.quasi[1:], known, strict=True) if value)

    def everything(self) -> list[Any]:
        """All that a call that changes nothing must leave as it is."""
        private = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'kanon_private' ORDER BY table_name"
        names = [name for (name,) in self.execute(private) if name != "masked_views"]
        tables = [*(f"kanon_private.{name}" for name in names), "kanon_released.v", "kanon_history.v", "v"]
        contents = [Counter(map(str, self.execute(f"FROM {table}"))) for table in tables]
        return [*contents, self.execute("SELECT * EXCLUDE checked_at FROM kanon_private.masked_views")]

    def check(self, answer: dict[str, Any]) -> None:
        """The current release, which ``answer`` tells of, is the one that source and membership give."""
        members = self.members()
        assert members.keys() == self.captured.keys()
        classes = defaultdict(list)
        for identity, (label, waiting_since) in members.items():
            person = self.captured[identity]
            if label is not None:
                classes[label].append(person)
                assert not self.is_unknown(person)
            assert label is None or waiting_since is None
            assert waiting_since is not None or not self.is_unknown(person)
        assert min(map(len, classes.values())) >= self.k
        quasi_identifiers = [
            self.domain,
            tree(ZIPS),
            tree(self.cities),
            tree({value: f"{value} *" for value in COLOURS}),
        ]
        expected, loss = released(classes.values(), quasi_identifiers, self.step)
        shown = self.view()
        assert shown == expected
        found = figures(shown, self.k)
        assert {name: answer[name] for name in found} == pytest.approx(found)
        assert found["k_achieved"] >= self.k
        assert answer["information_loss"] == pytest.approx(float(loss))
        waiting = sum(since is not None for _, since in members.values())
        assert answer["waiting"] == waiting
        assert answer["suppressed"] == len(members) - found["rows"] - waiting
        assert answer["suppressed"] <= self.most_left_out * len(members)
        self.copies[answer["release"]] = shown
        [status] = self.execute("SELECT release, rows, waiting, status FROM kanon.masked_views")
        assert status == (answer["release"], found["rows"], waiting, "current")
        self.labels = {identity: label for identity, (label, _) in members.items() if label is not None}
        if self.key:
            expected_since = {
                identity: self.waiting_since.get(identity, answer["release"])
                for identity, (_, since) in members.items()
                if since is not None
            }
            self.waiting_since = {identity: members[identity][1] for identity in expected_since}
            assert self.waiting_since == expected_since

    def check_history(self) -> None:
        for release, rows in self.copies.items():
            as_of = f"SELECT age, age_min, age_max, zip, city, colour, illness, ward FROM kanon.as_of('v', {release})"
            if release >= self.first_release:
                assert Counter(self.execute(as_of)) == rows
            else:
                with pytest.raises(duckdb.Error, match=f"no release {release} to read"):
                    self.execute(as_of)

    def check_counts(self, answer: dict[str, Any], captured: dict[Any, Person], labels: dict[Any, int]) -> None:
        """Who came, changed, went and moved since the release of these people and classes."""
        assert answer["rows"] == len(labels) + answer["inserted"] - answer["deleted"]
        if self.key:
            both = labels.keys() & self.labels.keys()
            changed = {identity for identity in both if captured[identity] != self.captured[identity]}
            assert answer["inserted"] == len(self.labels.keys() - labels.keys())
            assert answer["deleted"] == len(labels.keys() - self.labels.keys())
            assert answer["updated"] == len(changed)
            if answer["cause"] != "rebuild":
                moved = [identity for identity in both - changed if labels[identity] != self.labels[identity]]
                assert answer["moved"] == len(moved)

    def refresh(self) -> None:
        before, captured, labels = self.everything(), self.captured, self.labels
        release = max(self.copies)
        answer = self.call("CALL kanon.refresh('v')")
        if self.foretold is not None:
            cause = answer["cause"]
            assert self.foretold["cause"] == (cause if cause in ("held", "unchanged") else f"dry run: {cause}")
            assert {name: self.foretold[name] for name in FIGURES} == {name: answer[name] for name in FIGURES}
        can_be_shown = sum(not self.is_unknown(person) for person in self.source().values())
        if answer["cause"] == "held":
            assert answer["release"] == release
            assert self.everything()[:-1] == before[:-1]
            assert self.execute("SELECT status FROM kanon.masked_views") == [("held",)]
            return
        assert can_be_shown >= self.k
        self.capture()
        if answer["cause"] == "unchanged":
            assert answer["release"] == release
            answer = self.current(release)
            assert self.view() == self.copies[release]
            self.check(answer)
        else:
            assert answer["release"] == release + 1
            self.check(answer)
            self.check_counts(answer, captured, labels)
        assert self.pending() == [0, 0, 0]

    def current(self, release: int) -> dict[str, Any]:
        """The row of a release, with those who wait now."""
        waiting = "(SELECT count(*) FROM kanon_private.members_1 WHERE waiting_since IS NOT NULL)"
        left_out = f"(SELECT count(*) FROM kanon_private.members_1 WHERE class IS NULL) - {waiting}"
        return self.call(
            f"SELECT * REPLACE ({waiting} AS waiting, {left_out} AS suppressed) FROM kanon.releases WHERE release = {release}"
        )

    def pending(self) -> list[int]:
        return [rows for _, rows in self.execute("FROM kanon.pending('v')")]


class RefreshMachine(RuleBasedStateMachine):
    """Changes of the source, and calls, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.masked = MaskedTable(f"{self.folder}/machine.duckdb")

    @initialize(
        people=st.lists(PEOPLE, min_size=4, max_size=30),
        key=st.sampled_from(list(KEYS)),
        k=st.integers(2, 4),
        step=st.sampled_from([1, 5]),
        method=st.sampled_from(["auto", "k_member", "oka"]),
        maintenance=st.sampled_from(["incremental", "incremental", "static", "append"]),
        max_suppression=st.sampled_from([0.0, 0.0, 0.2]),
        model=st.sampled_from(["", "", ", t => 0.15", ", t => 0.4"]),
        triggers=st.booleans(),
    )
    def create(self, people, key, k, step, method, maintenance, max_suppression, model, triggers):
        self.masked.insert(people)
        self.has_triggers = triggers and HAS_TRIGGERS and key != "none"
        self.has_model = bool(model)
        options = f"method => '{method}', maintenance => '{maintenance}'{model}"
        options += ", capture => 'trigger'" if self.has_triggers else ""
        self.masked.mask(key, k, step, options, max_suppression)

    def changed(self, statement: str) -> None:
        self.masked.foretold = None
        self.masked.execute(statement)

    @rule(people=st.lists(PEOPLE, min_size=1, max_size=12))
    def insert(self, people):
        self.masked.foretold = None
        self.masked.insert(people)

    @rule(
        people=st.lists(PEOPLE, min_size=1, max_size=3),
        column=st.integers(1, 3),
        city=st.sampled_from(list(NEW_CITIES)),
    )
    def insert_unknown(self, people, column, city):
        self.masked.foretold = None
        value = (UNKNOWN_ZIP, city, UNKNOWN_COLOUR)[column - 1]
        self.masked.insert([(*person[:column], value, *person[column + 1 :]) for person in people])

    @rule(ages=st.lists(st.integers(-30, 60) | st.sampled_from(FAR_AGES), min_size=1, max_size=4), person=PEOPLE)
    def insert_outside_the_domain(self, ages, person):
        self.masked.foretold = None
        self.masked.insert([(age, *person[1:]) for age in ages])

    @rule(divisor=st.integers(1, 7), remainder=st.integers(0, 6))
    def delete(self, divisor, remainder):
        self.changed(f"DELETE FROM t WHERE id % {divisor} = {remainder}")

    @rule(divisor=st.integers(2, 9), age=st.none() | st.integers(0, 25), colour=st.none() | st.sampled_from(COLOURS))
    def update_quasi_identifiers(self, divisor, age, colour):
        values = "age = ?, colour = ?"
        self.masked.foretold = None
        self.masked.connection.execute(f"UPDATE t SET {values} WHERE id % {divisor} = 1", [age, colour])

    @rule(divisor=st.integers(2, 9), column=st.sampled_from(["zip", "city", "colour"]))
    def update_to_unknown(self, divisor, column):
        value = {"zip": UNKNOWN_ZIP, "city": "g", "colour": UNKNOWN_COLOUR}[column]
        self.changed(f"UPDATE t SET {column} = '{value}' WHERE id % {divisor} = 2")

    @rule(divisor=st.integers(2, 9))
    def update_to_known(self, divisor):
        self.changed(f"UPDATE t SET zip = '111', city = NULL, colour = 'red' WHERE id % {divisor} = 2")

    @rule(divisor=st.integers(2, 9), illness=st.sampled_from(["NULL", "'flu'", "'gout'"]), ward=st.integers(0, 3))
    def update_what_is_released_as_it_is(self, divisor, illness, ward):
        self.changed(f"UPDATE t SET illness = {illness}, ward = {ward} WHERE id % {divisor} = 0")

    @rule(divisor=st.integers(2, 5))
    def delete_and_insert_the_same(self, divisor):
        self.masked.execute(f"CREATE OR REPLACE TEMPORARY TABLE taken AS FROM t WHERE id % {divisor} = 0")
        self.masked.execute(f"DELETE FROM t WHERE id % {divisor} = 0")
        self.masked.execute("INSERT INTO t BY NAME FROM taken")

    @precondition(lambda self: not self.has_triggers)  # DuckDB refuses these on a table with triggers
    @rule(
        statement=st.sampled_from(
            [
                "INSERT OR REPLACE INTO t FROM t",
                "INSERT INTO t FROM t ON CONFLICT DO UPDATE SET age = excluded.age",
                "MERGE INTO t USING (FROM t) AS new ON t.id = new.id WHEN MATCHED THEN UPDATE SET zip = new.zip",
            ]
        )
    )
    def merge_the_same(self, statement):
        self.write_the_same(statement)

    @rule(columns=st.sampled_from(["*", "ward, City, id, part, number, illness, colour, zip, AGE"]))
    def replace_by_the_same(self, columns):
        self.write_the_same(
            f"CREATE OR REPLACE TABLE t AS SELECT {columns} FROM t ORDER BY hash(id); ALTER TABLE t ADD PRIMARY KEY (id)"
        )

    def write_the_same(self, statement):
        before = self.masked.pending()
        self.masked.execute(statement)
        assert self.masked.pending() == before

    @rule(city=st.sampled_from(list(NEW_CITIES)))
    def extend_hierarchy(self, city):
        masked = self.masked
        masked.foretold = None
        masked.execute(f"CALL kanon.extend_hierarchy('city', levels => '{levels({city: NEW_CITIES[city]})}')")
        masked.cities[city] = NEW_CITIES[city]

    @rule()
    def refresh(self):
        self.masked.refresh()
        self.masked.foretold = None

    @rule()
    def dry_run(self):
        before = self.masked.everything()
        self.masked.foretold = self.masked.call("CALL kanon.refresh('v', dry_run => true)")
        assert self.masked.everything() == before

    @rule()
    def optimize(self):
        masked = self.masked
        masked.foretold = None
        release = max(masked.copies)
        before, labels = masked.current(release), masked.labels
        answer = masked.call("CALL kanon.optimize('v')")
        if answer["cause"] == "unchanged":
            masked.check(masked.current(release))
        else:
            masked.check(answer)
            masked.check_counts(answer, masked.captured, labels)
            assert (answer["release"], answer["updated"]) == (release + 1, 0)
            assert self.has_model or "illness is released without l, p, alpha or t" in answer["warnings"]
            assert answer["information_loss"] < before["information_loss"] + 1e-9

    @rule(k=st.integers(2, 4), method=st.sampled_from(["auto", "k_member"]))
    def rebuild(self, k, method):
        masked = self.masked
        masked.foretold = None
        before, captured, labels = masked.everything(), masked.captured, masked.labels
        masked.capture()
        unknown = any(map(masked.is_unknown, masked.captured.values()))
        call = f"CALL kanon.rebuild('v', k => {k}, method => '{method}')"
        if unknown or len(masked.captured) < k:
            with pytest.raises(duckdb.Error, match="no leaf|stands for the root|rows"):
                masked.call(call)
            assert masked.everything() == before
            masked.captured = captured
            return
        masked.k = k
        answer = masked.call(call)
        masked.from_scratch(answer)
        masked.check_counts(answer, captured, labels)

    @rule(share=st.floats(0, 1))
    def forget(self, share):
        masked = self.masked
        before = 1 + int(share * (max(masked.copies) - 1))
        answer = masked.call(f"CALL kanon.forget('v', before_release => {before})")
        masked.first_release = max(masked.first_release, before)
        assert answer["first_release"] == masked.first_release
        masked.check_history()

    @rule()
    def reopen(self):
        self.masked.reopen()

    @rule()
    def connect_again(self):
        self.masked.connect_again()

    def teardown(self):
        masked = self.masked
        if masked.copies:
            masked.check_history()
            for release in range(masked.first_release, max(masked.copies) + 1):
                checks = masked.records(f"FROM kanon.check('v', release => {release})")
                assert {check["requirement"] for check in checks} >= {"k", *(["t"] if self.has_model else [])}
                assert all(check["passed"] for check in checks)
        masked.close()
        shutil.rmtree(Path(self.folder))


TestRefresh = RefreshMachine.TestCase
TestRefresh.settings = settings(
    max_examples=12,
    stateful_step_count=12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take longer than the test may
    suppress_health_check=list(HealthCheck),
)


def mask(
    tmp_path: Path, people: list[tuple[Any, ...]], k: int, options: str, most_left_out: float = 0.0
) -> MaskedTable:
    """A table of these people and its masked view."""
    masked = MaskedTable(str(tmp_path / "table.duckdb"))
    masked.insert(people)
    masked.mask("one", k, 1, options, most_left_out)
    return masked


def test_a_label_that_an_extension_makes_higher_loses_more_from_then_on(tmp_path: Path) -> None:
    below_x = [(1, "11", city, "red", "flu", 0) for city in "ab"]
    masked = mask(tmp_path, below_x + [(20, "2", "d", "red", "flu", 0)] * 2, 2, "method => 'k_member'")
    masked.execute(f"CALL kanon.extend_hierarchy('city', levels => '{levels({'g': NEW_CITIES['g']})}')")
    masked.cities["g"] = NEW_CITIES["g"]
    masked.insert([(20, "2", "d", "red", "flu", 0)])
    masked.refresh()


@pytest.mark.parametrize("method", ["k_member", "auto"])
def test_clustering_all_rows_anew_leaves_out_no_more_than_the_share(tmp_path: Path, method: str) -> None:
    people = [(age % 21, "11", "a", "red", "flu", 0) for age in range(0, 60, 3)]
    masked = mask(tmp_path, people, 3, f"method => '{method}', maintenance => 'static'", 0.2)
    for age in range(4):
        masked.insert([(age, "2", "c", "blue", "flu", 0)])
        masked.refresh()
        [(left_out, people_now)] = masked.execute(
            "SELECT count(*) FILTER (class IS NULL), count(*) FROM kanon_private.members_1"
        )
        assert left_out <= people_now // 5


@pytest.mark.parametrize("maintenance", ["incremental", "static", "append"])
@pytest.mark.parametrize("method", ["k_member", "auto"])
def test_no_more_than_the_share_is_left_out_after_others_have_gone(
    tmp_path: Path, method: str, maintenance: str
) -> None:
    people = [(age % 21, "11", "a", "red", "flu", 0) for age in range(0, 60, 3)]
    masked = mask(tmp_path, people, 3, f"method => '{method}', maintenance => '{maintenance}'", 0.2)
    assert masked.execute("SELECT suppressed > 0 FROM kanon.releases") == [(True,)]
    shown = "(SELECT key_0 FROM kanon_private.members_1 WHERE class IS NOT NULL ORDER BY row LIMIT {})"
    for count in (8, 11):
        masked.insert([(3, "2", "c", "blue", "flu", 0)] * 3)
        masked.refresh()
        masked.execute(f"DELETE FROM t WHERE id IN {shown.format(count)}")
        masked.refresh()
        [(left_out, people_now)] = masked.execute(
            "SELECT count(*) FILTER (class IS NULL), count(*) FROM kanon_private.members_1"
        )
        assert left_out <= people_now // 5


def test_rows_that_wait_are_not_told_as_left(tmp_path: Path) -> None:
    masked = mask(tmp_path, [(age, "11", "a", "red", "flu", 0) for age in range(4)], 4, "method => 'k_member'")
    masked.insert([(1, "11", "f", "red", "flu", 0)] * 5)
    masked.execute("DELETE FROM t WHERE id = 1")
    masked.refresh()
    [(reason,)] = masked.execute("SELECT reason FROM kanon.masked_views")
    assert reason == "fewer than 4 rows are left that can be shown: release 1 stays until there are more"


@pytest.mark.parametrize(
    ("method", "maintenance"), [("auto", "incremental"), ("k_member", "append"), ("oka", "static")]
)
def test_what_a_process_remembers_changes_no_release(tmp_path: Path, method: str, maintenance: str) -> None:
    """Two tables with the same changes: of one the process remembers the members, of the other nothing."""
    results = []
    for remembers in (True, False):
        random = Random(1)

        def people(count: int, random: Random = random) -> list[tuple[Any, ...]]:
            columns = [range(21), list(ZIPS), list(CITIES), COLOURS, ["flu", "cold"], range(3)]
            return [tuple(random.choice([None, *values]) for values in columns) for _ in range(count)]

        folder = tmp_path / str(remembers)
        folder.mkdir()
        masked = mask(folder, people(60), 3, f"method => '{method}', maintenance => '{maintenance}'")
        for batch in range(3):
            masked.insert(people(12))
            masked.execute(f"DELETE FROM t WHERE id % 7 = {batch}")
            masked.execute(f"UPDATE t SET colour = 'shade_{batch}' WHERE id % 6 = {batch}")
            if not remembers:
                masked.reopen()
            answer = masked.call("CALL kanon.refresh('v')")
            members = masked.execute(
                "SELECT key_0, row, class, waiting_since FROM kanon_private.members_1 ORDER BY row"
            )
            results.append((remembers, masked.view(), members, {name: answer[name] for name in FIGURES}))
        masked.close()
    assert [result[1:] for result in results[:3]] == [result[1:] for result in results[3:]]


def test_a_source_made_anew_with_its_columns_in_another_order_is_the_same(tmp_path: Path) -> None:
    people = [(1, "11", city, colour, "flu", 0) for city in "abc" for colour in COLOURS[:3]]
    masked = mask(tmp_path, people, 3, "seed => 1")
    masked.execute("CREATE OR REPLACE TABLE t AS SELECT ward, COLOUR, illness, City, 1 AS more, zip, age, id FROM t")
    assert masked.call("CALL kanon.refresh('v')")["cause"] == "unchanged"
    columns = masked.execute("SELECT column_name FROM (DESCRIBE v)")
    masked.from_scratch(masked.call("CALL kanon.rebuild('v')"))
    assert masked.execute("SELECT column_name FROM (DESCRIBE v)") == columns
    masked.check_history()

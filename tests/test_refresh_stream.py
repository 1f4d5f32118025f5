"""A stream of changes of Adult through SQL: after every refresh the masked view is the one that membership gives."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest

import kanon_duck
from tests.test_real_data import ADULT_QUASI_IDENTIFIERS, ADULT_TREES, load_adult

pytestmark = pytest.mark.timeout(1800)

BATCHES = 20
ROWS_AT_FIRST = 10_000
LARGEST_CHANGE = 100
"""Most rows that one batch inserts, deletes, gives other quasi-identifiers, and gives other incomes."""

DOMAINS = {"age": (17, 90), "education_num": (1, 16)}
K = 5


class Stream(NamedTuple):
    """What a stream of batches costs, and what it leaves: loss per row of the last release and of a rebuild."""

    seconds: list[float]
    maintained: float
    rebuilt: float


def rows_of(connection: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]]:
    return connection.execute(statement).fetchall()


def call(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, Any]:
    result = connection.execute(statement)
    names = [column[0] for column in result.description]
    [row] = result.fetchall()
    return dict(zip(names, row, strict=True))


def prepare(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Adult in part as the table people, the parents of all leaves as tables, and people masked."""
    load_adult(connection, folder)
    connection.execute(f"CREATE TABLE people AS FROM adult ORDER BY hash(id) LIMIT {ROWS_AT_FIRST}")
    for tree in ADULT_TREES:
        lines = [line.split(";") for line in (folder / f"adult_{tree}.txt").read_text(encoding="utf-8").split()]
        connection.execute(f"CREATE TABLE parents_{tree} (leaf VARCHAR, parent VARCHAR)")
        connection.executemany(f"INSERT INTO parents_{tree} VALUES (?, ?)", [line[:2] for line in lines])
    domains = ", ".join(f"'{name}': {{'type': 'numeric', 'domain': {list(ends)}}}" for name, ends in DOMAINS.items())
    trees = ", ".join(f"'{name}': '{name}'" for name in ADULT_TREES)
    call(
        connection,
        f"CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => {K}, secure => false, "
        f"quasi_identifiers => {{{domains}, {trees}}}, sensitive => 'income')",
    )
    # who is in which class, with values from the source alone
    parents = ", ".join(f"parents_{name}.parent AS {name}_parent" for name in ADULT_TREES)
    joined = " ".join(f"JOIN parents_{name} ON parents_{name}.leaf = people.{name}" for name in ADULT_TREES)
    connection.execute(
        f"CREATE VIEW classified AS SELECT members.class, people.*, {parents} FROM people "
        f"JOIN kanon_private.members_1 AS members ON members.key_0 = people.id {joined}"
    )
    cells = [numeric_cells(name, *ends) for name, ends in DOMAINS.items()] + [*map(categorical_cell, ADULT_TREES)]
    connection.execute(
        f"CREATE VIEW recomputed AS SELECT classes.* EXCLUDE class, income FROM classified JOIN "
        f"(SELECT class, {', '.join(cells)} FROM classified GROUP BY class) AS classes USING (class)"
    )


def numeric_cells(name: str, first: int, last: int) -> str:
    """SQL for the three cells of a number."""
    low, high = f"min({name})", f"max({name})"
    is_root = f"({low} <= {first} AND {high} >= {last})"
    text = f"CASE WHEN {is_root} THEN '*' WHEN {low} = {high} THEN {low}::VARCHAR ELSE '[' || {low} || ', ' || {high} || ']' END"
    bounds = [f"CASE WHEN NOT {is_root} THEN {end} END AS {name}_{word}" for end, word in ((low, "min"), (high, "max"))]
    return ", ".join([f"{text} AS {name}", *bounds])


def categorical_cell(name: str) -> str:
    """SQL for the lowest common ancestor in a tree of at most three levels."""
    same, alike = f"min({name}) = max({name})", f"min({name}_parent) = max({name}_parent)"
    return f"CASE WHEN {same} THEN min({name}) WHEN {alike} THEN min({name}_parent) ELSE '*' END AS {name}"


def recomputed_loss(connection: duckdb.DuckDBPyConnection) -> float:
    """Total information loss, from the source's values of each class."""
    data = connection.execute("FROM classified ORDER BY class").fetchnumpy()
    first = np.flatnonzero(np.r_[True, data["class"][1:] != data["class"][:-1]])
    sizes = np.diff(np.r_[first, len(data["class"])])
    loss = 0.0
    for name, (low, high) in DOMAINS.items():
        widths = np.maximum.reduceat(data[name], first) - np.minimum.reduceat(data[name], first)
        loss += float(sizes @ np.minimum(widths / (high - low), 1))
    for name in ADULT_TREES:
        is_high = np.any(data[f"{name}_parent"] != "*")
        steps = [f"{name}", f"{name}_parent"] if is_high else [name]
        for step in steps:
            codes = np.unique(data[step].astype(str), return_inverse=True)[1]
            differs = np.maximum.reduceat(codes, first) != np.minimum.reduceat(codes, first)
            loss += float(sizes @ differs) / len(steps)
    return loss


def change(connection: duckdb.DuckDBPyConnection, random: Random) -> dict[str, int]:
    """One batch of random changes of people; how many it inserted, deleted and updated."""
    inserted, deleted, moved, other = (random.randrange(LARGEST_CHANGE + 1) for _ in range(4))
    salt = random.randrange(2**31)
    columns = ADULT_QUASI_IDENTIFIERS.strip("[]").replace("'", "")
    before = f"CREATE OR REPLACE TEMPORARY TABLE before AS SELECT id, {columns}, income FROM people"
    connection.execute(before)
    pick = f"SELECT id FROM people ORDER BY hash(id, {salt})"
    connection.execute(
        f"INSERT INTO people FROM adult WHERE id NOT IN (SELECT id FROM people) ORDER BY hash(id, {salt}) LIMIT {inserted}"
    )
    connection.execute(f"DELETE FROM people WHERE id IN ({pick} LIMIT {deleted})")
    assignments = ", ".join(f"{name.strip()} = others.{name.strip()}" for name in columns.split(","))
    connection.execute(
        f"UPDATE people SET {assignments} FROM ({pick} LIMIT {moved}) AS chosen JOIN adult AS others "
        "ON others.id = chosen.id % 30000 + 1 WHERE people.id = chosen.id"
    )
    connection.execute(
        "UPDATE people SET income = CASE income WHEN '<=50K' THEN '>50K' ELSE '<=50K' END "
        f"WHERE id IN (SELECT id FROM people ORDER BY hash(id, {salt + 1}) LIMIT {other})"
    )
    now = f"SELECT id, {columns}, income FROM people"
    counts = call(
        connection,
        f"SELECT (SELECT count(*) FROM people ANTI JOIN before USING (id)) AS inserted, "
        f"(SELECT count(*) FROM before ANTI JOIN people USING (id)) AS deleted, "
        f"(SELECT count(*) FROM ({now} EXCEPT FROM before) SEMI JOIN before USING (id)) AS updated",
    )
    return counts


def assert_same(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> None:
    """Two relations have the same rows, each as often."""
    assert rows_of(connection, f"({one} EXCEPT ALL {other}) LIMIT 3") == []
    assert rows_of(connection, f"({other} EXCEPT ALL {one}) LIMIT 3") == []


def stream(connection: duckdb.DuckDBPyConnection, batches: int) -> Stream:
    """Bring in batch after batch, and look at everything that must hold after each."""
    random = Random(7)
    cells = [f"{name}{suffix}" for name in DOMAINS for suffix in ("", "_min", "_max")] + ADULT_TREES
    shown = ", ".join([*cells, "income"])
    seconds = []
    connection.execute("CREATE TABLE copy_1 AS FROM masked")
    for batch in range(batches):
        expected = change(connection, random)
        started = time.process_time()
        answer = call(connection, "CALL kanon.refresh('masked')")
        seconds.append(time.process_time() - started)
        assert (answer["release"], answer["waiting"]) == (batch + 2, 0)
        assert {name: answer[name] for name in expected} == expected
        assert_same(
            connection, "SELECT id, income FROM people", "SELECT key_0, sensitive_0 FROM kanon_private.members_1"
        )
        assert_same(connection, f"SELECT {shown} FROM masked", f"SELECT {shown} FROM recomputed")
        sizes = call(
            connection,
            "SELECT sum(size) AS rows, count(*) AS classes, min(size) AS k_achieved, sum(size * size) AS discernibility "
            f"FROM (SELECT count(*) AS size FROM masked GROUP BY {', '.join(cells)})",
        )
        assert {name: answer[name] for name in sizes} == sizes
        assert sizes["k_achieved"] >= K
        assert answer["information_loss"] == pytest.approx(recomputed_loss(connection), rel=1e-9)
        connection.execute(f"CREATE TABLE copy_{batch + 2} AS FROM masked")
    assert rows_of(connection, "SELECT sum(rows) FROM kanon.pending('masked')") == [(0,)]
    for release in range(1, batches + 2):
        assert_same(connection, f"FROM kanon.as_of('masked', {release})", f"FROM copy_{release}")
    rebuilt = call(connection, "CALL kanon.rebuild('masked')")
    return Stream(seconds, answer["information_loss_per_row"], rebuilt["information_loss_per_row"])


def test_the_masked_view_follows_a_stream_of_changes(shared_data: Path) -> None:
    with kanon_duck.connect() as connection:
        prepare(connection, shared_data / "adult")
        result = stream(connection, BATCHES)
        assert result.maintained < 1.1 * result.rebuilt

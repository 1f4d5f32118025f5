"""Refreshes through SQL against I3M+, I3M- and IL_Optimization as the figures of Truta & Campan 2007 read."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kanon_duck
from kanon_duck.maintenance import batch
from tests.encodings import Numeric, Tree
from tests.literal_i3m import LiteralPartition

pytestmark = pytest.mark.timeout(600)

CITIES = ["a", "b", "c", "d", None]
TREE = Tree({"a": "x", "b": "x", "c": "y", "d": "y", "x": "*", "y": "*"})
COLOURS = ["red", "green", "blue", None]
FLAT = Tree(dict.fromkeys(COLOURS[:3], "*"))
QUASI_IDENTIFIERS = [Numeric(0, 64), TREE, FLAT]
"""Losses per row are multiples of 1/64: single precision adds them exactly, so ties are ties."""

Values = dict[int, tuple[Any, ...]]


def random_person(random: np.random.Generator) -> tuple[Any, ...]:
    age = None if random.random() < 0.1 else int(random.integers(65))
    return age, CITIES[random.integers(5)], COLOURS[random.integers(4)]


def change(connection: duckdb.DuckDBPyConnection, random: np.random.Generator, people: Values) -> Values:
    """The people after random ones have gone, changed and come, in the table t too."""
    after = {}
    for identity, values in people.items():
        fate = random.random()
        if fate > 0.3:
            after[identity] = values
        elif fate > 0.15:
            after[identity] = random_person(random)
    for _ in range(int(random.integers(0, 12))):
        after[max([*people, *after]) + 1] = random_person(random)
    write(connection, after)
    return after


def write(connection: duckdb.DuckDBPyConnection, people: Values) -> None:
    connection.execute("CREATE OR REPLACE TABLE t (id INTEGER, age INTEGER, city VARCHAR, colour VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(key, *values) for key, values in people.items()])


def members(connection: duckdb.DuckDBPyConnection) -> dict[int, tuple[int, int]]:
    """Row number and class of each person."""
    rows = connection.execute("SELECT key_0, row, coalesce(class, -1) FROM kanon_private.members_1").fetchall()
    return {identity: (row, label) for identity, row, label in rows}


def literal_partition(
    people: Values, classes: dict[int, tuple[int, int]], rows: dict[int, int], k: int
) -> LiteralPartition:
    """A literal partition by row number: these values, and these classes of before."""
    n = max([*rows.values(), *(row for row, _ in classes.values())]) + 1
    values: list[tuple[Any, ...]] = [(None, None, None)] * n
    labels = [-1] * n
    for identity, row in rows.items():
        values[row] = people[identity]
    for row, label in classes.values():
        labels[row] = label
    return LiteralPartition(values, QUASI_IDENTIFIERS, labels, k)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(12, 40), k=st.integers(2, 4), seed=st.integers(0, 2**32))
def test_refreshes_do_what_the_figures_say(monkeypatch: pytest.MonkeyPatch, n: int, k: int, seed: int) -> None:
    placed: list[int] = []

    def insert_rows(partition, rows, *others):
        placed.extend(rows.tolist())
        return original(partition, rows, *others)

    random = np.random.default_rng(seed)
    people = {identity: random_person(random) for identity in range(n)}
    with monkeypatch.context() as patched, kanon_duck.connect() as connection:
        original = batch.insert_rows
        patched.setattr(batch, "insert_rows", insert_rows)
        write(connection, people)
        connection.execute(
            "CALL kanon.create_hierarchy('city', levels => "
            "'SELECT * FROM (VALUES (''a'', ''x'', ''*''), (''b'', ''x'', ''*''), (''c'', ''y'', ''*''), (''d'', ''y'', ''*''))')"
        )
        connection.execute(
            f"CALL kanon.create_masked_view('v', source => 't', key => 'id', k => {k}, secure => false, quasi_identifiers "
            "=> {'age': {'type': 'numeric', 'domain': [0, 64]}, 'city': 'city', 'colour': 'flat'}, method => 'k_member')"
        )
        for _ in range(4):
            before, old = members(connection), people
            people = change(connection, random, people)
            placed.clear()
            answer = connection.execute("SELECT cause FROM kanon.refresh('v')").fetchall()
            if answer == [("held",)]:
                return
            after = members(connection)
            rows = {identity: row for identity, (row, _) in after.items()}
            changed = {identity for identity in people if people[identity] != old.get(identity)}
            leaving = [row for identity, (row, _) in before.items() if identity in changed or identity not in people]
            literal = literal_partition(people, before, rows, k)
            literal.delete(leaving)
            if not literal.classes:  # everybody is clustered from scratch
                assert not placed
                continue
            assert sorted(placed) == sorted(rows[identity] for identity in changed)
            literal.insert(placed)
            labels = literal.labels()
            assert {identity: labels[row] for identity, row in rows.items()} == {
                identity: label for identity, (_, label) in after.items()
            }
        before = members(connection)
        literal = literal_partition(people, before, {identity: row for identity, (row, _) in before.items()}, k)
        literal.optimize()
        literal.split_large()
        connection.execute("CALL kanon.optimize('v')").fetchall()
        labels = literal.labels()
        assert all(labels[row] == label for row, label in members(connection).values())

"""kanon.compare: the figures that masked views would have, and nothing left behind."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from kanon_duck.catalog.settings import read_settings
from kanon_duck.clustering.declared import cluster
from kanon_duck.errors import Cancelled
from kanon_duck.intake.encode import encode
from kanon_duck.intake.snapshot import take_snapshot
from kanon_duck.procedures import compare
from kanon_duck.release import query_error as random_counts
from kanon_duck.release.generalization import generalize
from kanon_duck.runtime.call import Call, no_checkpoint
from kanon_duck.runtime.database import Database

PATIENTS = """
CREATE TABLE patients AS
SELECT i AS id, i // 2 AS person, CASE WHEN hash(i, 6) % 20 > 0 THEN CAST(hash(i) % 60 AS INTEGER) END AS age,
       CASE WHEN hash(i, 5) % 30 > 0 THEN CAST(410 + hash(i, 1) % 30 AS VARCHAR) END AS zip,
       CAST(hash(i, 2) % 3 AS VARCHAR) AS ward, CAST(hash(i, 3) % 5 AS VARCHAR) AS illness, hash(i, 4) % 9 AS visits
FROM range({}) AS r(i)
"""
WHO = "key => 'id', quasi_identifiers => {'age': 'numeric', 'zip': 'zip', 'ward': 'flat'}"
FIGURES = (
    "rows, classes, suppressed, information_loss, information_loss_per_row, discernibility, average_class_size, method"
)


def make(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    connection.execute(PATIENTS.format(rows))
    connection.execute("CALL kanon.create_hierarchy('zip', prefix => 3)")
    connection.execute("CALL kanon.create_hierarchy('illness', intervals => [2])")


def records(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def option(name: str, value: Any) -> str:
    return "" if value is None else f", {name} => {value!r}"


@pytest.mark.parametrize(
    ("common", "varied"),
    [
        (", sensitive => ['illness', 'visits']", "k => 3, l => [NULL, 3], t => 0.6"),
        (", sensitive => ['illness'], max_suppression => 0.1, seed => 5", "k => 4, alpha => 0.5, methods => ['k_member', 'OKA']"),
        (", sensitive => {'illness': 'illness'}, protected => {'illness': ['[0, 2)']}, unit => 'person', weights => {'age': 3.0}",
         "k => 3, p => 2, entropy_l => [NULL, 1.5], recursive_cl => [3.0, 2.0]"),
    ],
)  # fmt: skip
def test_its_figures_are_those_of_masked_views(connection: duckdb.DuckDBPyConnection, common: str, varied: str) -> None:
    make(connection, 90)
    runs = records(connection, f"FROM kanon.compare('patients', {WHO}{common}, {varied})")
    assert len(runs) == 2
    for number, run in enumerate(runs):
        assert run["error"] is None
        assert run["peak_memory_bytes"] > 10_000_000
        names = ("k", "l", "p", "alpha", "t", "entropy_l", "recursive_cl", "method")
        models = "".join(option(name, run[name]) for name in names)
        query = f"CALL kanon.create_masked_view('v{number}', source => 'patients', independent => true, secure => false, {WHO}{common}{models})"
        connection.execute(query)
        released = records(connection, f"SELECT {FIGURES} FROM kanon.releases WHERE view_name = 'v{number}'")[0]
        assert {name: run[name] for name in released} == released


def test_nothing_is_left_behind(connection: duckdb.DuckDBPyConnection) -> None:
    make(connection, 60)
    everything = (
        "SELECT database_name, schema_name, table_name, estimated_size FROM duckdb_tables() "
        "UNION ALL SELECT database_name, schema_name, view_name, 0 FROM duckdb_views() ORDER BY ALL"
    )
    state = [connection.execute(query).fetchall() for query in (everything, "FROM kanon.masked_views")]
    sequence = f"FROM kanon.compare('patients', {WHO}, sensitive => ['illness'], k => [2, 3, 99], p => [NULL, 2])"
    first = records(connection, f"SELECT * EXCLUDE (seconds, peak_memory_bytes) FROM ({sequence})")
    assert [connection.execute(query).fetchall() for query in (everything, "FROM kanon.masked_views")] == state
    assert records(connection, f"SELECT * EXCLUDE (seconds, peak_memory_bytes) FROM ({sequence})") == first


def test_a_run_that_fails_says_why_and_the_others_go_on(connection: duckdb.DuckDBPyConnection) -> None:
    make(connection, 60)
    runs = records(
        connection,
        f"FROM kanon.compare('patients', {WHO}, sensitive => ['illness'], k => [1, 61, 5], l => [2, 6])",
    )
    assert [(run["k"], run["l"], run["error"]) for run in runs] == [
        (1, 2, "k is 1: it must be at least 2"),
        (1, 6, "k is 1: it must be at least 2"),
        (61, 2, "k is 61, but there are only 60 rows: the largest possible k is 60"),
        (61, 6, "k is 61, but there are only 60 rows: the largest possible k is 60"),
        (5, 2, None),
        (5, 6, "l is 6, but illness has only 5 different values: the largest possible l is 5"),
    ]
    results = [name for name in runs[0] if name not in ("method", "k", "l", "error")]
    assert [any(run[name] is not None for name in results) for run in runs] == [run["error"] is None for run in runs]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{WHO}, k => []", "k is an empty list: name a value, or leave it out"),
        (f"{WHO}, k => [0, 1]", "k is 0: it must be at least 2"),
        (WHO, "k is missing: name it, as in k => 5"),
        (f"{WHO}, k => 3, methods => ['nearest']", "method is 'nearest': it must be one of"),
        (f"{WHO}, k => 3, methods => ['auto', 'oka'], method_options => {{'next_seed': 'lin_wei'}}", "next_seed"),
        ("quasi_identifiers => ['agee'], k => 3", "quasi_identifiers names 'agee', but there is no such column"),
    ],
)
def test_what_no_run_could_do_is_refused(connection: duckdb.DuckDBPyConnection, options: str, message: str) -> None:
    make(connection, 20)
    with pytest.raises(duckdb.Error, match=message.replace("[", r"\[")):
        connection.execute(f"FROM kanon.compare('patients', {options})").fetchall()


def test_options_go_to_the_methods_that_have_them(connection: duckdb.DuckDBPyConnection) -> None:
    make(connection, 120)
    query = "SELECT method, information_loss FROM kanon.compare('patients', {}, k => 4, methods => ['auto', 'k_member', 'oka']{})"
    plain = dict(connection.execute(query.format(WHO, "")).fetchall())
    given = ", effort => 'light', method_options => {'next_seed': 'lin_wei'}"
    other = dict(connection.execute(query.format(WHO, given)).fetchall())
    assert other["k_member"] != plain["k_member"]
    assert other["oka"] == plain["oka"]


def prepared(connection: duckdb.DuckDBPyConnection, **arguments: Any) -> Call:
    given = {
        "source": "patients", "key": "id", "quasi_identifiers": {"age": "numeric", "zip": "zip", "ward": "flat"}, "k": 4
    }  # fmt: skip
    return Call(Database(connection.cursor()), given | arguments)


def test_the_error_of_random_counts_is_that_of_the_reader_functions(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_counts, "COUNTS", 8)
    make(connection, 150)
    connection.execute(
        f"CALL kanon.create_masked_view('masked', source => 'patients', {WHO}, k => 4, max_suppression => 0.05)"
    )
    call = prepared(connection, view_name="masked", max_suppression=0.05)
    settings = read_settings(call)
    microdata = encode(call.database, settings, take_snapshot(call, settings).table).microdata
    counts = random_counts.draw_counts(microdata, np.random.default_rng(3), no_checkpoint)
    connection.execute(
        "CREATE TABLE cells AS SELECT age, age_min, age_max, zip, ward, count(*) AS rows FROM masked GROUP BY ALL"
    )
    youngest, oldest = connection.execute("SELECT min(age), max(age) FROM patients").fetchall()[0]
    errors = []
    for conditions, true in zip(counts.drawn, counts.true, strict=True):
        assert len({condition.attribute for condition in conditions}) == len(conditions) in (2, 3)
        met, shares = ["true"], ["rows"]
        for attribute, (first, second) in conditions:
            name = ("age", "zip", "ward")[attribute]
            if name == "age":
                first, second = first + youngest, second + youngest
                met.append(f"age BETWEEN {first} AND {second}")
                of_all = f"kanon.overlap({youngest}, {oldest}, {first}, {second})"
                shares.append(
                    f"CASE WHEN age = '*' THEN {of_all} ELSE coalesce(kanon.overlap(age_min, age_max, {first}, {second}), 0) END"
                )
            else:
                tree = "zip" if name == "zip" else "flat"
                value = microdata.attributes[attribute].hierarchy.values[second]
                asked = f"kanon.generalize('{tree}', patients.{name}, {first}) = kanon.generalize('{tree}', '{value}', {first})"
                met.append(asked)
                values = f"(SELECT DISTINCT {name}, {asked} AS asked FROM patients WHERE {name} IS NOT NULL)"
                connection.execute(
                    f"CREATE OR REPLACE TABLE shares_{name} AS SELECT label, count(*) FILTER (asked) / count(*) AS share "
                    f"FROM (SELECT DISTINCT {name} AS label FROM cells), {values} WHERE kanon.covers('{tree}', label, {name}) GROUP BY label"
                )
                shares.append(f"coalesce((SELECT share FROM shares_{name} WHERE label = cells.{name}), 0)")
        assert connection.execute(f"SELECT count(*) FROM patients WHERE {' AND '.join(met)}").fetchall() == [(true,)]
        [(answer,)] = connection.execute(f"SELECT sum({' * '.join(shares)}) FROM cells").fetchall()
        errors.append(abs(answer - true) / max(true, 1, 0.15))
    labels = cluster(call, settings, microdata).labels
    found = random_counts.query_error(counts, microdata, labels, generalize(microdata, labels), no_checkpoint)
    assert found == pytest.approx(np.median(errors), rel=1e-9)
    assert found > 0.05


def test_counts_on_classes_of_equal_rows_are_exact(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE patients AS SELECT i AS id, i % 7 AS age, CAST(i % 7 % 2 AS VARCHAR) AS ward, CAST(NULL AS DOUBLE) AS zip "
        "FROM range(70) AS r(i)"
    )
    query = "SELECT information_loss, query_error FROM kanon.compare('patients', key => 'id', k => 10, quasi_identifiers => {})"
    assert connection.execute(query.format("['age', 'ward']")).fetchall() == [(0.0, 0.0)]
    nothing_known = query.format("{'zip': {'type': 'numeric', 'step': 1}}")
    assert connection.execute(nothing_known).fetchall() == [(0.0, None)]


def test_progress_rises_over_all_runs_and_an_interrupt_stops_them(connection: duckdb.DuckDBPyConnection) -> None:
    make(connection, 100)
    shares: list[float] = []
    phases: list[str] = []
    calls = 0

    def checkpoint(share: float | None = None) -> None:
        nonlocal calls
        calls += 1
        if share is not None and "clustering" in phases:
            shares.append(share)
        if calls >= last_call:
            raise Cancelled

    last_call = 10**9
    arguments = {"methods": ["k_member", "auto", "oka"], "k": [2, 4]}
    call = prepared(connection, **arguments)
    runs = compare.run(Call(call.database, call.arguments, checkpoint=checkpoint, phase=phases.append))
    assert phases == ["reading", "encoding", "clustering"]
    assert len(runs) == 6
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= 1 / 6
    assert 5 / 6 < shares[-1] <= 1
    for stop in (1, 1500, 6900):  # in drawing counts, in the first run and in the last
        calls, last_call = 0, stop
        with pytest.raises(Cancelled):
            compare.run(Call(call.database, call.arguments, checkpoint=checkpoint))

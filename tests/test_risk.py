"""kanon.risk: what it says equals a plain count of what readers see."""

from __future__ import annotations

from collections import Counter
from math import comb
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kanon_duck.privacy.risk import expected_inverse

Measures = dict[str, tuple[float | None, int | None]]


def risk(connection: duckdb.DuckDBPyConnection, call: str) -> Measures:
    return {
        measure: (value, rows) for measure, value, rows in connection.execute(f"FROM kanon.risk({call})").fetchall()
    }


def create(connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], options: str) -> None:
    connection.execute("DROP TABLE IF EXISTS people")
    connection.execute("CREATE TABLE people (id INTEGER, person INTEGER, age INTEGER, sex VARCHAR, ward VARCHAR)")
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
    connection.execute(
        "CALL kanon.create_masked_view('masked', source => 'people', key => 'id', independent => true, "
        f"quasi_identifiers => {{'age': 'numeric', 'sex': 'flat'}}, {options})"
    )


def expected(groups: Counter[Any], ending: str) -> Measures:
    """The measures of classes, by hand."""
    rows, sizes = sum(groups.values()), Counter(groups.values())
    smallest = min(sizes)
    at_smallest, average = smallest * sizes[smallest], (len(groups) / rows, rows)
    found = {
        "prosecutor_highest": (1 / smallest, at_smallest),
        "prosecutor_average": average,
        "prosecutor_rows_at_highest": (at_smallest / rows, at_smallest),
        "marketer": average,
        "sample_uniques": (sizes[1] / rows, sizes[1]),
    }
    bands = {"1": (1, 1), "2": (2, 2), "3_to_4": (3, 4), "5_to_9": (5, 9), "10_to_19": (10, 19), "20_to_49": (20, 49)}
    for name, (least, most) in bands.items():
        inside = [size for size in groups.values() if least <= size <= most]
        if inside:
            found[f"classes_of_{name}"] = (len(inside), sum(inside))
    return {name + ending: value for name, value in found.items()}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.just(0),
            st.none() | st.integers(0, 9),
            st.none() | st.sampled_from("mf"),
            st.none() | st.sampled_from("ab"),
        ),
        min_size=3,
        max_size=40,
    ),
    k=st.integers(2, 3),
)
def test_it_counts_what_readers_see(connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], k: int) -> None:
    create(connection, rows, f"k => {k}, keep => ['ward'], allow_unsafe_keep => ['ward']")
    try:
        found = risk(connection, "'masked'")
        shown = connection.execute("SELECT age, age_min, age_max, sex, ward FROM masked").fetchall()
    finally:
        connection.execute("CALL kanon.drop_masked_view('masked')")
    cells, with_kept = (Counter(row[:width] for row in shown) for width in (4, 5))
    own, own_with_kept = (Counter(row[1:width] for row in rows) for width in (3, 4))
    uniques = [Counter(counted.values())[1] for counted in (own, own_with_kept)]
    assert found == expected(cells, "") | expected(with_kept, "_with_kept") | {
        "journalist_highest": (None, None),
        "journalist_average": (None, None),
        "journalist_highest_with_kept": (None, None),
        "journalist_average_with_kept": (None, None),
        "source_uniques": (pytest.approx(uniques[0] / len(rows)), uniques[0]),
        "source_uniques_with_kept": (pytest.approx(uniques[1] / len(rows)), uniques[1]),
    }


def test_persons_count_where_a_person_has_several_rows(connection: duckdb.DuckDBPyConnection) -> None:
    # A has three rows, B and C have one each, all alike; the other class has three people with two rows each
    rows = [(1, 30, "m", "a")] * 3 + [(2, 30, "m", "a"), (3, 30, "m", "b")]
    rows += [(4 + number // 2, 60, "f", "a") for number in range(6)]
    create(connection, rows, "k => 3, unit => 'person', secure => false")
    found = risk(connection, "'masked'")
    assert found["prosecutor_highest"] == (1 / 3, 11)
    assert found["prosecutor_average"] == (1 / 3, 11)
    assert found["classes_of_3_to_4"] == (2, 11)
    assert found["source_uniques"] == (0, 0)
    with pytest.raises(duckdb.Error, match="population is 5, but the release has 6 people: name the number of all"):
        risk(connection, "'masked', population => 5")


def test_the_journalist_knows_the_population(connection: duckdb.DuckDBPyConnection) -> None:
    create(connection, [(0, 30, "m", "a")] * 5 + [(0, 60, "f", "a")] * 10, "k => 5")
    same = risk(connection, "'masked', population => 15")
    assert same["journalist_highest"] == (pytest.approx(same["prosecutor_highest"][0]), 5)
    assert same["journalist_average"] == (pytest.approx(same["prosecutor_average"][0]), 15)
    larger = risk(connection, "'masked', population => 15000")
    assert larger["journalist_highest"] == (pytest.approx(1 / 5000, rel=0.3), 5)
    for name, value in same.items():
        assert name.startswith("journalist") or larger[name] == value


@given(size=st.integers(1, 30), fraction=st.floats(0.05, 1))
@settings(max_examples=25, deadline=None)
def test_the_expected_risk_is_that_of_the_negative_binomial_distribution(size: int, fraction: float) -> None:
    series = sum(
        comb(others - 1, size - 1) * fraction**size * (1 - fraction) ** (others - size) / others
        for others in range(size, 60 * size + 1500)
    )
    [found] = expected_inverse(np.array([size]), fraction)
    assert found == pytest.approx(series, rel=1e-6)
    assert fraction / size * (1 - 1e-9) <= found <= (1 + 1e-9) / size

"""The p-sensitive methods: what every result must satisfy, a literal version, and the papers' tables through SQL."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.clustering.enhanced_pk import enhanced_pk, most_clusters
from kanon_duck.clustering.greedy_pk import greedy_pk
from kanon_duck.encoding.microdata import Microdata, Sensitive
from kanon_duck.errors import KanonError
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.call import no_checkpoint
from tests.encodings import Numeric, encode

BOTH = pytest.mark.parametrize("method", [enhanced_pk, greedy_pk])


def microdata_of(ages, values):
    """Rows of one numeric quasi-identifier and some sensitive attributes."""
    strong = np.array(values, np.int64)
    return Microdata(
        [],
        encode([(age,) for age in ages], [Numeric(0, 64)]),
        Sensitive(np.empty(0, np.int64), strong, strong, np.empty((0, len(ages)), np.int64), (), ()),
    )


@st.composite
def hostile(draw):
    """Small tables, k and p: one dominant value, p as many as there are values, few rows, duplicates, NULLs."""
    n = draw(st.integers(2, 40))
    p = draw(st.integers(2, min(5, n)))
    attributes = draw(st.integers(1, 3))
    ages = draw(st.lists(st.none() | st.integers(0, 64), min_size=n, max_size=n)) if draw(st.booleans()) else [7] * n
    values = []
    for _ in range(attributes):
        others = draw(st.just(0) | st.integers(0, p)) if draw(st.booleans()) else draw(st.integers(0, 9))
        free = draw(st.lists(st.integers(0, others), min_size=n - p, max_size=n - p))
        values.append(draw(st.permutations([*range(p), *free])))
    return ages, values, draw(st.integers(2, n)), p


@BOTH
@settings(max_examples=60, deadline=None)
@given(table=hostile(), seed=st.integers(0, 9))
def test_every_class_has_k_rows_and_p_values(method, table, seed):
    ages, values, k, p = table
    labels = method(microdata_of(ages, values), PrivacyModel(k, p=p), np.random.default_rng(seed), no_checkpoint)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    assert len(labels) == len(ages)
    bound = min(most_clusters(np.array(values), p)[0], len(ages) // k)
    assert 1 <= labels.max() + 1 <= bound
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        assert len(members) >= k
        assert all(len({each[row] for row in members}) >= p for each in values)


def literal_greedy(microdata, k, p, seed):
    """The method on plain lists, every sum made anew."""
    encoding, strong = microdata.encoding, microdata.sensitive.strong
    order = np.random.default_rng(seed).permutation(encoding.rows).tolist()
    weights, caps = encoding.weights.astype(float), encoding.caps.astype(int)

    def loss(members):
        codes = [encoding.codes[row].astype(int) for row in members]
        spread = np.minimum(np.max(codes, axis=0) - np.min(codes, axis=0), caps)
        return len(members) * float((weights * spread).sum())

    def seen(members):
        return [min(p, len({int(each[row]) for row in members})) for each in strong]

    def diversity(members, row):
        pairs = zip(seen(members), seen([*members, row]), strict=True)
        return sum((after - before) * (p - before) for before, after in pairs)

    classes, pool, last = [], list(order), order[0]
    while pool:
        last = max(pool, key=lambda row: loss([last, row]))
        members = [last]
        while (lacking := min(seen(members)) < p) or len(members) < max(k, p):
            rest = [row for row in pool if row not in members]
            if not rest or len(classes) == len(order) // max(k, p):
                break
            best = min(rest, key=lambda row: (-diversity(members, row), loss([*members, row]) - loss(members)))
            if lacking and diversity(members, best) == 0:
                break
            members.append(best)
        else:
            classes.append(members)
            pool = [row for row in pool if row not in members]
            continue
        break
    for row in pool:
        min(classes, key=lambda members: loss([*members, row]) - loss(members)).append(row)
    return classes


@settings(max_examples=40, deadline=None)
@given(table=hostile(), seed=st.integers(0, 9))
def test_greedy_as_written(table, seed):
    ages, values, k, p = table
    microdata = microdata_of(ages, values)
    labels = greedy_pk(microdata, PrivacyModel(k, p=p), np.random.default_rng(seed), no_checkpoint)
    classes = [sorted(members) for members in literal_greedy(microdata, k, p, seed)]
    assert [np.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)] == classes


def test_fill_does_not_run_dry():
    """Six rows, six values, p = 3: the printed iValue leaves one row for two clusters."""
    values = [list(range(6))]
    assert most_clusters(np.array(values), 3) == (2, 0)
    labels = enhanced_pk(microdata_of(range(6), values), PrivacyModel(2, p=3), np.random.default_rng(0), no_checkpoint)
    assert np.bincount(labels).tolist() == [3, 3]


def test_figure_1_allows_two_clusters_and_has_one():
    values = [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    assert most_clusters(np.array(values), 2) == (2, 0)
    for method in (enhanced_pk, greedy_pk):
        labels = method(microdata_of(range(4), values), PrivacyModel(2, p=2), np.random.default_rng(0), no_checkpoint)
        assert labels.tolist() == [0] * 4


@BOTH
def test_p_or_l_is_needed(method):
    microdata = microdata_of(range(6), [[0, 1] * 3])
    of_l = method(microdata, PrivacyModel(2, l=2), np.random.default_rng(0), no_checkpoint)
    assert of_l.tolist() == method(microdata, PrivacyModel(2, p=2), np.random.default_rng(0), no_checkpoint).tolist()
    with pytest.raises(KanonError, match="p is missing"):
        method(microdata, PrivacyModel(2), np.random.default_rng(0), no_checkpoint)


def create(connection, method, options):
    connection.execute(
        f"CALL kanon.create_masked_view('masked', source => 'people', quasi_identifiers => ['age'], "
        f"secure => false, method => '{method}', {options})"
    )


@pytest.mark.parametrize("method", ["enhanced_pk", "greedy_pk"])
def test_table_1(connection: duckdb.DuckDBPyConnection, method: str) -> None:
    """As printed, p is 1; the methods make it at least 2."""
    connection.execute(
        "CREATE TABLE people (age INTEGER, diagnosis VARCHAR, income INTEGER); INSERT INTO people VALUES "
        "(20, 'AIDS', 60000), (20, 'AIDS', 60000), (20, 'AIDS', 40000), (30, 'Diabetes', 50000), "
        "(30, 'Diabetes', 40000), (30, 'Tuberculosis', 50000), (30, 'Tuberculosis', 40000)"
    )
    groups = (
        "SELECT min(least(diagnoses, incomes)) FROM (SELECT count(DISTINCT diagnosis) AS diagnoses, "
        "count(DISTINCT income) AS incomes FROM {} GROUP BY age)"
    )
    assert connection.execute(groups.format("people")).fetchall() == [(1,)]
    with pytest.raises(duckdb.Error, match="p is missing: method"):
        create(connection, method, "k => 3, sensitive => ['diagnosis', 'income']")
    with pytest.raises(duckdb.Error, match="diagnosis has only 3 different values"):
        create(connection, method, "k => 3, p => 4, sensitive => ['diagnosis', 'income']")
    create(connection, method, "k => 3, p => 2, sensitive => ['diagnosis', 'income']")
    assert connection.execute(groups.format("masked")).fetchall()[0][0] >= 2


@pytest.mark.parametrize("method", ["enhanced_pk", "greedy_pk"])
def test_cancer_is_one_value(connection: duckdb.DuckDBPyConnection, method: str) -> None:
    """The kinds of cancer of the ICD-9 example count as one value where cancer is protected."""
    connection.execute(
        "CREATE TABLE edges AS FROM (VALUES ('colon', 'cancer'), ('breast', 'cancer'), ('prostate', 'cancer'), "
        "('cancer', 'illness'), ('flu', 'respiratory'), ('respiratory', 'illness')) AS edge(child, parent); "
        "CREATE TABLE people AS SELECT 20 + number AS age, CASE WHEN number % 4 = 3 THEN 'flu' ELSE "
        "['colon', 'breast', 'prostate'][1 + number % 4] END AS illness FROM range(24) AS numbers(number)"
    )
    connection.execute("CALL kanon.create_hierarchy('icd9', edges => 'SELECT child, parent FROM edges')")
    create(connection, method, "k => 2, p => 2, sensitive => {'illness': 'icd9'}, protected => {'illness': ['cancer']}")
    groups = connection.execute("SELECT count(*), bool_or(illness = 'flu') FROM masked GROUP BY age").fetchall()
    assert len(groups) > 1
    assert all(has_flu for _, has_flu in groups)

"""Full-domain generalization, against a look at every node of the lattice, and through SQL."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kanon_duck
from kanon_duck.clustering.incognito import incognito
from kanon_duck.clustering.repair import unsatisfied_classes
from kanon_duck.encoding.microdata import (
    Attribute,
    CategoricalAttribute,
    Microdata,
    NumericAttribute,
    Sensitive,
    encoding_of,
)
from kanon_duck.encoding.numeric import Step
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import demand
from kanon_duck.release.generalization import AT_ROOT, INTERVAL, NULL, generalize
from kanon_duck.runtime.arrow import texts
from kanon_duck.runtime.call import no_checkpoint
from tests.encodings import Tree, ancestors, heights, leaves, trees
from tests.people import CHANGE, PEOPLE, one
from tests.test_real_data import load_adult, mask

# --- a literal version


@dataclass(frozen=True)
class Number:
    """A numeric quasi-identifier from 0 to ``high``; ``between``: with values halfway between its steps.

    Where 0 is all of it there is nothing to lose a share of.
    """

    high: int
    between: bool

    def top(self) -> int:
        """The level of the whole domain."""
        intervals = max(self.high, 1) if self.between else self.high + 1
        return next(level for level in range(1, 10) if 2**level >= intervals)

    def at(self, value: Fraction | None, level: int) -> tuple[Any, Any, Any, Fraction]:
        """What tells a value from others at a level; the ends of what is shown; and the share that is lost."""
        if level == self.top():
            return "*", None, None, Fraction(1)
        if value is None:
            return None, None, None, Fraction(0)
        width = 2**level
        inside = value - Fraction(1, 2) if self.between and value == self.high > 0 else value
        low = inside // width * width
        high = low + width - (not self.between)
        low = max(low, min(0, value // 1))
        high = min(high, max(self.high, -(-value // 1)))
        share = min(Fraction(high - low, self.high), Fraction(1)) if self.high else Fraction(0)
        return inside // width, low, high, share


def tree_at(tree: Tree, value: str | None, level: int) -> tuple[Any, Fraction]:
    """What a value shows at a level, counted from the root, and the share that is lost."""
    height = max(heights(tree).values())
    if level == height:
        return "*", Fraction(1)
    if value is None:
        return None, Fraction(0)
    from_the_root = ancestors(tree, value)[::-1]
    node = from_the_root[min(height - level, len(from_the_root) - 1)]
    return node, Fraction(heights(tree)[node], height)


QuasiIdentifier = Number | Tree
Rows = list[tuple[Any, ...]]


def top(quasi_identifier: QuasiIdentifier) -> int:
    return quasi_identifier.top() if isinstance(quasi_identifier, Number) else max(heights(quasi_identifier).values())


def at(quasi_identifier: QuasiIdentifier, value: Any, level: int) -> tuple[Any, Fraction]:
    """What tells a value from others at a level, and the share that is lost."""
    if isinstance(quasi_identifier, Tree):
        return tree_at(quasi_identifier, value, level)
    key, _, _, share = quasi_identifier.at(value, level)
    return key, share


def groups(rows: Rows, quasi_identifiers: list[QuasiIdentifier], node: tuple[int, ...]) -> list[int]:
    """Rows that are the same at a node have the same number."""
    shown = [
        tuple(at(item, value, level)[0] for item, value, level in zip(quasi_identifiers, row, node, strict=True))
        for row in rows
    ]
    numbers = {cells: number for number, cells in enumerate(dict.fromkeys(shown))}
    return [numbers[cells] for cells in shown]


def loss(rows: Rows, quasi_identifiers: list[QuasiIdentifier], node: tuple[int, ...]) -> Fraction:
    """Total loss at a node."""
    return sum(
        (
            at(item, value, level)[1]
            for row in rows
            for item, value, level in zip(quasi_identifiers, row, node, strict=True)
        ),
        Fraction(0),
    )


def bound(tree: Tree, values: list[str]) -> BoundHierarchy:
    """The hierarchy as it is bound to the values that occur."""
    height_of = heights(tree)
    height = max(height_of.values())
    labels: list[list[str]] = [[] for _ in range(height)]
    codes = np.zeros((len(values), height), np.int64)
    for number, value in enumerate(values):
        for level in range(height):
            label = [node for node in ancestors(tree, value) if height_of[node] <= level][-1]
            if label not in labels[level]:
                labels[level].append(label)
            codes[number, level] = labels[level].index(label)
    return BoundHierarchy(height, "*", values, codes, [texts(names) for names in labels], [])


def attribute_of(name: str, quasi_identifier: QuasiIdentifier, values: list[Any]) -> Attribute:
    if isinstance(quasi_identifier, Tree):
        known = [leaf for leaf in leaves(quasi_identifier) if leaf in values]
        leaf = [-1 if value is None else known.index(value) for value in values]
        return CategoricalAttribute(name, bound(quasi_identifier, known), np.array(leaf, np.int32))
    low = np.array([0 if value is None else value // 1 for value in values], np.int64)
    high = np.array([0 if value is None else -(-value // 1) for value in values], np.int64)
    missing = np.array([value is None for value in values])
    step = Step("INTEGER", Fraction(1))
    domain = (0, quasi_identifier.high)
    return NumericAttribute(name, step, low, high if quasi_identifier.between else low, missing, domain, domain, 0)


def microdata_of(rows: Rows, quasi_identifiers: list[QuasiIdentifier], values: list[int]) -> Microdata:
    attributes = [
        attribute_of(f"q{place}", item, [row[place] for row in rows]) for place, item in enumerate(quasi_identifiers)
    ]
    codes = np.array([values], np.int64)
    sensitive = Sensitive(np.empty(0, np.int64), codes, codes, codes, (0,), (False,))
    return Microdata(attributes, encoding_of(attributes, [1.0] * len(attributes), len(rows)), sensitive)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rows, list[QuasiIdentifier], list[int]]:
    """Tables with NULLs, with values outside the domain, and often with one value that dominates."""
    quasi_identifiers: list[QuasiIdentifier] = []
    for _ in range(draw(st.integers(1, 3))):
        number = st.builds(Number, st.sampled_from([0, 1, 2, 5, 12]), st.booleans())
        quasi_identifiers.append(draw(number | trees()))
    choices = []
    for item in quasi_identifiers:
        if isinstance(item, Tree):
            known: Any = st.sampled_from(leaves(item))
        elif item.between:
            known = st.integers(-1, 2 * item.high + 3).map(lambda halves: Fraction(halves, 2))
        else:
            known = st.integers(-1, item.high + 2).map(Fraction)
        choices.append(st.none() | st.just(draw(known)) | known)
    rows = draw(st.lists(st.tuples(*choices), min_size=4, max_size=24))
    dominant = st.just(0) | st.integers(0, 3)
    return rows, quasi_identifiers, draw(st.lists(dominant, min_size=len(rows), max_size=len(rows)))


MODELS = [{}, {"l": 2}, {"p": 3}, {"alpha": 0.7}, {"entropy_l": 1.6}, {"recursive_cl": (2.0, 2)}, {"t": 0.4}]


@settings(deadline=None, max_examples=40)
@given(cases(), st.integers(2, 5), st.sampled_from(MODELS))
def test_the_published_node_is_the_best_minimal_one_of_all(case, k, models):
    rows, quasi_identifiers, values = case
    assume(k <= len(rows))
    model = PrivacyModel(k, **models)
    microdata = microdata_of(rows, quasi_identifiers, values)
    found = incognito(microdata, model, np.random.default_rng(0), no_checkpoint)

    demanded = demand(model, microdata.sensitive)
    lattice = list(itertools.product(*(range(top(item) + 1) for item in quasi_identifiers)))
    satisfying = {
        node
        for node in lattice
        if not len(unsatisfied_classes(np.array(groups(rows, quasi_identifiers, node)), demanded))
    }
    node = tuple(found.levels)
    assert found.labels.tolist() == groups(rows, quasi_identifiers, node)
    if not satisfying:
        assert node == lattice[-1]
        return
    below = {
        node: [(*node[:place], level - 1, *node[place + 1 :]) for place, level in enumerate(node) if level > 0]
        for node in satisfying
    }
    minimal = [node for node in satisfying if not satisfying.intersection(below[node])]
    assert node in minimal
    most = max(max(groups(rows, quasi_identifiers, each)) for each in minimal)
    assert max(found.labels) == most
    least = min(
        loss(rows, quasi_identifiers, each) for each in minimal if max(groups(rows, quasi_identifiers, each)) == most
    )
    assert float(loss(rows, quasi_identifiers, node)) == pytest.approx(float(least), abs=1e-5)
    [told] = found.warnings
    assert f"of {np.prod([top(item) + 2 for item in quasi_identifiers]) - 1} nodes" in told


@settings(deadline=None, max_examples=40)
@given(cases(), st.data())
def test_cells_show_the_levels(case, data):
    rows, quasi_identifiers, values = case
    microdata = microdata_of(rows, quasi_identifiers, values)
    node = tuple(data.draw(st.integers(0, top(item))) for item in quasi_identifiers)
    labels = groups(rows, quasi_identifiers, node)
    classes = generalize(microdata, np.array(labels), node)
    cells = classes.cells.to_pylist()
    for label, (cell, shares) in enumerate(zip(cells, classes.shares, strict=True)):
        members = [row for row, its in zip(rows, labels, strict=True) if its == label]
        for place, (item, level) in enumerate(zip(quasi_identifiers, node, strict=True)):
            if isinstance(item, Tree):
                shown, share = tree_at(item, members[0][place], level)
                assert cell[f"label_{place}"] == shown
            else:
                key, _, _, share = item.at(members[0][place], level)
                ends = [item.at(row[place], level)[1:3] for row in members]
                kind = cell[f"kind_{place}"]
                if key == "*":
                    assert kind == AT_ROOT
                elif key is None:
                    assert kind == NULL
                else:
                    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
                    covers = low <= 0 and high >= item.high and low < high
                    assert kind == (AT_ROOT if covers else INTERVAL)
                    if not covers:
                        assert (cell[f"low_{place}"], cell[f"high_{place}"]) == (low, high)
                    share = 1 if covers else min(Fraction(high - low, max(item.high, 1)), Fraction(1))
                    share = 0 if item.high == 0 and not covers else share
            assert shares[place] == pytest.approx(float(share))
    if all(isinstance(item, Tree) or item.high > 0 for item in quasi_identifiers):
        assert len(set(classes.reader_class)) == len(cells), "rows that differ at the levels are told apart"


def test_a_checkpoint_stops_the_search():
    asked = []

    def stop(share):
        asked.append(share)
        if len(asked) == 3:
            raise InterruptedError

    rows: Rows = [(Fraction(n % 7), Fraction(n % 5)) for n in range(20)]
    microdata = microdata_of(rows, [Number(6, False), Number(4, False)], [0] * 20)
    with pytest.raises(InterruptedError):
        incognito(microdata, PrivacyModel(4), np.random.default_rng(0), stop)
    assert all(0 <= share <= 1 for share in asked)


# --- through SQL

OPTIONS = "source => 't', key => 'id', method => 'incognito', secure => false"


def test_ages_with_nulls_are_all_there_in_intervals_of_one_width(connection: duckdb.DuckDBPyConnection) -> None:
    ages = [20, 21, 22, None, 40, 41, None, 43]
    connection.execute("CREATE TABLE t (id INTEGER, age INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(ages)))
    release = one(connection, f"CALL kanon.create_masked_view('m', {OPTIONS}, k => 2, quasi_identifiers => ['age'])")
    shown = connection.execute("SELECT *, count(*) FROM m GROUP BY ALL ORDER BY age_min").fetchall()
    assert shown == [("[20, 23]", 20, 23, 3), ("[40, 43]", 40, 43, 3), (None, None, None, 2)]
    assert release["information_loss"] == pytest.approx(6 * 3 / 23)
    assert any("incognito has checked 3 of 6 nodes" in told for told in release["warnings"])
    release = one(connection, "CALL kanon.rebuild('m', k => 3)")  # now the NULLs are too few
    assert connection.execute("SELECT DISTINCT * FROM m").fetchall() == [("*", None, None)]
    assert release["information_loss"] == 8


@pytest.mark.parametrize(
    ("quasi_identifier", "k", "shown"),
    [
        ("'place': 'place'", 8, ["a", "b1", "b2", "c1", "c2"]),  # level 1 of 3
        ("'weight': {'type': 'numeric', 'step': 0.5}", 10, ["[0.0, 0.5]", "[0.5, 1.0]", "[1.0, 1.5]"]),
        ("'weight': {'type': 'numeric', 'step': 0.5}", 12, ["[0.0, 1.0]", "[1.0, 1.5]"]),
        ("'day': 'numeric'", 10, ["2021-01-01", "2021-01-02", "2021-01-03", "2021-01-04"]),
        ("'day': 'numeric'", 12, ["[2021-01-01, 2021-01-02]", "[2021-01-03, 2021-01-04]"]),
    ],
)
def test_trees_are_cut_from_the_root_and_numbers_keep_their_type(
    connection: duckdb.DuckDBPyConnection, quasi_identifier: str, k: int, shown: list[str]
) -> None:
    connection.execute("""
        CREATE TABLE edges (child VARCHAR, parent VARCHAR);
        INSERT INTO edges VALUES ('a', 'all'), ('b', 'all'), ('b1', 'b'), ('b2', 'b'), ('b21', 'b2'), ('b22', 'b2'),
            ('c', 'all'), ('c1', 'c'), ('c2', 'c');
        CALL kanon.create_hierarchy('place', edges => 'edges');
        CREATE TABLE t AS
        SELECT i AS id, ['a', 'a', 'b1', 'b1', 'b21', 'b22', 'c1', 'c1', 'c2', 'c2'][i % 10 + 1] AS place,
               CAST(i % 4 AS DOUBLE) / 2 AS weight, DATE '2021-01-01' + CAST(i % 4 AS INTEGER) AS day
        FROM range(40) AS r(i)
    """)
    options = f"{OPTIONS}, k => {k}, quasi_identifiers => {{{quasi_identifier}}}"
    connection.execute(f"CALL kanon.create_masked_view('m', {options})")
    column = quasi_identifier.split("'")[1]
    found = connection.execute(f"SELECT DISTINCT {column} FROM m ORDER BY {column}").fetchall()
    assert [label for (label,) in found] == shown
    assert connection.execute("SELECT passed FROM kanon.check('m')").fetchall() == [(True,)]


def test_a_lattice_too_large_to_search_is_refused_with_its_sizes(connection: duckdb.DuckDBPyConnection) -> None:
    columns = [f"q{place}" for place in range(12)]
    connection.execute(
        f"CREATE TABLE t AS SELECT i AS id, {', '.join(f'i % 8 AS {name}' for name in columns)} FROM range(10) AS r(i)"
    )
    with pytest.raises(
        duckdb.Error, match=r"244,140,624 nodes to search, more than 1,000,000 \(levels: q0 4, q1 4.*fewer"
    ):
        connection.execute(f"CALL kanon.create_masked_view('m', {OPTIONS}, k => 2, quasi_identifiers => {columns})")
    wide = "{'q0': {'type': 'numeric', 'domain': [-9000000000000000000, 9000000000000000000]}}"
    with pytest.raises(duckdb.Error, match=r"q0 has a domain of more than 2\*\*62 steps.*coarser"):
        connection.execute(f"CALL kanon.create_masked_view('m', {OPTIONS}, k => 2, quasi_identifiers => {wide})")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("max_suppression => 0.1", "max_suppression is 0.1, but method incognito leaves nobody out"),
        ("maintenance => 'append'", "maintenance is 'append', but method incognito makes all classes anew"),
        ("effort => 'heavy'", "method incognito has no effort to set"),
    ],
)
def test_options_that_it_cannot_follow_are_refused(
    connection: duckdb.DuckDBPyConnection, option: str, message: str
) -> None:
    connection.execute(PEOPLE.format(30))
    with pytest.raises(duckdb.Error, match=message):
        connection.execute(
            "CALL kanon.create_masked_view('m', source => 'people', key => 'id', k => 5, method => 'incognito', "
            f"quasi_identifiers => ['age'], {option})"
        )


def test_a_refresh_shows_the_levels_of_a_view_made_from_scratch(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(PEOPLE.format(60))
    made = (
        "source => 'people', key => 'id', k => 4, l => 2, method => 'incognito', secure => false, independent => true, "
        "sensitive => ['disease'], quasi_identifiers => {'age': {'type': 'numeric', 'domain': [0, 80]}, "
        "'income': {'type': 'numeric', 'domain': [0, 600]}, 'city': 'flat'}"
    )
    connection.execute(f"CALL kanon.create_masked_view('masked', {made})")
    assert connection.execute("SELECT maintenance FROM kanon.masked_views").fetchall() == [("static",)]
    shown = set()
    arriving = "INSERT INTO people SELECT 900 + i, 90, 5, 'here', 'flu' FROM range(9) AS r(i)"
    for number, statements in enumerate([CHANGE, [arriving], ["DELETE FROM people WHERE id % 3 > 0"]]):
        connection.execute("; ".join(statements).format(number + 3))
        before = connection.execute("FROM masked").fetchall()
        release = one(connection, "CALL kanon.refresh('masked')")
        assert any("incognito has checked" in told for told in release["warnings"])
        last = connection.execute(f"FROM kanon.as_of('masked', {number + 1})").fetchall()
        assert sorted(last, key=str) == sorted(before, key=str)
        anew = one(connection, f"CALL kanon.create_masked_view('anew_{number}', {made})")
        for one_way in (f"FROM masked EXCEPT ALL FROM anew_{number}", f"FROM anew_{number} EXCEPT ALL FROM masked"):
            assert connection.execute(one_way).fetchall() == []
        assert release["information_loss"] == pytest.approx(anew["information_loss"])
        assert all(passed for (passed,) in connection.execute("SELECT passed FROM kanon.check('masked')").fetchall())
        shown.add(
            connection.execute("SELECT max(age_max - age_min), max(income_max - income_min) FROM masked").fetchone()
        )
    assert len(shown) > 1, "levels have changed on the way"
    with pytest.raises(duckdb.Error, match="method incognito shows one level of each"):
        connection.execute("CALL kanon.optimize('masked')")


def test_adult(shared_data: Path) -> None:
    with kanon_duck.connect(":memory:") as connection:
        load_adult(connection, shared_data / "adult")
        release = mask(
            connection,
            "m",
            "source => 'adult', key => 'id', k => 5, l => 3, method => 'incognito', secure => false, sensitive => ['occupation'], "
            "quasi_identifiers => ['age', 'workclass', 'education_num', 'marital_status', 'race', 'sex']",
        )
        assert release["k_achieved"] >= 5
        assert release["l_achieved"] >= 3
        assert release["classes"] == 37
        losses = connection.execute("SELECT sum(information_loss_per_row) FROM kanon.quality('m')").fetchall()
        assert losses == [(pytest.approx(release["information_loss_per_row"]),)]

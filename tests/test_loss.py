"""Information loss, discernibility and average class size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.encoding.loss import (
    average_class_size,
    class_boxes,
    discernibility,
    information_loss,
)
from tests import oracle
from tests.encodings import (
    TABLE_1,
    TABLE_1_QUASI_IDENTIFIERS,
    Numeric,
    Tree,
    categorical_shares,
    encode,
    prefix_tree,
    shares,
    tables,
)

FLAT_GENDER = Tree({"Male": "*", "Female": "*"})


def measured_loss(rows, labels, quasi_identifiers):
    encoding = encode(rows, quasi_identifiers)
    low, high, sizes = class_boxes(encoding.codes, np.array(labels))
    return information_loss(sizes, shares(low, high, encoding))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 0, 1, 1, 2, 2, 2], Fraction(397, 30)),
        ([0, 0, 1, 1, 0, 1, 0], Fraction(134, 10)),
        ([0, 0, 1, 1, 0, 1, 1], Fraction(389, 30)),
    ],
    ids=["S", "S1", "S2"],
)
def test_table_1_of_truta_and_campan(labels, expected):
    assert oracle.information_loss(TABLE_1, labels, TABLE_1_QUASI_IDENTIFIERS) == expected
    per_attribute, total = measured_loss(TABLE_1, labels, TABLE_1_QUASI_IDENTIFIERS)
    assert total == pytest.approx(float(expected), rel=1e-12)
    assert per_attribute.sum() == pytest.approx(total, rel=1e-12)


def test_hospital_table_of_lin_and_wei():
    rows = [
        ("75275", "Male", 22),
        ("75277", "Male", 23),
        ("75278", "Male", 24),
        ("75275", "Male", 33),
        ("75275", "Female", 38),
        ("75275", "Female", 36),
    ]
    quasi_identifiers = [prefix_tree([row[0] for row in rows]), FLAT_GENDER, Numeric(22, 38)]
    _, total = measured_loss(rows, [0, 0, 0, 1, 1, 1], quasi_identifiers)
    assert total == pytest.approx(4.9125, rel=1e-12)


@settings(deadline=None)  # the first example waits for the compiler
@given(tables(), st.data())
def test_information_loss_is_that_of_the_raw_values(table, data):
    rows, quasi_identifiers = table
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
    used = sorted(set(drawn))
    labels = [used.index(label) for label in drawn]
    unweighted = [
        Tree(item.parents) if isinstance(item, Tree) else Numeric(item.low, item.high) for item in quasi_identifiers
    ]
    per_attribute, total = measured_loss(rows, labels, quasi_identifiers)
    expected = oracle.information_loss(rows, labels, unweighted)
    assert total == pytest.approx(float(expected), rel=1e-12)
    assert np.all((per_attribute >= 0) & (per_attribute <= len(rows)))


@settings(deadline=None)  # the first example waits for the compiler
@given(tables())
def test_boxes_leave_out_rows_in_no_class(table):
    rows, quasi_identifiers = table
    encoding = encode(rows, quasi_identifiers, np.uint32)
    labels = np.full(encoding.rows, -1)
    labels[0] = 0
    low, high, sizes = class_boxes(encoding.codes, labels)
    assert low.tolist() == high.tolist() == [encoding.codes[0].tolist()]
    assert sizes.tolist() == [1]


def test_no_rows_make_no_classes():
    encoding = encode([], [FLAT_GENDER])
    low, high, sizes = class_boxes(encoding.codes, np.array([], np.int64))
    per_attribute, total = information_loss(sizes, categorical_shares(low, high, encoding))
    assert (sizes.size, per_attribute.tolist(), total, discernibility(sizes)) == (0, [0.0], 0.0, 0)


def test_discernibility_and_average_class_size():
    assert discernibility(np.array([2, 3, 3])) == 4 + 9 + 9
    assert average_class_size(rows=8, classes=3, k=2) == pytest.approx(4 / 3)

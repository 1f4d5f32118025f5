"""The encoded rows: their order, and that neither stretches of rows nor ranges of classes show."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.encoding import microdata
from kanon_duck.encoding.microdata import Attribute, CategoricalAttribute, Microdata, NumericAttribute, encoding_of
from kanon_duck.encoding.numeric import Step
from kanon_duck.hierarchy import BoundHierarchy
from kanon_duck.release.generalization import generalize
from kanon_duck.runtime.arrow import texts
from kanon_duck.runtime.sorting import sort_rows

WORDS = st.one_of(
    st.builds(lambda high, low: high << 62 | low, st.integers(0, 3), st.integers(0, 40)), st.integers(0, 2**64 - 1)
)
"""Words of which many agree in their highest bits, and some are equal."""


@settings(deadline=None)
@given(st.integers(1, 3).flatmap(lambda words: st.lists(st.tuples(*[WORDS] * words), max_size=60)), st.integers(0, 60))
def test_rows_are_sorted_by_their_keys(keys: list[tuple[int, ...]], narrower: int) -> None:
    keys = [tuple(word >> narrower for word in key) for key in keys]
    words = [np.array(column, np.uint64) for column in zip(*keys, strict=True)] or [np.empty(0, np.uint64)]
    order, repeated = sort_rows(words)
    assert order.tolist() == sorted(range(len(keys)), key=lambda row: keys[row])
    ordered = sorted(keys)
    assert repeated.tolist() == [place > 0 and ordered[place] == ordered[place - 1] for place in range(len(keys))]


def attributes_of(rows: int, seed: int) -> list[Attribute]:
    """Three quasi-identifiers with NULLs: numbers, numbers between steps, and a tree of height 2."""
    generator = np.random.default_rng(seed)
    low = generator.integers(-3, 13, rows)
    leaf = generator.integers(-2, 6, rows).astype(np.int32)
    parents = np.array([0, 0, 1, 1, 1, 2])
    labels = [texts(list("abcdef")), texts(["x", "y", "z"])]
    tree = BoundHierarchy(2, "*", texts(list("abcdef")), np.column_stack([np.arange(6), parents]), labels, [])
    step, missing = Step("BIGINT", Fraction(2)), generator.random(rows) < 0.2
    return [
        NumericAttribute("whole", step, low, low, missing, (0, 10), (0, 10), 0),
        NumericAttribute("between", step, low, low + generator.integers(0, 2, rows), missing, (0, 10), (0, 10), 0),
        CategoricalAttribute("tree", tree, leaf),
    ]


def test_stretches_of_rows_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = attributes_of(50, 1)
    whole = encoding_of(attributes, [1.0, 2.0, 1.0], 50)
    monkeypatch.setattr(microdata, "STRETCH", 7)
    again = encoding_of(attributes, [1.0, 2.0, 1.0], 50)
    assert again.codes.tolist() == whole.codes.tolist()
    for row in range(50):
        alone = [attribute.take(np.array([row])) for attribute in attributes]
        assert encoding_of(alone, [1.0, 2.0, 1.0], 1).codes.tolist() == [whole.codes[row].tolist()]


@settings(deadline=None, max_examples=20)  # the first example waits for the compiler
@given(st.integers(0, 1000), st.integers(1, 12))
def test_a_class_looks_the_same_whatever_classes_stand_beside_it(seed: int, classes: int) -> None:
    rows = 40
    attributes = attributes_of(rows, seed)
    table = Microdata(attributes, encoding_of(attributes, [1.0] * 3, rows))
    labels = np.concatenate([np.arange(classes), np.random.default_rng(seed).integers(-1, classes, rows - classes)])
    cells = generalize(table, labels).cells
    for label in range(classes):
        members = np.flatnonzero(labels == label)
        alone = generalize(table.take(members), np.zeros(len(members), np.int64)).cells
        same = [name for name in cells.column_names if name not in ("class", "reader_class")]
        assert cells.select(same).slice(label, 1).to_pylist() == alone.select(same).to_pylist()

"""Mondrian against a literal, recursive version of it on raw values."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.clustering.mondrian import mondrian
from kanon_duck.encoding.microdata import Microdata, Sensitive
from kanon_duck.errors import KanonError
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.call import no_checkpoint
from tests import oracle
from tests.encodings import Numeric, ancestors, encode, tables


def sensitive_values(values):
    """One sensitive attribute whose models are about its values alone."""
    codes = np.array([values], np.int64)
    return Sensitive(np.empty(0, np.int64), codes, codes, codes, (0,), (False,))


def children(tree, values):
    """Each row's child of the common ancestor of the values; None for NULL."""
    paths = [None if value is None else ancestors(tree, value)[::-1] for value in values]
    known = [path for path in paths if path is not None]
    depth = 1
    if None not in paths:
        while len({path[depth] for path in known}) == 1:
            depth += 1
    return [None if path is None else path[depth] for path in paths]


def literal_parts(members, values, quasi_identifier, relaxed, is_allowed):
    """The parts that a class may be cut in along an attribute, or none."""
    if isinstance(quasi_identifier, Numeric):
        keys = [quasi_identifier.high + 1 if value is None else value for value in values]
        median = sorted(keys)[(len(keys) - 1) // 2]
        if relaxed:
            in_order = [member for _, member in sorted(zip(keys, members, strict=True))]
            half = (len(members) + 1) // 2
            tries = [[sorted(in_order[:half]), sorted(in_order[half:])]]
        else:
            tries = [
                [
                    [m for m, key in zip(members, keys, strict=True) if (key <= border) == below]
                    for below in (True, False)
                ]
                for border in (median, median - 1)
            ]
    else:
        labels = children(quasi_identifier, values)
        together = [[m for m, each in zip(members, labels, strict=True) if each == label] for label in set(labels)]
        rest = sorted(member for part in together if not is_allowed(part) for member in part)
        tries = [together]
        if relaxed and rest:
            tries.append([part for part in together if is_allowed(part)] + [rest])
    for parts in tries:
        if len(parts) > 1 and all(is_allowed(part) for part in parts):
            return parts
    return []


def literal_mondrian(rows, quasi_identifiers, relaxed, is_allowed):
    """The classes, as a set of sets of rows."""

    def cut(members):
        values = [[rows[member][attribute] for member in members] for attribute in range(len(quasi_identifiers))]
        widths = [
            oracle.loss_per_row([(value,) for value in column], [quasi_identifier])
            for column, quasi_identifier in zip(values, quasi_identifiers, strict=True)
        ]
        for attribute in sorted(range(len(widths)), key=lambda attribute: -widths[attribute]):
            if widths[attribute] > 0:
                found = literal_parts(members, values[attribute], quasi_identifiers[attribute], relaxed, is_allowed)
                if found:
                    return set().union(*(cut(part) for part in found))
        return {frozenset(members)}

    return cut(list(range(len(rows))))


@settings(deadline=None, max_examples=40)  # the first example waits for the compiler
@given(tables(min_rows=2, max_rows=40, exact=True), st.integers(2, 5), st.booleans(), st.data())
def test_mondrian_is_the_literal_one(table, k, relaxed, data):
    rows, quasi_identifiers = table
    k = min(k, len(rows))
    values = data.draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=len(rows), max_size=len(rows)))
    l = data.draw(st.integers(1, len(set(values))))  # noqa: E741 - the field's name for it

    def is_allowed(members):
        return len(members) >= k and len({values[member] for member in members}) >= l

    expected = literal_mondrian(rows, quasi_identifiers, relaxed, is_allowed)
    model, sensitive = (PrivacyModel(k), None) if l == 1 else (PrivacyModel(k, l), sensitive_values(values))
    microdata = Microdata([], encode(rows, quasi_identifiers), sensitive)
    labels = mondrian(microdata, model, np.random.default_rng(0), no_checkpoint, relaxed=relaxed)
    pairs = sorted(zip(labels.tolist(), range(len(rows)), strict=True))
    assert {frozenset(row for _, row in group) for _, group in groupby(pairs, lambda pair: pair[0])} == expected
    assert set(labels.tolist()) == set(range(len(expected)))


def test_relaxed_is_true_or_false():
    microdata = Microdata([], encode([(1,), (2,)], [Numeric(1, 2)]))
    with pytest.raises(KanonError, match="method_options.relaxed is 'yes': it must be true or false"):
        mondrian(microdata, PrivacyModel(2), np.random.default_rng(0), no_checkpoint, relaxed="yes")

"""The static methods, against literal versions of them and against what every partition must satisfy."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.clustering import METHODS
from kanon_duck.clustering.k_member import k_member
from kanon_duck.clustering.oka import oka
from kanon_duck.encoding.loss import class_boxes, information_loss
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.errors import KanonError
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.call import no_checkpoint
from tests import oracle
from tests.encodings import Numeric, Tree, adult, encode, shares, tables

seeds = st.integers(0, 1000)
dtypes = st.sampled_from([np.uint16, np.uint32])
next_seeds = st.sampled_from(["last_added", "lin_wei"])
workclass = Tree(
    {
        "Private": "*",
        "gov": "*",
        "Federal": "gov",
        "State": "gov",
        "none": "*",
        "unpaid": "none",
        "never": "none",
    }
)

PUBLISHED = ("k_member", "oka")
"""The papers' methods; ``auto`` has tests of its own."""


def random_table(rows, seed):
    """A larger table than hypothesis likes to draw, with NULLs."""
    generator = np.random.default_rng(seed)
    ages = [int(age) if age < 60 else None for age in generator.integers(0, 64, rows)]
    works = [str(work) for work in generator.choice(["Private", "Federal", "State", "unpaid", "never"], rows)]
    zips = [int(code) for code in generator.integers(0, 1000, rows)]
    return list(zip(ages, works, zips, strict=True)), [Numeric(0, 60), workclass, Numeric(0, 1000)]


def single_precision_increase(encoding):
    """What a row adds to the cost of a class, column by column in single precision."""

    def increase(members, row):
        total = np.float32(0)
        for j in range(encoding.columns):
            codes = [int(encoding.codes[member, j]) for member in members]
            code, cap = int(encoding.codes[row, j]), int(encoding.caps[j])
            before = min(max(codes) - min(codes), cap)
            after = min(max([*codes, code]) - min([*codes, code]), cap)
            total = np.float32(total + encoding.weights[j] * np.float32(after - before))
        return total

    return increase


def double_precision_loss(encoding):
    """Total loss of a class, column by column in double precision."""

    def loss(members):
        total = 0.0
        for j in range(encoding.columns):
            codes = [int(encoding.codes[member, j]) for member in members]
            total += float(encoding.weights[j]) * min(max(codes) - min(codes), int(encoding.caps[j]))
        return len(members) * total

    return loss


@pytest.mark.parametrize("method", PUBLISHED)
@settings(deadline=None)  # the first example waits for the compiler
@given(table=tables(min_rows=2, max_rows=40), k=st.integers(2, 7), seed=seeds, dtype=dtypes)
def test_classes_partition_the_rows_and_have_at_least_k(method, table, k, seed, dtype):
    rows, quasi_identifiers = table
    k = min(k, len(rows))
    encoding = encode(rows, quasi_identifiers, dtype)
    labels = METHODS[method](Microdata([], encoding), PrivacyModel(k), np.random.default_rng(seed), no_checkpoint)
    assert labels.shape == (len(rows),)
    assert labels.dtype == np.int64
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    assert sizes.size == len(rows) // k


@settings(deadline=None)  # the first example waits for the compiler
@given(tables(min_rows=2, exact=True), st.integers(2, 6), seeds, next_seeds)
def test_k_member_is_the_literal_one_on_raw_values(table, k, seed, next_seed):
    rows, quasi_identifiers = table
    k = min(k, len(rows))

    def cost(members):
        return oracle.loss_per_row([rows[member] for member in members], quasi_identifiers)

    expected = oracle.k_member(
        len(rows),
        k,
        np.random.default_rng(seed),
        next_seed,
        increase=lambda members, row: cost([*members, row]) - cost(members),
        loss=lambda members: len(members) * cost(members),
    )
    encoding = encode(rows, quasi_identifiers)
    generator = np.random.default_rng(seed)
    labels = k_member(Microdata([], encoding), PrivacyModel(k), generator, no_checkpoint, next_seed=next_seed)
    assert labels.tolist() == expected


@settings(deadline=None)  # the first example waits for the compiler
@given(tables(min_rows=2, max_rows=40), st.integers(2, 6), seeds, next_seeds, dtypes)
def test_k_member_is_the_literal_one_to_the_last_bit(table, k, seed, next_seed, dtype):
    rows, quasi_identifiers = table
    compare_with_literal_k_member(encode(rows, quasi_identifiers, dtype), min(k, len(rows)), seed, next_seed)


@pytest.mark.parametrize("next_seed", ["last_added", "lin_wei"])
@pytest.mark.parametrize(("rows", "k"), [(150, 4), (301, 7)])
def test_k_member_is_the_literal_one_on_hundreds_of_rows(rows, k, next_seed):
    encoding = encode(*random_table(rows, seed=rows))
    compare_with_literal_k_member(encoding, k, seed=1, next_seed=next_seed)


def compare_with_literal_k_member(encoding, k, seed, next_seed):
    expected = oracle.k_member(
        encoding.rows,
        k,
        np.random.default_rng(seed),
        next_seed,
        single_precision_increase(encoding),
        double_precision_loss(encoding),
    )
    generator = np.random.default_rng(seed)
    labels = k_member(Microdata([], encoding), PrivacyModel(k), generator, no_checkpoint, next_seed=next_seed)
    assert labels.tolist() == expected


@settings(deadline=None)  # the first example waits for the compiler
@given(tables(min_rows=2, max_rows=40), st.integers(2, 6), seeds, dtypes)
def test_oka_is_the_literal_one(table, k, seed, dtype):
    rows, quasi_identifiers = table
    k = min(k, len(rows))
    expected = oracle.oka(rows, quasi_identifiers, k, np.random.default_rng(seed))
    encoding = encode(rows, quasi_identifiers, dtype)
    assert (
        oka(Microdata([], encoding), PrivacyModel(k), np.random.default_rng(seed), no_checkpoint).tolist() == expected
    )


@pytest.mark.parametrize(("rows", "k"), [(120, 4), (203, 9)])
def test_oka_is_the_literal_one_on_hundreds_of_rows(rows, k):
    table = random_table(rows, seed=rows)
    expected = oracle.oka(*table, k, np.random.default_rng(3))
    assert (
        oka(Microdata([], encode(*table)), PrivacyModel(k), np.random.default_rng(3), no_checkpoint).tolist()
        == expected
    )


@pytest.mark.parametrize("method", PUBLISHED)
def test_slices_do_not_change_the_result(method, monkeypatch):
    encoding = encode(*random_table(1500, seed=0))
    whole = METHODS[method](Microdata([], encoding), PrivacyModel(5), np.random.default_rng(0), no_checkpoint)
    monkeypatch.setattr(sys.modules[METHODS[method].__module__], "SLICE", 1)
    shares_done = []
    sliced = METHODS[method](Microdata([], encoding), PrivacyModel(5), np.random.default_rng(0), shares_done.append)
    assert sliced.tolist() == whole.tolist()
    assert len(shares_done) >= 1000
    known = [done for done in shares_done if done is not None]
    assert known == sorted(known)
    assert all(0 <= done <= 1 for done in known)


@pytest.mark.parametrize("method", PUBLISHED)
def test_a_checkpoint_stops_the_work(method):
    def stop(share):
        raise InterruptedError

    encoding = encode(*random_table(20, seed=0))
    with pytest.raises(InterruptedError):
        METHODS[method](Microdata([], encoding), PrivacyModel(5), np.random.default_rng(0), stop)


@pytest.mark.parametrize("method", METHODS)
def test_fewer_rows_than_k_are_refused(method):
    encoding = encode(*random_table(4, seed=0))
    with pytest.raises(KanonError, match="k is 5, but there are only 4 rows"):
        METHODS[method](Microdata([], encoding), PrivacyModel(5), np.random.default_rng(0), no_checkpoint)


def test_an_unknown_next_seed_is_refused():
    encoding = encode(*random_table(9, seed=0))
    with pytest.raises(KanonError, match=r"method_options.next_seed is 'last': .*'last_added'.*'lin_wei'"):
        k_member(Microdata([], encoding), PrivacyModel(3), np.random.default_rng(0), no_checkpoint, next_seed="last")


PROGRAM = """
import numpy as np
from kanon_duck.runtime.call import no_checkpoint
from kanon_duck.clustering import METHODS
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.privacy.models import PrivacyModel
from tests.encodings import encode
from tests.test_clustering import PUBLISHED, random_table
encoding = encode(*random_table(200, seed=0))
for method in PUBLISHED:
    print(METHODS[method](Microdata([], encoding), PrivacyModel(3), np.random.default_rng(5), no_checkpoint).tolist())
"""


def test_a_seed_gives_the_same_classes_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("]") == len(PUBLISHED)


@pytest.fixture(scope="module")
def adult_encoding(shared_data):
    return adult(shared_data)


@pytest.mark.parametrize(("method", "most"), [("k_member", 0.51), ("oka", 0.90)])
def test_loss_on_adult(adult_encoding, method, most):
    assert adult_encoding.rows == 30162
    labels = METHODS[method](Microdata([], adult_encoding), PrivacyModel(5), np.random.default_rng(0), no_checkpoint)
    low, high, sizes = class_boxes(adult_encoding.codes, labels)
    _, loss = information_loss(sizes, shares(low, high, adult_encoding))
    assert sizes.min() >= 5
    assert loss / adult_encoding.rows <= most

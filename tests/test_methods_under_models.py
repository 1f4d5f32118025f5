"""The methods that look at the whole privacy model themselves: what they give, whatever the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.clustering import METHODS
from kanon_duck.clustering.repair import unsatisfied_classes
from kanon_duck.clustering.threshold import threshold
from kanon_duck.clustering.weighted_c_means import weighted_c_means
from kanon_duck.encoding.loss import class_boxes
from kanon_duck.encoding.microdata import Microdata, Sensitive
from kanon_duck.errors import KanonError
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import demand
from kanon_duck.runtime.call import no_checkpoint
from tests.encodings import Numeric, encode, tables
from tests.test_clustering import random_table

LOOK_AT_MODEL = ("mondrian", "threshold", "top_down", "weighted_c_means")


def sensitive(values, persons=()):
    """One sensitive attribute without an order or a hierarchy."""
    codes = np.array([values], np.int64)
    return Sensitive(np.array(persons, np.int64), codes, codes, codes, (0,), (False,))


@st.composite
def hostile(draw):
    """Rows (duplicates and NULLs among them), a model that they just satisfy together, and what it speaks of."""
    rows, quasi_identifiers = draw(tables(min_rows=2, max_rows=30))
    if draw(st.booleans()):
        rows = [draw(st.sampled_from(rows))] * len(rows)
    n = len(rows)
    values = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2, 3]), min_size=n, max_size=n))
    frequencies = np.unique(values, return_counts=True)[1]
    most, different = int(frequencies.max()), len(frequencies)
    k = draw(st.integers(2, min(n, 6)) | st.just(n))
    persons = draw(st.just(()) | st.lists(st.integers(0, 8), min_size=n, max_size=n))
    if persons:
        k = min(k, len(set(persons)))
        return rows, quasi_identifiers, PrivacyModel(max(k, 1), unit="person"), sensitive(values, persons)
    model = draw(
        st.sampled_from(
            [
                {"l": different},
                {"p": different},
                {"alpha": most / n},
                {"entropy_l": float(np.exp(-np.sum(frequencies / n * np.log(frequencies / n))))},
                {"recursive_cl": (most + 1.0, different)},
                {"t": draw(st.sampled_from([0.0, 0.1, 0.5]))},
            ]
        )
    )
    return rows, quasi_identifiers, PrivacyModel(k, **model), sensitive(values)


@pytest.mark.parametrize("method", LOOK_AT_MODEL)
@settings(deadline=None, max_examples=40)  # the first example waits for the compiler
@given(case=hostile(), seed=st.integers(0, 100))
def test_classes_partition_the_rows_and_satisfy_the_model(method, case, seed):
    rows, quasi_identifiers, model, spoken_of = case
    microdata = Microdata([], encode(rows, quasi_identifiers), spoken_of)
    labels = METHODS[method](microdata, model, np.random.default_rng(seed), no_checkpoint)
    assert labels.dtype == np.int64
    assert set(labels.tolist()) == set(range(labels.max() + 1))
    assert len(labels) == len(rows)
    assert not unsatisfied_classes(labels, demand(model, spoken_of)).size


@pytest.mark.parametrize("method", LOOK_AT_MODEL)
def test_a_checkpoint_stops_the_work(method):
    def stop(share):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        METHODS[method](
            Microdata([], encode(*random_table(20, seed=0))), PrivacyModel(5), np.random.default_rng(0), stop
        )


@pytest.mark.parametrize("delta", ["0.1", 1.5, -0.1, True])
def test_delta_is_a_share(delta):
    microdata = Microdata([], encode(*random_table(20, seed=0)))
    with pytest.raises(KanonError, match="method_options.delta is .*: it must be a number from 0 to 1"):
        threshold(microdata, PrivacyModel(5), np.random.default_rng(0), no_checkpoint, delta=delta)


def test_no_class_of_threshold_grows_beyond_delta_but_by_rows_of_deleted_ones():
    encoding = encode(*random_table(300, seed=0))
    total = float((encoding.caps * encoding.weights).sum())
    single = threshold(Microdata([], encoding), PrivacyModel(2), np.random.default_rng(0), no_checkpoint, delta=1)
    assert set(single.tolist()) == {0}
    labels = threshold(Microdata([], encoding), PrivacyModel(2), np.random.default_rng(0), no_checkpoint, delta=0.1)
    low, high, sizes = class_boxes(encoding.codes, labels)
    diversities = (encoding.weights * np.minimum(high - low, encoding.caps)).sum(axis=1) / total
    assert len(sizes) > 50
    assert np.mean(diversities <= 0.1 + 1e-6) > 0.5


def test_weighted_c_means_finds_clusters_that_stand_apart():
    generator = np.random.default_rng(0)
    rows = [(int(10 * group + wiggle), None) for group in range(5) for wiggle in generator.integers(0, 3, 20)]
    encoding = encode(rows, [Numeric(0, 100), Numeric(0, 1)])
    labels = weighted_c_means(Microdata([], encoding), PrivacyModel(4), generator, no_checkpoint)
    low, high, sizes = class_boxes(encoding.codes, labels)
    assert (high - low)[:, 0].max() <= 2
    assert sizes.min() >= 4

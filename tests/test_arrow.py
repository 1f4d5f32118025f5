"""Arrow arrays are those that pyarrow itself would make."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_duck.arrow import numbers, texts


@settings(deadline=None)  # the first array of pyarrow loads pandas
@given(st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))), st.sampled_from(["int32", "int64", "float64"]))
def test_numbers_are_those_of_pyarrow(values: list[int | None], dtype: str) -> None:
    filled = np.array([0 if value is None else value for value in values], dtype)
    missing = np.array([value is None for value in values], bool)
    array = numbers(filled, missing)
    array.validate(full=True)
    assert array.equals(pa.array(filled, mask=missing))
    assert numbers(filled).equals(pa.array(filled))


def test_numbers_need_not_stand_side_by_side() -> None:
    assert numbers(np.arange(10)[::3]).to_pylist() == [0, 3, 6, 9]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_texts_are_those_of_pyarrow(values: list[str]) -> None:
    array = texts(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.large_string()))


MASK = """
import sys
import kanon_duck
connection = kanon_duck.connect()
connection.execute("CREATE TABLE people AS SELECT i AS id, i % 7 AS age, 'x' || i % 3 AS place FROM range(50) AS t(i)")
connection.execute("CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, "
                   "quasi_identifiers => ['age', 'place'])")
assert len(connection.execute("FROM masked").fetchall()) == 50
assert "pandas" not in sys.modules
"""


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1.5 loads pandas itself to register a table")
def test_pandas_is_not_loaded() -> None:
    subprocess.run([sys.executable, "-c", MASK], check=True)

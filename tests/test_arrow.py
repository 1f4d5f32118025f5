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

from kanon_duck.runtime.arrow import array, numbers, texts


@settings(deadline=None)  # the first array of pyarrow loads pandas
@given(st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))), st.sampled_from(["int32", "int64", "float64"]))
def test_numbers_are_those_of_pyarrow(values: list[int | None], dtype: str) -> None:
    filled = np.array([0 if value is None else value for value in values], dtype)
    missing = np.array([value is None for value in values], bool)
    made = numbers(filled, missing)
    made.validate(full=True)
    assert made.equals(pa.array(filled, mask=missing))
    assert numbers(filled).equals(pa.array(filled))


def test_numbers_need_not_stand_side_by_side() -> None:
    assert numbers(np.arange(10)[::3]).to_pylist() == [0, 3, 6, 9]


def test_no_chunks_are_an_empty_array() -> None:
    for dtype, expected in ((pa.int64(), np.int64), (pa.bool_(), np.bool_)):
        found = array(pa.chunked_array([], dtype))
        assert (found.dtype, found.shape) == (expected, (0,))


@pytest.mark.surface
def test_owners_may_have_their_booleans_as_they_like(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET arrow_lossless_conversion = true")
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, nullif(i % 50, 7) AS age, i % 2 = 0 AS flag FROM range(300) AS r(i)"
    )
    connection.execute(
        "CALL kanon.create_masked_view('v', source => 't', key => 'id', k => 5, secure => false, sensitive => ['flag'], "
        "quasi_identifiers => {'age': 'numeric'})"
    )
    connection.execute("UPDATE t SET age = age + 1, flag = NOT flag WHERE id < 20")
    assert connection.execute("SELECT updated FROM kanon.refresh('v')").fetchall() == [(20,)]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_texts_are_those_of_pyarrow(values: list[str]) -> None:
    made = texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.large_string()))


MASK = """
import sys
import kanon_duck
connection = kanon_duck.connect()
connection.execute("CREATE TABLE people AS SELECT i AS id, i % 7 AS age, 'x' || i % 3 AS place FROM range(50) AS t(i)")
connection.execute("CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 5, "
                   "quasi_identifiers => ['age', 'place'], secure => false)")
assert len(connection.execute("FROM masked").fetchall()) == 50
connection.execute("DELETE FROM people WHERE id < 3")
connection.execute("CALL kanon.refresh('masked')")
assert len(connection.execute("FROM masked").fetchall()) == 47
assert "pandas" not in sys.modules
"""


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1.5 loads pandas itself to register a table")
def test_pandas_is_not_loaded() -> None:
    subprocess.run([sys.executable, "-c", MASK], check=True)

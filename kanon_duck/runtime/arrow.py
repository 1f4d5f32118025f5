"""Converts NumPy arrays to Arrow and back by their buffers; pyarrow's own conversions load pandas, which is slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """An Arrow array with the numbers of ``values`` and their memory; NULL where they are ``missing``."""
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, data])


def texts(values: Sequence[str]) -> pa.Array:
    """An Arrow array of texts."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def filled(values: pa.Array, number: int) -> pa.Array:
    """32-bit numbers in which ``number`` replaces NULL."""
    return values.fill_null(numbers(np.array([number], np.int32))[0])


def in_one_piece(values: pa.ChunkedArray) -> pa.Array:
    """A chunked array as one array."""
    return values.combine_chunks() if values.num_chunks else pa.nulls(0, values.type)


def array(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Numbers or booleans without NULLs as a NumPy array, which may share their memory."""
    if isinstance(values, pa.ChunkedArray):
        values = in_one_piece(values)
    if isinstance(values, pa.Bool8Array):  # so are booleans where DuckDB has arrow_lossless_conversion
        return np.from_dlpack(values.storage).view(np.bool_)
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)

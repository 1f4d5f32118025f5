"""What the kernels that cut classes along attributes need to know of an encoding."""

from __future__ import annotations

import numpy as np

from kanon_duck.encoding import Encoding
from kanon_duck.kernels.parts import NO_PART, Attributes, Room


def attributes_of(encoding: Encoding) -> Attributes:
    """Where the quasi-identifiers stand."""
    first = np.searchsorted(encoding.attributes, np.arange(len(encoding.numeric) + 1))
    return Attributes(first, encoding.numeric, encoding.caps, encoding.weights)


def room_for(encoding: Encoding) -> Room:
    """Memory for the cut of a class of all rows."""
    n, null = encoding.rows, np.iinfo(encoding.codes.dtype).max
    largest = 0
    for column in np.flatnonzero(~encoding.numeric[encoding.attributes]):
        codes = encoding.codes[:, column]
        largest = max(largest, int(codes.max(where=codes != null, initial=0)))
    return Room(
        part=np.empty(n, np.int64),
        keys=np.empty(n, np.int64),
        numbers=np.full(largest + 2, NO_PART),
        starts=np.empty(n + 1, np.int64),
        order=np.empty((1, n), np.int64),
    )

"""Shared by methods that cut the class of all rows along its attributes, then its parts, and so on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kanon_duck.encoding.codes import Encoding
from kanon_duck.kernels.attribute_cuts import NO_PART, Attributes, Room
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.runtime.parallel import Checkpoint

SLICE = 2**20
"""Rows looked at between two checkpoints."""


def cut_from_root(
    encoding: Encoding, least: int, checkpoint: Checkpoint, cut: Callable[..., tuple[int, int]]
) -> NDArray[np.int64]:
    """Cut the class of all rows, its parts, and so on.

    Parameters
    ----------
    encoding : Encoding
    least : int
        Fewest rows of a class.
    checkpoint : function
        Called between slices of the work with the share done.
    cut : function
        Cuts the classes that wait: (codes, attributes, members, begins, ends, waiting, labels, classes, room, visits)
        -> (waiting, classes), as in `kanon_duck.kernels.mondrian.cut_classes`.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to m - 1.
    """
    n = encoding.rows
    attributes, room = _attributes(encoding), _room(encoding)
    members = np.arange(n)[None, :]
    begins, ends = np.zeros(n // least + 1, np.int64), np.full(n // least + 1, n)
    labels = np.full(n, NO_CLASS)
    waiting, classes = 1, 0
    while waiting:
        waiting, classes = cut(encoding.codes, attributes, members, begins, ends, waiting, labels, classes, room, SLICE)
        checkpoint(1 - ends[waiting - 1] / n if waiting else 1.0)  # the last rows are done first
    return labels


def _attributes(encoding: Encoding) -> Attributes:
    """Where the quasi-identifiers stand."""
    first = np.searchsorted(encoding.attributes, np.arange(len(encoding.numeric) + 1))
    return Attributes(first, encoding.numeric, encoding.caps, encoding.weights)


def _room(encoding: Encoding) -> Room:
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
        satisfied=np.empty(n, bool),
        order=np.empty((1, n), np.int64),
    )

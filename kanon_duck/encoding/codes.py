"""The encoding that clustering searches: one short vector of small unsigned integers per row.

A numeric quasi-identifier is one column: its position in the domain. A categorical one whose
hierarchy has height H is H *level columns*: column h < H holds the highest ancestor of height at
most h. The height of the lowest common ancestor of a set of rows is then the number of its level
columns that are not constant, in unbalanced trees too. So a class is a box, the pair (minimum row,
maximum row); joining and splitting are element-wise minimum and maximum, and

    cost per row of a box = sum over columns of weights[j] * min(high[j] - low[j], caps[j])

is its (weighted) information loss per row, Definition 4 of Truta & Campan 2007 over |cl|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Encoding:
    """Encoded quasi-identifiers of ``n`` rows.

    Attributes
    ----------
    codes : uint16 or uint32, shape (n, width), C-contiguous
        ``width`` is a multiple of ``LANES``; columns from ``columns`` on are padding, all zero.
        Numeric columns hold positions in [0, caps[j]], but for values far outside the rest, which have codes from
        2 * caps[j] and from 4 * caps[j] on; level columns hold codes that follow the depth-first order of the
        hierarchy. NULL is the dtype's largest value, so far from every other code that a mixture costs the whole
        attribute.
    caps : same dtype, shape (width,)
        The most that ``high - low`` may count: the range of its bulk for a numeric column (at most a sixth
        of the dtype's range), 1 for a level column, 0 for padding.
    weights : float32, shape (width,)
        Cost of one unit of each column. Over the columns of one attribute, ``weights * caps`` adds up
        to the attribute's weight (1 unless the user set another). Padding has weight 0.
    columns : int
        Number of columns in use.
    attributes : int64, shape (columns,)
        Which quasi-identifier each column belongs to, rising; an attribute's level columns stand
        together, level 0 (the leaves) first.
    numeric : bool, shape (number of quasi-identifiers,)
        Which quasi-identifiers are numeric.
    """

    codes: NDArray[np.unsignedinteger]
    caps: NDArray[np.unsignedinteger]
    weights: NDArray[np.float32]
    columns: int
    attributes: NDArray[np.int64]
    numeric: NDArray[np.bool_]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

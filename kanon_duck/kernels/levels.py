"""Level columns of the encoded rows, from the leaves of a hierarchy."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def fill_levels(codes, first, levels, leaves):
    """Write the levels of every row's leaf side by side.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
        Written from column ``first`` on.
    levels : dtype of ``codes``, shape (leaves + 1, size)
        Codes of each leaf, level by level; the last stands for NULL.
    leaves : int32, shape (n,)
        Leaf of each row, -1 for NULL.
    """
    for row in range(leaves.size):
        leaf = leaves[row]
        if leaf < 0:
            leaf = levels.shape[0] - 1
        for level in range(levels.shape[1]):
            codes[row, first + level] = levels[leaf, level]

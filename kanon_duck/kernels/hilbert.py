"""Makes sort keys: positions along a Hilbert curve, and components packed into 64-bit words."""

from __future__ import annotations

import numpy as np
from numba import njit

ONE = np.uint64(1)


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def hilbert_keys(codes, columns, scales, bits, point, keys):
    """Position of every row's numeric columns on a Hilbert curve through a cube of side ``2**bits``.

    Skilling's algorithm: undo the rotations of the sub-cubes from the largest to the smallest, turn
    the Gray code into a number, and weave the bits of the coordinates together.
    O(rows * columns * bits).

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    columns : int64, shape (dimensions,)
    scales : float64, shape (dimensions,)
        What a code is multiplied with to become a coordinate. Codes beyond the lower half of the cube are pressed
        into the upper one, an eighth as far apart, and clipped there.
    bits : int
        Bits per coordinate; ``dimensions * bits`` is at most 64.
    point : uint64, shape (dimensions,)
        Scratch.
    keys : uint64, shape (n,)
        Written.

    Source: J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707 (2004).
    """
    dimensions = columns.size
    largest = float((1 << bits) - 1)
    half = float((1 << bits) // 2)
    null = np.iinfo(codes.dtype).max
    for row in range(codes.shape[0]):
        for axis in range(dimensions):
            code = codes[row, columns[axis]]
            coordinate = code * scales[axis]
            coordinate = coordinate if coordinate < half else half + (coordinate - half) / 8
            if code == null:
                coordinate = largest
            point[axis] = np.uint64(coordinate if coordinate < largest else largest)
        first = point[0]
        for level in range(bits - 1, 0, -1):
            shift = np.uint64(level)
            lower = (ONE << shift) - ONE
            # where the bit is set invert the first axis' lower bits, else exchange them: no processor can foretell it
            first ^= lower * ((first >> shift) & ONE)
            for axis in range(1, dimensions):
                inverted = lower * ((point[axis] >> shift) & ONE)
                exchanged = (first ^ point[axis]) & (lower ^ inverted)
                first ^= exchanged ^ inverted
                point[axis] ^= exchanged
        point[0] = first
        for axis in range(1, dimensions):
            point[axis] ^= point[axis - 1]
        flips = np.uint64(0)
        for level in range(bits - 1, 0, -1):
            shift = np.uint64(level)
            flips ^= ((ONE << shift) - ONE) * ((point[dimensions - 1] >> shift) & ONE)
        key = np.uint64(0)
        for level in range(bits - 1, -1, -1):
            shift = np.uint64(level)
            for axis in range(dimensions):
                key = (key << ONE) | (((point[axis] ^ flips) >> shift) & ONE)
        keys[row] = key


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def pack_keys(codes, positions, columns, shifts, limits, bits, words, keys):
    """Write the components of each row's sort key side by side into 64-bit words, first one highest.

    Parameters
    ----------
    codes : uint16 or uint32, shape (n, width)
    positions : uint64, shape (n,)
        On the Hilbert curve; not looked at where no component asks for it.
    columns : int64, shape (components,)
        A column, or -1 for the position on the curve.
    shifts, limits, bits : uint64, shape (components,)
        The component is ``position >> shift & limit``, or the least of ``code >> shift`` and ``limit``;
        either way below ``2**bits``.
    words : int64, shape (components,)
        The word it goes to, rising.
    keys : uint64, shape (number of words, n)
        Zero; written.
    """
    for row in range(codes.shape[0]):
        for component in range(columns.size):
            column = columns[component]
            if column < 0:
                value = (positions[row] >> shifts[component]) & limits[component]
            else:
                value = np.uint64(codes[row, column]) >> shifts[component]
                value = value if value < limits[component] else limits[component]
            word = words[component]
            keys[word, row] = (keys[word, row] << bits[component]) | value

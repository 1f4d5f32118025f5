"""Bounds on how many people of a set can have each value, from the other sets in which they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_duck.errors import KanonError
from kanon_duck.inference.series import Integers, Sets
from kanon_duck.kernels.bounds import common_values, tighten


@dataclass(frozen=True)
class LeastPossible:
    """What every set of people must have that an intruder can tell apart.

    Attributes
    ----------
    attribute : str or None
        The sensitive attribute of which ``least`` values must stay possible; None: as many rows.
    codes : int64, shape (values,), or None
        The value of the attribute in each tuple.
    least : int
    alike : bool
        Whether rows with equal values count as alike: all of them may then be a person's, also where it is known how
        many people of a set have the value. This is how secure releases are proved safe; else only as many rows count
        as people of the set have.
    """

    attribute: str | None
    codes: Integers | None
    least: int
    alike: bool = False


@dataclass(frozen=True)
class Cells:
    """Sets of people that can be told apart, and what each of them may have.

    Attributes
    ----------
    sizes : int64, shape (cells,)
        People of each.
    set_stops, sets : int64
        The sets that each lies in.
    known : Sets
        Values, rows that may be theirs, and bounds.
    alike : int64, or None
        Rows with each value, where those that are known to be others' count too; None: as in ``known``.
    """

    sizes: Integers
    set_stops: Integers
    sets: Integers
    known: Sets
    alike: Integers | None = None

    def __len__(self) -> int:
        """Number of cells."""
        return len(self.sizes)

    def cell(self) -> Integers:
        """The cell of each value."""
        return np.repeat(np.arange(len(self)), np.diff(self.known.stops, prepend=0))

    def settled(self) -> NDArray[np.bool_]:
        """Whether the values of a cell are known, and only whose is which is not."""
        return np.bincount(self.cell(), self.known.low, len(self)) == self.sizes


def lying_in(sizes: Integers, set_stops: Integers, sets: Integers, known: Sets) -> tuple[Cells, Integers]:
    """Cells with the values that all their sets have; these are the sets of Fig. 6 of Byun et al. 2006.

    Returns
    -------
    Cells
    int64
        Links of their values to those of the sets, for `tightened`.
    """
    stops, values, counts, links = common_values(set_stops, sets, known.stops, known.values, known.counts)
    high = np.minimum(counts, np.repeat(sizes, np.diff(stops, prepend=0)))
    return Cells(sizes, set_stops, sets, Sets(stops, values, counts, np.zeros_like(high), high)), links


def tightened(cells: Cells, links: Integers, known: Sets) -> Cells:
    """The same cells with the bounds that follow when all of them are looked at together.

    This holds the complement sets: what the other cells of a set must have is subtracted, and what they cannot take
    must be here. Values that nobody can have any more are gone.

    Guarantee: no assignment of values to people that agrees with the sets is excluded.

    Raises
    ------
    KanonError
        When no assignment agrees.
    """
    low, high = cells.known.low.copy(), cells.known.high.copy()
    if not tighten(cells.sizes, cells.set_stops, cells.known.stops, links, known.low, known.high, low, high):
        raise KanonError(
            "releases contradict each other: no person can have the values that their classes leave; look whether "
            "the people of each release are those that it was made of"
        )
    stays = high > 0
    stops = np.cumsum(stays, dtype=np.int64)[cells.known.stops - 1]
    settled = np.repeat(
        np.bincount(cells.cell(), low, len(cells)) == cells.sizes, np.diff(cells.known.stops, prepend=0)
    )
    counts = np.where(settled, low, cells.known.counts)
    left = Sets(stops, cells.known.values[stays], counts[stays], low[stays], high[stays])
    return Cells(cells.sizes, cells.set_stops, cells.sets, left, cells.known.counts[stays])


def candidates(cells: Cells, requirement: LeastPossible) -> Integers:
    """How many rows, or values of an attribute, may still be those of a person of each cell."""
    cell, codes = cells.cell(), requirement.codes
    if codes is None:
        rows = cells.alike if requirement.alike and cells.alike is not None else cells.known.counts
        return np.bincount(cell, rows, len(cells)).astype(np.int64)
    several = int(codes.max(initial=0)) + 1
    distinct = np.unique(cell * several + codes[cells.known.values])
    return np.bincount(distinct // several, minlength=len(cells))

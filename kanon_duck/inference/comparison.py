"""Two releases compared: who was where in both, and what that leaves possible.

Source: Section 3 and Fig. 6 of Byun et al. 2006, with all compatible classes at once and sums of multisets, the mirror
images of these sets for people who leave, and complement sets. Compatible classes are those that share people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kanon_duck.inference.bounds import Cells, lying_in, tightened
from kanon_duck.inference.series import NOBODY, Integers, Series, Sets, slices
from kanon_duck.kernels.atoms import connect


class Groups(NamedTuple):
    """Group of each person in two releases."""

    before: Integers
    after: Integers


@dataclass(frozen=True)
class Comparison:
    """People who are in the same groups of two releases, as cells.

    Attributes
    ----------
    first, second : int
        The releases.
    before, after : int64, shape (cells,)
        Groups of each cell, ``NOBODY`` where the release does not have these people.
    cell : int64, shape (people,)
        Cell of each person, -1 for one of whom the two releases tell nothing new.
    compared : Cells
        By the sets of Fig. 6 alone.
    concluded : Cells
        By all cells together.
    """

    first: int
    second: int
    before: Integers
    after: Integers
    cell: Integers
    compared: Cells
    concluded: Cells


def compare(series: Series, first: int, second: int, groups: Groups) -> Comparison | None:
    """Compare two releases; None where no other two tell less.

    Only what changes right after the first and right before the second is looked at: other pairs of releases show
    the rest.
    """
    cell, before, after = _cells(series, first, second, groups)
    if not len(before):
        return None
    sizes = np.bincount(cell[cell >= 0], minlength=len(before))
    blocks = series.blocks()
    block_before = np.where(before >= 0, blocks[before], NOBODY)
    block_after = np.where(after >= 0, blocks[after], NOBODY)
    gained, gainers = _beyond(series.sets, block_before, block_after)
    lost, losers = _beyond(series.sets, block_after, block_before)
    known = series.sets.extended(gained).extended(lost)
    numbers = np.arange(len(before))
    pairs = [_sets_of(series, before, numbers), _sets_of(series, after, numbers)]
    for (of_cell, number), offset in ((gainers, len(series.sets)), (losers, len(series.sets) + len(gained))):
        pairs.append((of_cell, number + offset))
    of_cell, sets = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    order = np.argsort(of_cell, kind="stable")
    set_stops = np.cumsum(np.bincount(of_cell, minlength=len(before)))
    compared, links = lying_in(sizes, set_stops, sets[order], known)
    return Comparison(first, second, before, after, cell, compared, tightened(compared, links, known))


def _cells(series: Series, first: int, second: int, groups: Groups) -> tuple[Integers, Integers, Integers]:
    """Number the pairs of groups that people are in, where these two releases tell something new."""
    before, after = groups
    count = len(series.begins)
    moved = np.flatnonzero(before != after)
    # a group that is in neither release has a node of its own that nothing connects
    roots = np.arange(len(series.sets))
    blocks = series.blocks()
    inner = np.repeat(blocks, np.diff(series.group_stops, prepend=0))
    connect(series.group_sets, inner, roots)
    both = moved[(before[moved] >= 0) & (after[moved] >= 0)]
    connect(blocks[before[both]], blocks[after[both]], roots)
    root_before = np.where(before >= 0, roots[blocks[before]], NOBODY)
    root_after = np.where(after >= 0, roots[blocks[after]], NOBODY)
    ended = np.zeros(len(series.sets) + 1, bool)
    begun = np.zeros(len(series.sets) + 1, bool)
    ended[root_before[(before >= 0) & (series.ends[before] == first + 1)]] = True
    begun[root_after[(after >= 0) & (series.begins[after] == second)]] = True
    root = np.maximum(root_before, root_after)
    told = moved[ended[root[moved]] & begun[root[moved]]]
    pairs, of_person = np.unique((before[told] + 1) * (count + 1) + after[told] + 1, return_inverse=True)
    cell = np.full(series.people, -1)
    cell[told] = of_person
    return cell, pairs // (count + 1) - 1, pairs % (count + 1) - 1


def _sets_of(series: Series, groups: Integers, cells: Integers) -> tuple[Integers, Integers]:
    """Pairs of a cell and a set that its people's group lies in."""
    there = groups >= 0
    places, lengths = slices(series.group_stops, groups[there])
    return np.repeat(cells[there], lengths), series.group_sets[places]


def _beyond(sets: Sets, source: Integers, host: Integers) -> tuple[Sets, tuple[Integers, Integers]]:
    """What the classes that hold a class's people in the other release hold beyond it (Fig. 6, first line).

    Parameters
    ----------
    source, host : int64, shape (cells,)
        Blocks of each cell in the two releases.

    Returns
    -------
    Sets
        For each class of the one release whose people are all in the other: values of its people's hosts there,
        less its own. Bounds from above only: victims are a part of those who are there.
    tuple
        Pairs of a cell of people who are in the other release alone and such a set.
    """
    pairs = np.unique(np.stack([source, host]), axis=1)
    leaves = np.unique(pairs[0][pairs[1] == NOBODY])
    arrives = np.unique(host[source == NOBODY])
    touched = np.unique(pairs[0][np.isin(pairs[1], arrives)])
    whole = np.setdiff1d(touched, np.append(leaves, NOBODY))
    pairs = pairs[:, np.isin(pairs[0], whole)]
    number = np.searchsorted(whole, pairs[0])
    held, lengths = slices(sets.stops, pairs[1])
    own, own_lengths = slices(sets.stops, whole)
    entries = np.concatenate([np.repeat(number, lengths), np.repeat(np.arange(len(whole)), own_lengths)])
    values = np.concatenate([sets.values[held], sets.values[own]])
    counts = np.concatenate([sets.counts[held], -sets.counts[own]])
    order = np.lexsort((values, entries))
    entries, values, counts = entries[order], values[order], counts[order]
    starts = np.flatnonzero(np.diff(entries, prepend=-1) | np.diff(values, prepend=-1))
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    entries, values = entries[starts][sums > 0], values[starts][sums > 0]
    sums = sums[sums > 0]
    beyond = Sets(
        np.searchsorted(entries, np.arange(len(whole)), side="right"), values, sums, np.zeros_like(sums), sums
    )
    absent = np.flatnonzero(source == NOBODY)
    order = np.argsort(pairs[1], kind="stable")
    hosts, sources = pairs[1][order], number[order]
    first, last = np.searchsorted(hosts, host[absent]), np.searchsorted(hosts, host[absent], side="right")
    places, lengths = slices(np.cumsum(last - first), np.arange(len(absent)))
    shift = np.repeat(first - np.cumsum(last - first) + (last - first), last - first)
    return beyond, (np.repeat(absent, lengths), sources[places + shift])

"""Compares two releases: who was where in both, and what stays possible.

Source: Section 3 and Fig. 6 of Byun et al. 2006, with all compatible classes at once and sums of multisets, the mirror
images of these sets for people who leave, and complement sets. Compatible classes are those that share people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kanon_duck.inference.bounds import Cells, lying_in, tightened
from kanon_duck.inference.series import NOBODY, Integers, Series, Sets, joined, slices
from kanon_duck.kernels.atoms import in_lists, spread
from kanon_duck.runtime.call import no_checkpoint
from kanon_duck.runtime.parallel import Checkpoint, in_turn


@dataclass(frozen=True)
class Comparison:
    """People who are in the same groups of two releases, as cells.

    Attributes
    ----------
    first, second : int
        The releases.
    before, after : int64, shape (cells,)
        Groups of each cell, ``NOBODY`` where the release does not have these people.
    people : int64
        The people of all cells, cell by cell.
    compared : Cells
        By the sets of Fig. 6 alone.
    concluded : Cells
        By all cells together.
    """

    first: int
    second: int
    before: Integers
    after: Integers
    people: Integers
    compared: Cells
    concluded: Cells

    def cell_of_people(self) -> Integers:
        """The cell of each of the people."""
        return np.repeat(np.arange(len(self.before)), self.compared.sizes)


class _Index(NamedTuple):
    """Who is where, for `spread`."""

    blocks: Integers
    block_stops: Integers
    block_groups: Integers
    group_stops: Integers
    group_people: Integers
    person_stops: Integers
    person_groups: Integers
    begins: Integers
    ends: Integers
    person_mark: Integers
    block_mark: Integers


def comparisons(
    series: Series, second: Iterable[int] | None = None, checkpoint: Checkpoint = no_checkpoint
) -> Iterator[Comparison]:
    """Compare every pair of releases, as far as it tells something that no pair between them tells.

    What two releases show of a class that is the same in a release between them, that one shows as well: so only
    people are looked at whom classes that end right after the first connect with classes that begin with the second.

    Parameters
    ----------
    second : iterable of int, optional
        The later release of each pair; by default all.
    checkpoint : function
        Called before each pair; what it raises stops the work.
    """
    yield from in_turn(_compare, _connected(series, second, checkpoint))


def _connected(
    series: Series, second: Iterable[int] | None, checkpoint: Checkpoint
) -> Iterator[tuple[Series, int, int, Integers, Integers, Integers, Integers]]:
    """What `_compare` takes, for every pair of releases that is to be compared."""
    blocks = series.blocks()
    numbers = np.arange(len(blocks))
    block_stops, block_groups = in_lists(blocks, numbers, len(series.sets))
    group_stops, group_people = in_lists(series.group, series.person, len(blocks))
    person_stops, person_groups = in_lists(series.person, series.group, series.people)
    index = _Index(
        blocks, block_stops, block_groups, group_stops, group_people, person_stops, person_groups,
        series.begins, series.ends, np.full(series.people, -1), np.full(len(series.sets), -1),
    )  # fmt: skip
    ending_stops, ending = in_lists(series.ends, numbers, series.releases + 1)
    mark = 0
    for later in np.intersect1d(series.begins, np.arange(series.releases) if second is None else list(second)):
        for earlier in reversed(range(int(later))):
            seeds = blocks[ending[ending_stops[earlier] : ending_stops[earlier + 1]]]
            checkpoint(None)
            if len(seeds):
                found = spread(seeds, earlier, later, *index, mark)
                mark += 1
                if len(found[0]):
                    yield (series, earlier, int(later), *found)


def _compare(
    series: Series,
    first: int,
    second: int,
    people: Integers,
    group_before: Integers,
    group_after: Integers,
    component: Integers,
) -> Comparison:
    """Compare two releases by the people whom `spread` has found."""
    count = len(series.begins) + 1
    pairs, some, cell, sizes = np.unique(
        (group_before + 1) * count + group_after + 1, return_index=True, return_inverse=True, return_counts=True
    )
    before, after = pairs // count - 1, pairs % count - 1
    blocks = series.blocks()
    block_before = np.where(before >= 0, blocks[before], NOBODY)
    block_after = np.where(after >= 0, blocks[after], NOBODY)
    own = [_sets_of(series, before), _sets_of(series, after)]
    numbers = np.unique(np.concatenate([sets for _, sets in own]))
    known = [series.sets.take(numbers)]
    pairs_of = [(cells, np.searchsorted(numbers, sets)) for cells, sets in own]
    total = len(numbers)
    for source, host in ((block_before, block_after), (block_after, block_before)):
        for more, (cells, number) in (
            _beyond(series.sets, source, host),
            _balance(series.sets, component[some], sizes, source, host),
        ):
            known.append(more)
            pairs_of.append((cells, number + total))
            total += len(more)
    everything = joined(known)
    of_cell, sets = (np.concatenate(parts) for parts in zip(*pairs_of, strict=True))
    set_stops, cell_sets = in_lists(of_cell, sets, len(pairs))
    compared, links = lying_in(sizes, set_stops, cell_sets, everything)
    members = people[np.argsort(cell, kind="stable")]
    return Comparison(first, second, before, after, members, compared, tightened(compared, links, everything))


def _sets_of(series: Series, groups: Integers) -> tuple[Integers, Integers]:
    """Pairs of a cell and a set that its people's group lies in."""
    there = np.flatnonzero(groups >= 0)
    places, lengths = slices(series.group_stops, groups[there])
    return np.repeat(there, lengths), series.group_sets[places]


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
    span = int(max(source.max(), host.max())) + 2
    pairs = np.unique((source + 1) * span + host + 1)
    of_source, of_host = pairs // span - 1, pairs % span - 1
    leaves = of_source[of_host == NOBODY]
    arrives = of_host[of_source == NOBODY]
    whole = np.setdiff1d(of_source[np.isin(of_host, arrives)], np.append(leaves, NOBODY))
    chosen = np.isin(of_source, whole)
    number, hosts = np.searchsorted(whole, of_source[chosen]), of_host[chosen]
    held, lengths = slices(sets.stops, hosts)
    own, own_lengths = slices(sets.stops, whole)
    values = int(sets.values.max()) + 1
    entries = np.concatenate([np.repeat(number, lengths), np.repeat(np.arange(len(whole)), own_lengths)]) * values
    entries += np.concatenate([sets.values[held], sets.values[own]])
    distinct, place = np.unique(entries, return_inverse=True)
    sums = np.bincount(place, np.concatenate([sets.counts[held], -sets.counts[own]]), len(distinct)).astype(np.int64)
    distinct, sums = distinct[sums > 0], sums[sums > 0]
    stops = np.searchsorted(distinct, values * (np.arange(len(whole)) + 1))
    beyond = Sets(stops, distinct % values, sums, np.zeros_like(sums), sums)
    absent = np.flatnonzero(source == NOBODY)
    arrived, position = np.unique(host[absent], return_inverse=True)
    joined = np.isin(hosts, arrived)
    host_stops, sources = in_lists(np.searchsorted(arrived, hosts[joined]), number[joined], len(arrived))
    places, lengths = slices(host_stops, position)
    return beyond, (np.repeat(absent, lengths), sources[places])


def _balance(
    sets: Sets, component: Integers, sizes: Integers, source: Integers, host: Integers
) -> tuple[Sets, tuple[Integers, Integers]]:
    """What the people of one release alone have, by all classes that people connect in both together.

    They have what the one release holds more than the other, and what those have who are in the other alone: exactly
    the difference, where there is nobody of that kind.

    Parameters
    ----------
    component, sizes : int64, shape (cells,)
        Cells whose classes are connected have the same component; people of each cell.
    source, host : int64, shape (cells,)
        Blocks of each cell in the two releases.

    Returns
    -------
    Sets
        The people of each component who are in the release of the hosts alone.
    tuple
        Pairs of a cell of such people and its set.
    """
    alone = np.flatnonzero(source == NOBODY)
    components, number = np.unique(component[alone], return_inverse=True)
    held, of_held = _total(sets, components, component, host)
    before, of_before = _total(sets, components, component, source)
    entries, place = np.unique(np.concatenate([of_held, of_before]), return_inverse=True)
    there = np.bincount(place[: len(held)], held, len(entries)).astype(np.int64)
    difference = there - np.bincount(place[len(held) :], before, len(entries)).astype(np.int64)
    values = int(sets.values.max()) + 1
    gone = np.zeros(len(components), np.int64)
    leaves = (host == NOBODY) & np.isin(component, components)
    np.add.at(gone, np.searchsorted(components, component[leaves]), sizes[leaves])
    of_others = np.minimum(gone[entries // values], there - difference)
    low, high = np.maximum(difference, 0), np.minimum(difference + of_others, there)
    counts = np.where(gone[entries // values] == 0, high, there)
    kept = high > 0
    stops = np.searchsorted(entries[kept], values * (np.arange(len(components)) + 1))
    found = Sets(stops, entries[kept] % values, counts[kept], low[kept], high[kept])
    return found, (alone, number)


def _total(sets: Sets, components: Integers, component: Integers, blocks: Integers) -> tuple[Integers, Integers]:
    """Rows in all blocks of some components: counts, and the component's place and the value of each."""
    meant = np.isin(component, components) & (blocks != NOBODY)
    distinct, some = np.unique(blocks[meant], return_index=True)
    of_block = np.searchsorted(components, component[meant][some])
    places, lengths = slices(sets.stops, distinct)
    values = int(sets.values.max()) + 1
    return sets.counts[places], np.repeat(of_block, lengths) * values + sets.values[places]

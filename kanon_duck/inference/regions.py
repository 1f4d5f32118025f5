"""A series in which people are known by their quasi-identifiers alone: any class that covers them may hold them.

What follows from numbers is used at once: a class that only as many people may be in as it has rows has all of them,
and one that is full of people who may be in no other has nobody else.
"""

from __future__ import annotations

import numpy as np

from kanon_duck.errors import KanonError
from kanon_duck.inference.series import Integers, Series, Sets, joined, slices
from kanon_duck.kernels.atoms import connect, split_by_sets


def series_of_regions(
    people: int, contents: Sets, class_stops: Integers, candidates: list[tuple[Integers, Integers]]
) -> Series:
    """Put together what each of some releases tells.

    Parameters
    ----------
    people : int
    contents : Sets
        All classes of all releases, those of one behind those of the releases before.
    class_stops : int64, shape (releases,)
        Where the classes of each release end.
    candidates : list of tuples
        For each release who may be in which class: pairs of a person and a class's number in ``contents``, by person
        and class, each once.

    Raises
    ------
    KanonError
        When the people of a release cannot be those of its classes.
    """
    sizes = (
        np.add.reduceat(contents.counts, np.concatenate([[0], contents.stops[:-1]]))
        if len(contents)
        else contents.stops
    )
    parts: list[tuple[Integers, ...]] = []
    known: list[Sets] = []
    group_classes: list[Integers] = []
    groups = sets = 0
    begins: list[int] = []
    for release, (person, number) in enumerate(candidates):
        first = int(class_stops[release - 1]) if release else 0
        own = sizes[first : class_stops[release]]
        person, number = _settle(release, person, number - first, own)
        atoms = np.zeros(people, np.int64)
        order = np.argsort(number, kind="stable")
        split_by_sets(np.cumsum(np.bincount(number, minlength=len(own))), person[order], atoms)
        there = np.unique(person)
        _, some, group = np.unique(atoms[there], return_index=True, return_inverse=True)
        starts = np.searchsorted(person, there[some])
        lengths = np.searchsorted(person, there[some], side="right") - starts
        places = slices(np.cumsum(lengths), np.arange(len(lengths)))[0]
        shift = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        classes = number[places + shift]
        more, group_stops, group_sets = _sets(contents, first, len(own), lengths, classes)
        parts.append((there, group + groups, group_stops, group_sets + sets))
        group_classes += [lengths, classes + first]
        known.append(more)
        sets += len(more)
        groups += len(lengths)
        begins += [release] * len(lengths)
    person, group = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    group_sets = np.concatenate([part[3] for part in parts])
    group_stops = np.cumsum(np.concatenate([np.diff(part[2], prepend=0) for part in parts]))
    first_release = np.array(begins)
    lengths, classes = (np.concatenate(group_classes[place::2]) for place in (0, 1))
    return Series(
        people, len(candidates), person, group, first_release, first_release + 1, group_stops, group_sets,
        joined(known), np.cumsum(lengths), classes, contents,
    )  # fmt: skip


def _settle(release: int, person: Integers, number: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """Leave out pairs of a person and a class that the sizes of the classes rule out."""
    while True:
        choices = np.bincount(person)[person]
        possible = np.bincount(number, minlength=len(sizes))
        certain = np.bincount(number[choices == 1], minlength=len(sizes))
        wrong = np.flatnonzero((possible < sizes) | (certain > sizes))
        if len(wrong):
            there = int(possible[wrong[0]] if possible[wrong[0]] < sizes[wrong[0]] else certain[wrong[0]])
            raise KanonError(
                f"population does not fit release {release + 1}: a class of {sizes[wrong[0]]} rows can only be made of "
                f"{there} people; name the people of each release by first_release and last_release"
            )
        full = possible == sizes
        taken = np.zeros(int(person.max(initial=-1)) + 1, bool)
        taken[person[full[number]]] = True
        stays = full[number] | ~taken[person]
        stays &= (certain < sizes)[number] | (choices == 1) | full[number]
        if stays.all():
            return person, number
        person, number = person[stays], number[stays]


def _sets(
    contents: Sets, first: int, classes: int, lengths: Integers, chosen: Integers
) -> tuple[Sets, Integers, Integers]:
    """The sets that groups lie in, from the classes that each group's people may be in.

    People of one class lie in it. Those of several lie in the union of these, of which only upper bounds are known,
    and, class by class, among those who may be in it, who have at least its values; all of them lie in the union of
    the classes that such people connect, which is known exactly.
    """
    roots = np.arange(classes)
    group = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.cumsum(lengths) - lengths
    connect(chosen, chosen[starts][group], roots)
    known, block_of_root = np.unique(roots, return_inverse=True)
    blocks = _united(contents, roots.argsort(kind="stable") + first, np.cumsum(np.bincount(block_of_root)))
    several = np.bincount(block_of_root)[block_of_root[chosen[starts]]] > 1
    unsure = np.flatnonzero(several)
    places = slices(np.cumsum(lengths), unsure)[0]
    unions = _united(contents, chosen[places] + first, np.cumsum(lengths[unsure]))
    unions = Sets(unions.stops, unions.values, unions.counts, np.zeros_like(unions.low), unions.high)
    shared = np.unique(chosen[places])
    among = _at_least(blocks, block_of_root[shared], contents, shared + first)
    # of each group: its union, those of its classes, its block
    pairs = [
        (unsure, np.arange(len(unsure)), 0),
        (group[places], np.searchsorted(shared, chosen[places]) + len(unions), 1),
        (np.arange(len(lengths)), block_of_root[chosen[starts]] + len(unions) + len(among), 2),
    ]
    of_group = np.concatenate([pair[0] for pair in pairs])
    sets = np.concatenate([pair[1] for pair in pairs])
    order = np.lexsort((np.concatenate([np.full(len(pair[0]), pair[2]) for pair in pairs]), of_group))
    group_stops = np.cumsum(np.bincount(of_group, minlength=len(lengths)))
    return joined([unions, among, blocks]), group_stops, sets[order]


def _united(contents: Sets, classes: Integers, stops: Integers) -> Sets:
    """Unions of classes, with the sums of their multisets."""
    places, lengths = slices(contents.stops, classes)
    union = np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0))
    entries = np.stack([np.repeat(union, lengths), contents.values[places]])
    (of_union, values), where = np.unique(entries, axis=1, return_inverse=True)
    sums = np.bincount(where.ravel(), contents.counts[places], len(values)).astype(np.int64)
    return Sets(np.searchsorted(of_union, np.arange(len(stops)), side="right"), values, sums, sums, sums)


def _at_least(blocks: Sets, block: Integers, contents: Sets, classes: Integers) -> Sets:
    """People who may be in a class: they have its values, and possibly others of its block."""
    places, lengths = slices(blocks.stops, block)
    number = np.repeat(np.arange(len(block)), lengths)
    values, counts = blocks.values[places], blocks.counts[places]
    own, own_lengths = slices(contents.stops, classes)
    span = int(contents.values.max(initial=-1)) + 1
    keys = number * span + values
    low = np.zeros_like(counts)
    low[np.searchsorted(keys, np.repeat(np.arange(len(block)), own_lengths) * span + contents.values[own])] = (
        contents.counts[own]
    )
    return Sets(np.cumsum(lengths), values, counts, low, counts)

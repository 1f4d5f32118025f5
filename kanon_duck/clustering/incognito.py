"""Incognito: full-domain generalization, one level for each quasi-identifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.repair import unsatisfied_classes
from kanon_duck.clustering.result import Clustering
from kanon_duck.encoding.levels import codes_at, shares_at, top_level
from kanon_duck.encoding.microdata import Attribute, Microdata, NumericAttribute
from kanon_duck.errors import KanonError
from kanon_duck.kernels.groups import number_keys
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import Demand, demand, least_size

MOST_NODES = 1_000_000
"""Nodes of the lattices of all sets of quasi-identifiers, beyond which the search is refused."""

Node = Sequence[int]
"""A level for each quasi-identifier of a set."""


def incognito(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Callable[[float | None], None],
) -> Clustering:
    """Find the least general levels at which rows that agree in all quasi-identifiers satisfy the models.

    For every set of quasi-identifiers, small ones first, the nodes of its lattice are looked at from the least general
    ones up. Subset pruning: a node can satisfy the models only if it does without any one of its quasi-identifiers.
    Roll-up pruning: above a node that satisfies them all do. Both hold of every model, as classes only unite. Groups
    of a node are counted from those of a less general one. Which of the minimal nodes to publish the paper leaves
    open: that with most groups, of these the one with the least loss, then the first in the order of the levels. The
    p-sensitive adaptation is that of Truta, Campan & Meyer: the models in the place of k-anonymity; nobody is left out.

    Guarantee: every minimal node has been found, and the groups of the published one have been checked.

    Cost: the nodes can be all of the product, over the quasi-identifiers, of one more than their levels; each that is
    checked takes time linear in the rows that differ, or in all rows where the models speak of sensitive values.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
    generator : numpy.random.Generator
        Not used: nothing is random.
    checkpoint : callable
        Called at every node that is checked, with the share done.

    Returns
    -------
    Clustering
        With the levels of the node, and a warning that tells the size of the search. Where not even all rows together
        satisfy the models, they are one class.

    Raises
    ------
    KanonError
        On fewer than k rows, more than ``MOST_NODES`` nodes, or a domain that cannot be halved.

    References
    ----------
    LeFevre, DeWitt and Ramakrishnan, "Incognito: efficient full-domain k-anonymity", SIGMOD 2005, section 3.
    Truta, Campan and Meyer, "Generating microdata with p-sensitive k-anonymity property", SDM 2007, section 4.
    """
    attributes = microdata.attributes
    model.refuse_too_few(microdata.encoding.rows)
    nodes = _refuse_unsearchable(attributes)
    demanded = demand(model, microdata.sensitive)
    together = np.zeros(microdata.encoding.rows, np.int64)
    if len(unsatisfied_classes(together, demanded)):
        return Clustering(together, [top_level(attribute) for attribute in attributes])
    table = _table(attributes)
    everything = range(len(attributes))
    satisfying: dict[tuple[int, ...], NDArray[np.bool_]] = {(): np.ones((), bool)}
    done = checked = 0
    for size in range(1, len(attributes) + 1):
        found = {}
        for members in combinations(everything, size):
            candidates = np.ones([len(table.recoded[member]) for member in members], bool)
            for place in range(size):
                candidates &= np.expand_dims(satisfying[members[:place] + members[place + 1 :]], place)
            lattice = _Lattice(table, members, candidates)
            found[members] = np.zeros_like(candidates)
            for number in _from_the_bottom(candidates):
                if not found[members].flat[number]:
                    checkpoint(done / nodes)
                    checked += 1
                    node = np.unravel_index(number, candidates.shape)
                    if lattice.satisfies(node, demanded):
                        found[members][tuple(slice(level, None) for level in node)] = True
            done += candidates.size
        satisfying = found
    lattice = _Lattice(table, tuple(everything), candidates)
    levels = _best(microdata, lattice, _minimal(found[tuple(everything)]), checkpoint)
    effort = f"incognito has checked {checked} of {nodes} nodes, those of the lattices of all sets of quasi-identifiers"
    return Clustering(lattice.groups(levels)[table.group], levels, [effort])


def _refuse_unsearchable(attributes: list[Attribute]) -> int:
    """The number of nodes of all lattices, if a search of them is feasible."""
    for attribute in attributes:
        if isinstance(attribute, NumericAttribute) and attribute.ranks is not None:
            raise KanonError(
                f"method is 'incognito', but {attribute.name} has a domain of more than 2**62 steps, which cannot be "
                "halved down to them: name a coarser step, or another method"
            )
    nodes = math.prod(top_level(attribute) + 2 for attribute in attributes) - 1
    if nodes > MOST_NODES:
        sizes = ", ".join(f"{attribute.name} {top_level(attribute) + 1}" for attribute in attributes)
        raise KanonError(
            f"method is 'incognito', but it would have {nodes:,} nodes to search, more than {MOST_NODES:,} (levels: "
            f"{sizes}): name coarser steps, hierarchies of fewer levels, fewer quasi-identifiers or another method"
        )
    return nodes


class _Table(NamedTuple):
    """The rows that differ in a quasi-identifier at level 0.

    Attributes
    ----------
    group : int64, shape (n,)
        Which of them each row is.
    rows : int64, shape (groups,)
        How many rows each of them stands for.
    codes : list of int64, shape (groups,)
        For each quasi-identifier the number of its value at level 0.
    recoded : list of list of int64
        For each quasi-identifier and level, by the number of a value at level 0, that of what it shows.
    """

    group: NDArray[np.int64]
    rows: NDArray[np.int64]
    codes: list[NDArray[np.int64]]
    recoded: list[list[NDArray[np.int64]]]


def _table(attributes: list[Attribute]) -> _Table:
    codes, recoded = [], []
    for attribute in attributes:
        numbers, first = _numbered(codes_at(attribute, 0))
        codes.append(numbers)
        values = attribute.take(first)
        recoded.append([_numbered(codes_at(values, level))[0] for level in range(top_level(attribute) + 1)])
    group, first = _grouped(codes)
    return _Table(group, np.bincount(group), [numbers[first] for numbers in codes], recoded)


class _Lattice:
    """The nodes of a set of quasi-identifiers, counted from the groups of what lies below all candidates."""

    def __init__(self, table: _Table, members: tuple[int, ...], candidates: NDArray[np.bool_]) -> None:
        self.table, self.members = table, members
        lowest = np.argwhere(candidates).min(axis=0).tolist()
        codes = [table.codes[member] for member in members]
        self.base, first = _grouped(_recoded(table, members, lowest, codes))
        self.rows = np.bincount(self.base, weights=table.rows).astype(np.int64)
        self.codes = [code[first] for code in codes]

    def _groups_of_base(self, node: Node) -> NDArray[np.int64]:
        return _grouped(_recoded(self.table, self.members, node, self.codes))[0]

    def groups(self, node: Node) -> NDArray[np.int64]:
        """The group at a node of each row that differs."""
        return self._groups_of_base(node)[self.base]

    def satisfies(self, node: Node, demanded: Demand) -> bool:
        """Whether every group of a node satisfies what is demanded."""
        groups = self._groups_of_base(node)
        sizes = np.bincount(groups, weights=self.rows).astype(np.int64)
        if sizes.min() < least_size(demanded):
            return False
        if isinstance(demanded, int):
            return True
        return len(unsatisfied_classes(groups[self.base][self.table.group], demanded)) == 0


def _recoded(
    table: _Table, members: Sequence[int], node: Node, codes: list[NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """What values with these numbers at level 0 show at a node."""
    return [table.recoded[member][level][code] for member, level, code in zip(members, node, codes, strict=True)]


def _from_the_bottom(candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers in the lattice of the nodes that may satisfy the models, by the sum of their levels."""
    sums = np.zeros(candidates.shape, np.int64)
    for levels in np.ogrid[tuple(slice(size) for size in candidates.shape)]:
        sums += levels
    numbers = np.flatnonzero(candidates)
    return numbers[np.argsort(sums.ravel()[numbers], kind="stable")]


def _minimal(satisfying: NDArray[np.bool_]) -> list[list[int]]:
    """The nodes that satisfy the models and right below which none does."""
    minimal = satisfying.copy()
    for axis in range(satisfying.ndim):
        np.moveaxis(minimal, axis, 0)[1:] &= ~np.moveaxis(satisfying, axis, 0)[:-1]
    return np.argwhere(minimal).tolist()


def _best(
    microdata: Microdata, lattice: _Lattice, nodes: Sequence[Node], checkpoint: Callable[[float | None], None]
) -> Node:
    """The node with most groups, of these the one of the least loss."""
    encoding = microdata.encoding
    weights = np.bincount(encoding.attributes, (encoding.weights * encoding.caps)[: encoding.columns])
    losses = [
        [float(weight * shares_at(attribute, level).sum()) for level in range(top_level(attribute) + 1)]
        for weight, attribute in zip(weights, microdata.attributes, strict=True)
    ]

    def merit(node: Node) -> tuple[int, float]:
        checkpoint(None)
        loss = math.fsum(of_levels[level] for of_levels, level in zip(losses, node, strict=True))
        return int(lattice.groups(node).max()) + 1, -loss

    return max(nodes, key=merit)


def _grouped(columns: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of each row's combination of codes, and the first row of each combination."""
    keys, room = columns[0], int(columns[0].max()) + 1
    for codes in columns[1:]:
        size = int(codes.max()) + 1
        if room * size >= 2**63:
            keys = _numbered(keys)[0]
            room = int(keys.max()) + 1
        keys, room = keys * size + codes, room * size
    return _numbered(keys)


def _numbered(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of each row's key, in the order in which keys come, and the first row of each number."""
    numbers, first = np.empty_like(keys), np.empty_like(keys)
    count = number_keys(keys, numbers, first)
    return numbers, first[:count]

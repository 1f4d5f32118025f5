"""Places the rows of one batch of changes in classes, by the kind of maintenance that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.catalog.settings import Settings
from kanon_duck.clustering.auto import steps_per_row
from kanon_duck.clustering.declared import cluster, most_left_out
from kanon_duck.clustering.order import order
from kanon_duck.clustering.repair import repair
from kanon_duck.encoding.loss import information_loss
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.changes import changes, classes_in, keep_numbers, rows_of
from kanon_duck.maintenance.class_index import best_classes
from kanon_duck.maintenance.i3m import delete_rows, exchange_rows, insert_rows, split_large
from kanon_duck.maintenance.improve import improve_touched
from kanon_duck.maintenance.optimization import optimize
from kanon_duck.maintenance.partition import Partition, build_partition, regrouped
from kanon_duck.maintenance.state import State
from kanon_duck.privacy.requirement import Demand, demand, least_size
from kanon_duck.release.generalization import generalize
from kanon_duck.runtime.call import Call, no_checkpoint
from kanon_duck.runtime.parallel import part

IMPROVED_ALREADY = 0.5
"""Steps of annealing for each touched row, beside those that it would get in a table that is clustered from scratch:
most rows of touched classes are where they were, and that is a good place."""


def place_batch(
    call: Call,
    settings: Settings,
    state: State,
    leaving: NDArray[np.int64],
    arriving: NDArray[np.int64],
    left_out: NDArray[np.int64],
) -> tuple[State, Sequence[str]]:
    """Take rows out of their classes, then give classes to the rows that arrive.

    Decides where a row goes, and nothing else. A row for which there is no class has label -1 afterwards: where no
    class is left and all rows are too few for one, all of them.

    Parameters
    ----------
    call, settings
    state : State
        Its labels are those before the batch. Codes of rows that leave may be those they have afterwards.
    leaving : int64, shape (rows,)
        Row numbers of members that are gone, or whose codes have changed.
    arriving : int64, shape (rows,)
        Row numbers of members that are to be in a class: new ones, and those that come back with other codes.
    left_out : int64, shape (rows,)
        Row numbers of members that were left out for quality. They stay so as far as ``max_suppression`` allows of
        the rows that there are now; beyond that, those join the classes there are whom it costs least to show. Where
        all rows are clustered from scratch, nobody is left out because somebody else was before.

    Returns
    -------
    State
        With the new labels. Its partition may be that before the last improvements: the caller brings it up to date.
    sequence of str
        What the owner should know of a clustering from scratch.
    """
    encoding, before = state.microdata.encoding, state.labels
    staying = before != NO_CLASS
    staying[leaving] = False
    partition = _partition_to_change(state)
    state = replace(state, partition=None)
    if settings.maintenance == "static":
        return _cluster_anew(call, settings, state, _together(staying, arriving, left_out))
    if partition is None:
        partition = build_partition(encoding, before)
    room = most_left_out(settings, int(np.count_nonzero(state.present))) - len(left_out)
    joining = _cheapest(partition, left_out, -room) if room < 0 else left_out[:0]
    if settings.maintenance != "append":
        joining = np.concatenate([arriving, joining])
    released = np.zeros(len(before), bool)
    released[_together(staying, joining)] = True
    demanded = demand(settings.model, state.microdata.sensitive, released)
    partition = _maintained(call, settings, state, partition, demanded, leaving, joining)
    if partition.labels.max(initial=NO_CLASS) == NO_CLASS:
        return _cluster_anew(call, settings, state, _together(staying, arriving, left_out))
    if settings.maintenance == "append":
        labels = _appended(call, settings, state, partition.labels, arriving, max(room, 0))
        demanded = demand(settings.model, state.microdata.sensitive, labels != NO_CLASS)
        return replace(state, labels=repair(encoding, labels, demanded, call.checkpoint)), ()
    # a class may fall short of more than its size by rows that joined it, or by values that have changed
    repaired = repair(encoding, partition.labels, demanded, call.checkpoint)
    if np.all(repaired == NO_CLASS):
        return replace(state, labels=repaired), ()
    if repaired is not partition.labels:
        partition = regrouped(partition, repaired)
    labels = partition.labels.copy()
    if settings.method == "auto":
        touched = classes_in(changes(before, labels).touched, labels[joining])
        labels = _improved(call, settings, state, partition, demanded, touched)
    return replace(state, labels=labels, partition=partition), ()


def _cheapest(partition: Partition, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Some of the rows in no class: those that would raise total loss least if each joined a class alone."""
    _, rises = best_classes(partition.class_index, partition.codes[rows])
    return rows[np.argsort(rises, kind="stable")[:count]]


def _maintained(
    call: Call,
    settings: Settings,
    state: State,
    partition: Partition,
    demanded: Demand,
    leaving: NDArray[np.int64],
    arriving: NDArray[np.int64],
) -> Partition:
    """The partition without the rows that leave, and with those that arrive."""
    # rows that are alike are placed one after the other: what they look at is in the cache then
    placed = arriving[order(state.microdata.take(arriving).encoding, least_size(demanded), no_checkpoint)]
    if settings.method == "auto":
        return exchange_rows(partition, leaving, placed, demanded, part(call.checkpoint, 0.0, 0.7))
    partition = delete_rows(partition, leaving, demanded, part(call.checkpoint, 0.0, 0.4))
    return insert_rows(partition, placed, demanded, part(call.checkpoint, 0.4, 0.7))


def _partition_to_change(state: State) -> Partition | None:
    """The partition that is remembered, if there is one, as if it were set up from the members now.

    Guarantee: numbers of classes that are gone are free again, so new classes get those that they would get in a
    process that remembers nothing.
    """
    if state.partition is not None:
        state.partition.class_index.used[0] = state.labels.max(initial=NO_CLASS) + 1
    return state.partition


def _together(staying: NDArray[np.bool_], *others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rising numbers of the rows that stay, and of others."""
    everybody = staying.copy()
    for rows in others:
        everybody[rows] = True
    return np.flatnonzero(everybody)


def _appended(
    call: Call, settings: Settings, state: State, labels: NDArray[np.int64], arriving: NDArray[np.int64], room: int
) -> NDArray[np.int64]:
    """Labels after the rows that arrive got classes of their own, if they are enough for one."""
    if len(arriving) >= settings.model.k:
        found = cluster(call, settings, state.microdata.take(arriving), room).labels
        labels[arriving] = np.where(found == NO_CLASS, NO_CLASS, found + labels.max() + 1)
    return labels


def _cluster_anew(call: Call, settings: Settings, state: State, rows: NDArray[np.int64]) -> tuple[State, Sequence[str]]:
    """Cluster some of the members from scratch, if they are enough for a class.

    Classes keep their numbers as far as they go on.
    """
    labels = np.full(len(state.labels), NO_CLASS)
    if len(rows) < settings.model.k:
        return replace(state, labels=labels), ()
    found, levels, warnings = cluster(call, settings, state.microdata.take(rows))
    unused = int(state.labels.max(initial=NO_CLASS)) + 1
    labels[rows] = keep_numbers(state.labels[rows], found, unused)
    return replace(state, labels=labels, levels=levels), warnings


def _improved(
    call: Call,
    settings: Settings,
    state: State,
    partition: Partition,
    demanded: Demand,
    touched: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Labels after annealing of the touched classes."""
    rows = int(np.count_nonzero(state.present))
    steps = IMPROVED_ALREADY * steps_per_row(settings.effort, rows, least_size(demanded))
    of_improvement = part(call.checkpoint, 0.7, 1.0)
    return improve_touched(state.microdata.encoding, partition, touched, demanded, settings.seed, steps, of_improvement)


def optimize_classes(call: Call, settings: Settings, state: State) -> State:
    """IL_Optimization of all classes; those that have grown to 2k rows are split.

    Guarantee: information loss falls, or all labels are as they were. Where models speak of more than the number of
    rows, classes that have taken in rows may have to be united, which can cost more than was gained.
    """
    demanded = demand(settings.model, state.microdata.sensitive, state.labels != NO_CLASS)
    partition = _partition_to_change(state)
    if partition is None:
        partition = build_partition(state.microdata.encoding, state.labels)
    optimize(partition, part(call.checkpoint, 0.0, 0.9))
    partition = split_large(partition, demanded, part(call.checkpoint, 0.9, 1.0))
    labels = repair(state.microdata.encoding, partition.labels, demanded, call.checkpoint).copy()
    touched = changes(state.labels, labels).touched
    if _loss(state.microdata, labels, touched) >= _loss(state.microdata, state.labels, touched):
        return replace(state, partition=None)
    return replace(state, labels=labels, partition=regrouped(partition, labels))


def _loss(microdata: Microdata, labels: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """Information loss of some classes as readers are told it, without weights."""
    rows = rows_of(classes, labels)
    _, dense = np.unique(labels[rows], return_inverse=True)
    generalized = generalize(microdata.take(rows), dense)
    return information_loss(generalized.sizes, generalized.shares)[1]

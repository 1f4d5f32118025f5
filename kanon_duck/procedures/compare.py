"""FROM kanon.compare: what different methods and models would make of a source; it stores nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from kanon_duck.catalog.options import METHODS
from kanon_duck.catalog.settings import Settings, read_settings
from kanon_duck.clustering.declared import cluster
from kanon_duck.encoding.loss import average_class_size, discernibility, information_loss
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.errors import KanonError
from kanon_duck.intake.encode import encode
from kanon_duck.intake.snapshot import Snapshot, take_snapshot
from kanon_duck.privacy.feasibility import refuse_impossible
from kanon_duck.privacy.models import ON_VALUES, PrivacyModel
from kanon_duck.privacy.sensitive import narrowed
from kanon_duck.release.generalization import generalize
from kanon_duck.release.query_error import Counts, draw_counts, query_error
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import StatementError
from kanon_duck.runtime.memory import peak_memory

VARIED = ("k", *ON_VALUES)
"""Options of which each may be a value or a list of them."""

UNSEEN = {"view_name": "main.compared", "secure": False}
"""What settings need besides: no masked view of this name is made, and so no releases follow each other."""


@dataclass(frozen=True)
class Run:
    """A method and models that are to be tried.

    Attributes
    ----------
    chosen : dict
        The method and the models as typed, by their column.
    settings : Settings or KanonError
        What they mean, or why they mean nothing.
    """

    chosen: Row
    settings: Settings | KanonError


def run(call: Call) -> list[Row]:
    """Read and encode the source once, then cluster it with each method and each combination of models.

    Guarantee: nothing is written but temporary tables of the call's own connection, which end with it.
    """
    runs = _runs(call)
    models = [each.settings.model for each in runs if isinstance(each.settings, Settings)]
    settings = next(each.settings for each in runs if isinstance(each.settings, Settings))
    call.phase("reading")
    snapshot = take_snapshot(call, settings)
    call.phase("encoding")
    microdata = encode(call.database, replace(settings, model=_together(models)), snapshot.table).microdata
    counts = draw_counts(microdata, np.random.default_rng(settings.seed), call.checkpoint)
    call.phase("clustering")
    return [
        {**each.chosen, **_tried(_part(call, number, len(runs)), each.settings, snapshot, microdata, counts)}
        for number, each in enumerate(runs)
    ]


def _runs(call: Call) -> list[Run]:
    """Every method with every combination of models, in the order in which they are typed.

    Raises
    ------
    KanonError
        When there is none that could be tried: then the first one's reason is that of all.
    """
    given = {name: value for name, value in call.arguments.items() if name != "methods"} | UNSEEN
    methods = [method.lower() for method in read.names(call.arguments, "methods")] or ["auto"]
    runs = []
    for method, *values in product(methods, *(_values(name, given.get(name)) for name in VARIED)):
        chosen = dict(zip(("method", *VARIED), (method, *values), strict=True))
        own = _for_method(given, method, methods)
        settings: Settings | KanonError
        try:
            settings = read_settings(replace(call, arguments={**given, **chosen, **own}))
        except KanonError as refused:
            settings = refused
        runs.append(Run(chosen, settings))
    reasons = [each.settings for each in runs if isinstance(each.settings, KanonError)]
    if len(reasons) == len(runs):
        raise reasons[0]
    return runs


def _values(name: str, typed: Any) -> list[Any]:
    """The values of an option; one of recursive_cl is itself a list."""
    several = isinstance(typed, list) and (name != "recursive_cl" or any(isinstance(each, list) for each in typed))
    if several and not typed:
        raise KanonError(f"{name} is an empty list: name a value, or leave it out")
    return typed if several else [typed]


def _for_method(given: read.Arguments, method: str, methods: list[str]) -> Row:
    """The effort and the options that a method has among those typed; what none of the methods has is refused later."""
    options = {
        name: value
        for name, value in read.mapping(given, "method_options").items()
        if name in METHODS.get(method, ()) or not any(name in METHODS.get(each, ()) for each in methods)
    }
    effort = given.get("effort") if method == "auto" or "auto" not in methods else None
    return {"method_options": options, "effort": effort}


def _together(models: list[PrivacyModel]) -> PrivacyModel:
    """A model that asks for all codes that some of the models ask for."""
    asked: Row = {
        name: next((value for model in models if (value := getattr(model, name)) is not None), None)
        for name in ON_VALUES
    }
    return replace(models[0], **asked)


def _part(call: Call, view_number: int, runs: int) -> Call:
    """The call as one of several runs sees it: a share of its work is a smaller share of the whole."""
    whole: Callable[[float | None], None] = call.checkpoint

    def checkpoint(share: float | None = None) -> None:
        whole(None if share is None else (view_number + share) / runs)

    return replace(call, checkpoint=checkpoint)


def _tried(
    call: Call, settings: Settings | KanonError, snapshot: Snapshot, microdata: Microdata, counts: Counts
) -> Row:
    """The figures of a run, or why it failed: the others go on."""
    try:
        if isinstance(settings, KanonError):
            raise settings
        refuse_impossible(call.database, settings.model, snapshot.rows, snapshot.table)
        return _figures(call, settings, microdata, counts)
    except StatementError:  # whatever comes after it in the transaction fails too
        raise
    except KanonError as failed:
        return {"error": str(failed)}
    except MemoryError:
        return {"error": "there is not enough memory for this method: compare it on fewer rows"}


def _figures(call: Call, settings: Settings, microdata: Microdata, counts: Counts) -> Row:
    """Cluster as the settings say, and measure what readers would see."""
    microdata = replace(microdata, sensitive=narrowed(microdata.sensitive, settings.model))
    started = time.perf_counter()
    labels, levels, _ = cluster(call, settings, microdata)
    classes = generalize(microdata, labels, levels)
    seconds = time.perf_counter() - started
    sizes = np.bincount(classes.reader_class, classes.sizes).astype(np.int64)
    released = int(sizes.sum())
    loss = information_loss(classes.sizes, classes.shares)[1]
    error = query_error(counts, microdata, labels, classes, call.checkpoint)
    call.checkpoint(1.0)
    return {
        "rows": released,
        "classes": len(sizes),
        "suppressed": len(labels) - released,
        "information_loss": loss,
        "information_loss_per_row": loss / released,
        "discernibility": discernibility(sizes),
        "average_class_size": average_class_size(released, len(sizes), settings.model.k),
        "query_error": error,
        "seconds": seconds,
        "peak_memory_bytes": peak_memory(),
    }

"""Writes channels as rows for the owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kanon_duck.inference.channels import Channel
from kanon_duck.inference.compatibility import Region, relation
from kanon_duck.inference.series import Series, slices
from kanon_duck.runtime.call import Row

MOST_SHOWN = 8
"""Classes, or values, of a kind that a row shows."""


@dataclass(frozen=True)
class Names:
    """What is written for the numbers of a series.

    Attributes
    ----------
    releases : list of int
        As readers count them.
    titles : list of str
        What they are called where several may have the same number.
    labels : list of str
        What readers see of the quasi-identifiers of each class of ``series.classes``.
    values : mapping
        Texts of the values, by attribute; the whole tuple under None.
    regions : list of Region
        Of the classes.
    keys : sequence of str or None
        The keys of people, where they are known.
    """

    releases: list[int]
    titles: list[str]
    labels: list[str]
    values: Mapping[str | None, Sequence[str]]
    regions: list[Region]
    keys: Sequence[str | None]


def channel_rows(series: Series, names: Names, found: list[Channel]) -> list[Row]:
    """One row for each channel."""
    return [_row(series, names, channel) for channel in found]


def _row(series: Series, names: Names, channel: Channel) -> Row:
    """The row of a channel."""
    texts = names.values[channel.requirement.attribute]
    evidence = [
        f"{names.titles[release]}: " + _shortened([_group(series, names, group, texts) for group in groups], "; ")
        for release, groups in ((channel.first, channel.before), (channel.second, channel.after))
        if len(groups)
    ]
    left = _shortened(sorted({texts[value] for value in channel.values}), ", ")
    own = channel.after if len(channel.after) else channel.before
    return {
        "kind": channel.kind,
        "from_release": names.releases[channel.first],
        "to_release": names.releases[channel.second],
        "attribute": channel.requirement.attribute,
        "class": _classes(series, names, own[-1]),
        "victims": len(channel.people),
        "candidates": channel.candidates,
        "required": channel.requirement.least,
        "evidence": "; ".join([*evidence, f"left: {left}"]),
        "compatibility": _compatibility(series, names, channel),
        "keys": sorted(key for person in channel.people if (key := names.keys[person]) is not None),
    }


def _compatibility(series: Series, names: Names, channel: Channel) -> list[str]:
    """How the regions of the classes of the earlier release lie to those of the later; each relation once."""
    earlier, later = (
        {int(number) for group in groups for number in series.classes[slices(series.class_stops, np.array([group]))[0]]}
        for groups in (channel.before, channel.after)
    )
    found = {relation(names.regions[one], names.regions[other]) for one in earlier for other in later}
    return sorted(each for each in found if each is not None)


def _group(series: Series, names: Names, group: int, texts: Sequence[str]) -> str:
    """Classes of a group with what they hold."""
    places, _ = slices(series.class_stops, np.array([group]))
    entries, _ = slices(series.contents.stops, series.classes[places])
    held: dict[str, int] = {}
    for value, count in zip(series.contents.values[entries], series.contents.counts[entries], strict=True):
        held[texts[value]] = held.get(texts[value], 0) + int(count)
    shown = [text if held[text] == 1 else f"{held[text]} x {text}" for text in sorted(held)]
    return f"{_classes(series, names, group)} holds {_shortened(shown, ', ')}"


def _classes(series: Series, names: Names, group: int) -> str:
    """What readers see of the classes of a group."""
    places, _ = slices(series.class_stops, np.array([group]))
    return " or ".join(names.labels[number] for number in series.classes[places])


def _shortened(texts: list[str], mark: str) -> str:
    """The first of some texts, and how many there are beyond."""
    beyond = len(texts) - MOST_SHOWN
    return mark.join(texts[:MOST_SHOWN]) + (f"{mark}and {beyond} more" if beyond > 0 else "")

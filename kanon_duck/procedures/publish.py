"""CALL kanon.publish: gives readers the current release of masked views in a target of their own."""

from __future__ import annotations

from kanon_duck.errors import KanonError
from kanon_duck.publishing.publication import publish
from kanon_duck.publishing.record import Publication
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row

RELEASES = ("current", "all")


def run(call: Call) -> list[Row]:
    """Publish one masked view, or a list of them, into one target."""
    names = read.names(call.arguments, "view_name")
    if not names:
        raise KanonError("view_name is missing: name a masked view, or a list of them")
    version = call.arguments.get("storage_version")
    return publish(
        call,
        Publication(
            target=read.text(call.arguments, "target"),
            kind=None,
            releases=read.choice(call.arguments, "releases", RELEASES, "current"),
            storage_version=None if version is None else read.text(call.arguments, "storage_version"),
            views=names,
            dropped=[],
        ),
    )

"""CALL kanon.publish_all: brings everything that was published up to date."""

from __future__ import annotations

from kanon_duck.errors import KanonError
from kanon_duck.publishing.publication import failed, publish, stale
from kanon_duck.publishing.record import Publication
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Publish again what is stale; what stands in the way of a target is told in its rows, which stay stale.

    Each target is a transaction of its own: an interrupt leaves those that were finished before it.
    """
    answers = []
    for publication in stale(call):
        answers += _publish(call, publication)
        call.commit_so_far()
    return answers


def _publish(call: Call, publication: Publication) -> list[Row]:
    """The answer for one target, or why there is none."""
    try:
        return publish(call, publication)
    except KanonError as error:
        call.begin_again()
        return failed(call, publication, error)

"""FROM kanon.waiting: people of the source that the current release holds back."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.tables import members_table
from kanon_duck.catalog.views import find_view
from kanon_duck.intake.snapshot import key_text
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Key, release since which it waits, and reason, of every row that waits; those that wait longest first."""
    view = find_view(call)
    key = key_text([(name, exp.column(f"key_{place}")) for place, name in enumerate(view.key)])
    query = (
        exp.select(key.as_("key"), "waiting_since AS since_release", "waiting_reason AS reason")
        .from_(exp.to_table(members_table(view.number)))
        .where("waiting_since IS NOT NULL")
        .order_by("since_release", "key")
    )
    return call.database.records(query)

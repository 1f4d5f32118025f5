"""FROM kanon.waiting: people of the source that the current release holds back."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.call import Call, Row
from kanon_duck.catalog import find_view, members_table


def run(call: Call) -> list[Row]:
    """Key, release since which it waits, and reason, of every row that waits; those that wait longest first."""
    view = find_view(call)
    texts = [exp.cast(exp.column(f"key_{number}"), "VARCHAR") for number in range(len(view.key))]
    pairs = [part for name, text in zip(view.key, texts, strict=True) for part in (exp.Literal.string(name), text)]
    key: exp.Expression = texts[0] if len(texts) == 1 else exp.null()
    if len(texts) > 1:
        key = exp.cast(exp.Anonymous(this="json_object", expressions=pairs), "VARCHAR")
    query = (
        exp.select(key.as_("key"), "waiting_since AS since_release", "waiting_reason AS reason")
        .from_(exp.to_table(members_table(view.number)))
        .where("waiting_since IS NOT NULL")
        .order_by("since_release", "key")
    )
    return call.database.records(query)

"""FROM kanon.explain: where one person of the source is in the current release."""

from __future__ import annotations

import json

from kanon_duck.catalog.keys import read_key
from kanon_duck.catalog.tables import classes_table, members_table
from kanon_duck.catalog.views import find_view
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Class and generalization of the row with a key, or that there is none."""
    view = find_view(call)
    values = read_key(view, call.arguments.get("key"))
    matches = " AND ".join(f"CAST(key_{place} AS VARCHAR) = ?" for place in range(len(view.key)))
    found = call.database.rows(
        f"SELECT class, waiting_reason FROM {members_table(view.number)} WHERE {matches}", values
    )
    key = values[0] if len(values) == 1 else json.dumps(dict(zip(view.key, values, strict=True)))
    row: Row = {"key": key, "status": "unknown", "class": None, "class_rows": None, "generalization": None}
    if not found:
        return [row | {"reason": f"release {view.release} has no row with this key"}]
    label, waiting_reason = found[0]
    if waiting_reason is not None:
        return [row | {"status": "waiting", "reason": waiting_reason}]
    if label is None:
        return [row | {"status": "suppressed", "reason": "left out of the release for its quality"}]
    columns = [f"quasi_identifier_{place}" for place in range(len(view.quasi_identifiers))]
    rows, *cells = call.database.rows(
        f"SELECT rows, {', '.join(columns)} FROM {classes_table(view.number)} WHERE class = ?", [label]
    )[0]
    shown = [
        f"{name} {'NULL' if cell is None else cell}" for name, cell in zip(view.quasi_identifiers, cells, strict=True)
    ]
    return [
        row
        | {
            "status": "released",
            "class": label,
            "class_rows": rows,
            "generalization": ", ".join(shown),
            "reason": None,
        }
    ]

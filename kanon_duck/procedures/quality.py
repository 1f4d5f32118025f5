"""FROM kanon.quality: how much each quasi-identifier of the current release has lost."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.tables import released_table
from kanon_duck.catalog.views import MaskedView, find_view
from kanon_duck.release.generalization import ROOT
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Information loss, distinct values and share of cells at the root, one row per quasi-identifier."""
    view = find_view(call)
    losses = dict(
        call.database.rows(
            "SELECT attribute, information_loss FROM kanon_private.attribute_losses "
            "WHERE view_number = ? AND release = ?",
            [view.number, view.release],
        )
    )
    return [
        _attribute(call, view, name, str(declared["type"]), losses[name])
        for name, declared in view.quasi_identifiers.items()
    ]


def _attribute(call: Call, view: MaskedView, name: str, kind: str, loss: float) -> Row:
    """Quality of one quasi-identifier."""
    cell = exp.column(name, "released", quoted=True)
    at_root = cell.copy().isin(*(exp.Literal.string(root) for root in _roots(call, kind)))
    rows, distinct, root_cells = call.database.rows(
        exp.select(
            exp.Count(this=exp.Star()),
            exp.Count(this=exp.Distinct(expressions=[cell])),
            exp.CountIf(this=at_root),
        ).from_(released_table(view.name).as_("released"))
    )[0]
    return {
        "attribute": name,
        "kind": kind,
        "information_loss": loss,
        "information_loss_per_row": loss / rows,
        "distinct_values": distinct,
        "root_share": (root_cells or 0) / rows,
    }


def _roots(call: Call, kind: str) -> set[str]:
    """What a cell at the root shows: '*', or the name the hierarchy's root has."""
    named = call.database.rows(
        "SELECT DISTINCT last_value(ancestor) OVER (PARTITION BY leaf ORDER BY level "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) "
        "FROM (FROM kanon.hierarchy_nodes WHERE hierarchy = ? AND leaf = "
        "(SELECT min(leaf) FROM kanon.hierarchy_nodes WHERE hierarchy = ?))",
        [kind, kind],
    )
    return {ROOT, *(root for (root,) in named)}

"""FROM kanon.check: whether a release holds what it declares, recomputed from what readers see."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck import arguments as read
from kanon_duck.call import Call, Row
from kanon_duck.catalog import MaskedView, declared_model, find_view, refuse_unseen
from kanon_duck.check import class_sizes
from kanon_duck.errors import KanonError


def run(call: Call) -> list[Row]:
    """Check a release, over all its quasi-identifiers or a subset that an intruder may know."""
    view = find_view(call)
    release = read.integer(call.arguments, "release", view.release, 1)
    if release > view.release:
        raise KanonError(
            f"release is {release}, but masked view {view.name} has no release {release}: its last is {view.release}"
        )
    asked = read.names(call.arguments, "quasi_identifiers") or list(view.quasi_identifiers)
    asked = [read.one_of("quasi_identifiers", name, view.quasi_identifiers, "quasi-identifier") for name in asked]
    cells = [cell for name in asked for cell in view.cells(name)]
    model = declared_model(call.database, view, release)
    sizes = class_sizes(call.database, _rows(call, view, release), cells, model)
    return [
        {
            "release": release,
            "requirement": "k",
            "attribute": None,
            "required": model.k,
            "achieved": sizes.smallest,
            "violating_rows": sizes.violating_rows,
            "passed": sizes.passes(model),
        }
    ]


def _rows(call: Call, view: MaskedView, release: int) -> exp.Select:
    """The rows of a release, as readers get them: the current one from the masked view itself."""
    if release == view.release:
        refuse_unseen(call, view)
        return exp.select("*").from_(exp.table_(view.view, db=view.schema, catalog=call.catalog, quoted=True))
    rows = exp.func("kanon.as_of", exp.Literal.string(view.name), exp.Literal.number(release), dialect="duckdb")
    return exp.select("*").from_(exp.Table(this=rows))

"""FROM kanon.check: whether a release satisfies its models, recomputed from what readers see."""

from __future__ import annotations

from dataclasses import asdict

from sqlglot import exp

from kanon_duck.catalog.views import MaskedView, declared_model, find_view
from kanon_duck.errors import KanonError
from kanon_duck.privacy.check import class_sizes, released_measures
from kanon_duck.privacy.diversity import Measure, measure
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.release.classes import released_people
from kanon_duck.release.shown import refuse_unseen
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Check a release, over all its quasi-identifiers or a subset that an intruder may know."""
    view = find_view(call)
    release = read.integer(call.arguments, "release", view.release, 1)
    if release > view.release:
        raise KanonError(
            f"release is {release}, but masked view {view.name} has no release {release}: its last is {view.release}"
        )
    asked = read.columns(call.arguments, "quasi_identifiers", view.quasi_identifiers, "quasi-identifier")
    if not asked and call.arguments.get("quasi_identifiers") is not None:
        raise KanonError("quasi_identifiers is an empty list: name some, or leave it out to ask about all")
    asked = asked or list(view.quasi_identifiers)
    cells = [cell for name in asked for cell in view.cells(name)]
    model = declared_model(call.database, view, release)
    if model.unit is None:
        rows = _rows(call, view, release)
        sizes = class_sizes(call.database, rows, cells, model)
        measures = [Measure("k", None, model.k, sizes.smallest, sizes.violating_rows)]
        measures += released_measures(call.database, rows, cells, model)
    else:
        measures = _of_people(call, view, release, asked, model)
    return [{"release": release, **asdict(each), "passed": each.passed} for each in measures]


def _of_people(call: Call, view: MaskedView, release: int, asked: list[str], model: PrivacyModel) -> list[Measure]:
    """Where persons are counted: by the members, because readers do not see whom a row is about."""
    if release != view.release:
        raise KanonError(
            f"release is {release}, but unit is {model.unit}, and whom rows are about is known of the current release "
            f"{view.release} alone"
        )
    refuse_unseen(call, view)
    names = list(view.quasi_identifiers)
    cells = [f"quasi_identifier_{names.index(name)}" for name in asked]
    people = released_people(view.number)
    return measure(call.database, model, people, cells)


def _rows(call: Call, view: MaskedView, release: int) -> exp.Select:
    """The rows of a release, as readers get them: the current one from the masked view itself."""
    if release == view.release:
        refuse_unseen(call, view)
        return exp.select("*").from_(exp.table_(view.view, db=view.schema, catalog=call.catalog, quoted=True))
    rows = exp.func("kanon.as_of", exp.Literal.string(view.name), exp.Literal.number(release), dialect="duckdb")
    return exp.select("*").from_(exp.Table(this=rows))

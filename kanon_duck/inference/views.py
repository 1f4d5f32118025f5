"""Builds the series of one masked view, or of several over one source, for the procedures."""

from __future__ import annotations

from dataclasses import replace

from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.views import MaskedView, find_view, stored_settings, view_named
from kanon_duck.errors import KanonError
from kanon_duck.inference.bounds import LeastPossible
from kanon_duck.inference.own_history import names_of, read_names, read_stays, requirements, series_of_stays
from kanon_duck.inference.rows import Names
from kanon_duck.inference.series import Series
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.release.stays import has_history
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call


def read_views(call: Call, names: list[str]) -> tuple[Series, Names, list[LeastPossible]]:
    """Read the whole series of some masked views, and what their people must be left with.

    Releases of several views are one series: those of the first, then those of the next. What is required is the
    strictest that any of them declares; of one that derives from another, what the other does.

    Raises
    ------
    KanonError
        When the views are not over one source, do not release the same columns as they are, or know nobody again.
    """
    if not names:
        raise KanonError("view_name is missing: name a masked view, or a list of them")
    found: list[tuple[MaskedView, Settings]] = []
    for name in names:
        view = find_view(replace(call, arguments={"view_name": name}))
        found.append((view, stored_settings(call, view)[1]))
        refuse_strangers(view, found[-1][1])
    models = [settings.model for _, settings in found]
    if len(found) > 1:
        models = [_model_beside_others(call, view, settings) for view, settings in found]
    first_view, first = found[0]
    for view, settings in found[1:]:
        for what, one, other in (
            ("source", first.source.lower(), settings.source.lower()),
            ("key", first.key, settings.key),
            ("sensitive", list(first.sensitive), list(settings.sensitive)),
            ("keep", first.keep, settings.keep),
        ):
            if one != other:
                raise KanonError(
                    f"view_name names {first_view.name} and {view.name}, whose {what} are {read.shown(one)} and "
                    f"{read.shown(other)}: only views that agree in these are one series"
                )
    stays, written = [], []
    for view, settings in found:
        read_now = read_stays(call.database, view.number, settings, view.release)
        stays.append((view.release, read_now.columns))
        written.append((view.name, view.release, read_names(call.database, view.number, settings, read_now.table)))
    known = series_of_stays([*first.sensitive, *first.keep], stays)
    strictest = replace(
        first.model,
        k=max(model.k for model in models),
        l=max(max(model.l or 0, model.p or 0) for model in models) or None,
    )
    return (
        known.series,
        names_of(known, written),
        requirements(strictest, known.codes, all(settings.secure for _, settings in found)),
    )


def _model_beside_others(call: Call, view: MaskedView, settings: Settings) -> PrivacyModel:
    """What is required where others are seen beside a view: of a derived one, what its parent keeps."""
    if view.derive_from is None:
        return settings.model
    return stored_settings(call, view_named(call, view.derive_from))[1].model


def refuse_strangers(view: MaskedView, settings: Settings) -> None:
    """Only people who can be known again have a history.

    Raises
    ------
    KanonError
        When the view has no key, or rows that are about units.
    """
    if not has_history(settings):
        what = "has a unit, of which several rows tell" if settings.key else "has no key"
        raise KanonError(
            f"masked view {view.name} {what}: its people cannot be followed from release to release; "
            "kanon.audit takes releases as tables"
        )

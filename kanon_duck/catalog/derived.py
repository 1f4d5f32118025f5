"""Reads the options of a masked view that is derived from another, whose classes it unites."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kanon_duck.catalog.settings import Settings, declared, read_settings, view_parts
from kanon_duck.catalog.views import MaskedView, find_view, stored_settings, with_parent
from kanon_duck.errors import KanonError
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call

OF_ITS_OWN = ("view_name", "derive_from", "k", "l", "p")
"""What a derived view has of its own."""

OF_THE_PARENT = ("source", "key", "quasi_identifiers", "sensitive", "keep")
"""What may be named again, as the parent has it."""


@dataclass(frozen=True)
class Derivation:
    """A masked view that is to be derived from another.

    Attributes
    ----------
    call : Call
        Its arguments are what was typed, with names as the catalog lists them.
    settings : Settings
    parent : MaskedView
    parent_call : Call
        The one that the parent's settings were read from.
    parent_settings : Settings
    """

    call: Call
    settings: Settings
    parent: MaskedView
    parent_call: Call
    parent_settings: Settings


def read_derivation(call: Call) -> Derivation:
    """Read the options of create_masked_view with ``derive_from``.

    Raises
    ------
    KanonError
        For an option that is not its own, or another than the parent's, or a bound below the parent's.
    """
    typed = {name: value for name, value in call.arguments.items() if value is not None}
    parent = find_view(call, "derive_from")
    if not parent.secure:
        raise KanonError(
            f"derive_from names {parent.name}, which is not secure: only certified classes can be united safely"
        )
    if parent.derive_from is not None:
        raise KanonError(
            f"derive_from names {parent.name}, which is derived itself: name {parent.derive_from}, its parent"
        )
    if typed.get("secure") is True:
        del typed["secure"]
    for name in typed:
        if name not in OF_ITS_OWN + OF_THE_PARENT:
            raise KanonError(
                f"{name} is {read.shown(typed[name])}, but a view that derives from {parent.name} has what that has: "
                "leave it out"
            )
    if "k" not in typed:
        raise KanonError("k is missing: it is the least number of rows of a class, as in k => 20")
    view = view_parts(call, read.text(call.arguments, "view_name"))
    typed |= {"view_name": names.display(view), "derive_from": parent.name}
    parent_call, parent_settings = stored_settings(call, parent)
    if "source" in typed:
        typed["source"] = read.text(typed, "source")
        if typed["source"].lower() != parent_settings.source.lower():
            raise KanonError(_other("source", typed["source"], parent_settings.source, parent))
        del typed["source"]
    settings = read_settings(with_parent(call, typed))
    _refuse_other_columns(settings, parent, parent_settings)
    _refuse_lower_bounds(settings, parent, parent_settings)
    return Derivation(replace(call, arguments=typed), settings, parent, parent_call, parent_settings)


def _refuse_other_columns(settings: Settings, parent: MaskedView, of_parent: Settings) -> None:
    """A derived view shows the columns of its parent, generalized by the same hierarchies."""
    made_with = [replace(each, fixed_domain=None, fixed_bulk=None) for each in of_parent.quasi_identifiers]
    for argument, own, other in (
        ("key", settings.key, of_parent.key),
        ("quasi_identifiers", declared(settings.quasi_identifiers), declared(made_with)),
        ("sensitive", settings.sensitive, of_parent.sensitive),
        ("keep", settings.keep, of_parent.keep),
    ):
        if own != other:
            raise KanonError(_other(argument, own, other, parent))


def _other(argument: str, own: object, other: object, parent: MaskedView) -> str:
    return (
        f"{argument} is {read.shown(own)}, and {parent.name} has {read.shown(other)}: a derived view shows what its "
        "parent shows; leave it out"
    )


def _refuse_lower_bounds(settings: Settings, parent: MaskedView, of_parent: Settings) -> None:
    """Classes of a derived view are no smaller than those of its parent, and no less diverse."""
    least = max(of_parent.model.l or 0, of_parent.model.p or 0)
    for argument, own, bound in (
        ("k", settings.model.k, of_parent.model.k),
        ("l", max(settings.model.l or 0, settings.model.p or 0), least),
    ):
        if own < bound:
            raise KanonError(
                f"{argument} is {own}, but {parent.name} has {bound}, and a union of its classes has at least as much: "
                f"name {bound} or more"
            )

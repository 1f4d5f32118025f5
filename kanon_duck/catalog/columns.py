"""Names of the columns of private and released tables, all worked out here.

Columns of private tables are named by role and place (``key_0``, ``quasi_identifier_0``, ...), whatever the source
calls them. Released columns have the source's names.
"""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.column_names import WEIGHT, cells
from kanon_duck.catalog.settings import Settings


def columns_by_role(settings: Settings) -> list[exp.Expr]:
    """The source's columns in use, under the names they have in private tables."""
    return [
        exp.column(name, quoted=True).as_(f"{role}_{place}")
        for role, names in settings.roles().items()
        for place, name in enumerate(names)
    ]


def private_names(settings: Settings, *roles: str) -> list[str]:
    """Names in private tables of the columns of some roles."""
    return [f"{role}_{place}" for role in roles for place in range(len(settings.roles()[role]))]


def released_columns(settings: Settings) -> list[tuple[str, exp.Column]]:
    """Names of the released columns, in the source's order, and the private columns they come from."""
    quasi = {each.name: (place, each) for place, each in enumerate(settings.quasi_identifiers)}
    others = {
        name: f"{role}_{place}"
        for role, columns in (("sensitive", list(settings.sensitive)), ("kept", settings.keep))
        for place, name in enumerate(columns)
    }
    columns: list[tuple[str, exp.Column]] = []
    for name in settings.columns:
        if name in quasi:
            place, declared = quasi[name]
            numeric = declared.hierarchy is None
            private = cells(f"quasi_identifier_{place}", numeric)
            columns += [
                (shown, exp.column(kept, "classes")) for shown, kept in zip(cells(name, numeric), private, strict=True)
            ]
        elif name in others:
            columns.append((name, exp.column(others[name], "members")))
    if settings.has_counterfeits:
        columns.append((WEIGHT, exp.column("weight", "classes")))
    return columns

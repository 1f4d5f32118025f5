"""Which changes of a column's type matter: a wider type that readers do not see changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kanon_duck.catalog.settings import Settings

BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63} | {
    "UTINYINT": 8,
    "USMALLINT": 16,
    "UINTEGER": 32,
    "UBIGINT": 64,
}
"""Integer types, and the bits that a number without its sign may have."""

_LABEL = re.compile(r"'(?:[^']|'')*'")


def first_other_type(known: Mapping[str, str], settings: Settings) -> str | None:
    """What is said of the first column whose type is another one than it was, None where all are as good as before.

    Parameters
    ----------
    known : mapping
        Types that the columns in use had.
    settings : Settings
        Read against the source as it is now.
    """
    released = {*settings.sensitive, *settings.keep}
    hidden = {*settings.key, *(each.name for each in settings.quasi_identifiers if each.hierarchy is not None)}
    hidden.discard(settings.model.unit or "")
    for name, before in known.items():
        now = settings.columns[name]
        accepted = now == before or (
            name in hidden
            and (_holds_integers(before, now) or _holds_labels(before, now))
            or name in released
            and _holds_labels(before, now)
        )
        if not accepted:
            return f"source: column {name} was {before} and is {now} now"
    return None


def _holds_integers(before: str, now: str) -> bool:
    """Whether every value of an integer type is one of another."""
    if before not in BITS or now not in BITS:
        return False
    return BITS[before] < BITS[now] and (before.startswith("U") or not now.startswith("U"))


def _holds_labels(before: str, now: str) -> bool:
    """Whether every value of an ENUM is one of another."""
    both_enums = before.startswith("ENUM(") and now.startswith("ENUM(") and not (before + now).count("]")
    return both_enums and set(_LABEL.findall(before)) <= set(_LABEL.findall(now))

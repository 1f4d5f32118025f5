"""Names of released columns that are made from the source's, and of those that readers do not see."""

from __future__ import annotations

CLASS, FROM_RELEASE, TO_RELEASE = "kanon_class", "kanon_from_release", "kanon_to_release"
"""Columns of released rows that readers do not see: reader class, first release, first release without them."""

WEIGHT = "weight"
"""Released column of views with counterfeits: people of the class / rows of the class."""


def cells(name: str, numeric: bool) -> list[str]:
    """Columns that show a quasi-identifier: a numeric one its text and both bounds, a categorical one its label."""
    return [name, f"{name}_min", f"{name}_max"] if numeric else [name]

"""Parses and writes names of tables and columns: dotted, and quoted where necessary."""

from __future__ import annotations

import re

from sqlglot import exp

from kanon_duck.errors import KanonError

_PART = r'"(?:[^"]|"")+"|[^".]+'
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")


def parse(text: str) -> tuple[str, ...]:
    """Split a dotted name into its parts.

    Dots outside double quotes separate the parts. A part is either quoted as a whole (a doubled quote inside
    stands for one) or contains no quote. A text of any other form is a single name as it stands. So every text means
    exactly one name.

    Returns
    -------
    tuple of str
        At least one part.
    """
    if not _NAME.fullmatch(text):
        return (text,)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, text))


def display(parts: tuple[str, ...]) -> str:
    """Write a name so that `parse` returns its parts; a part is quoted only if necessary."""
    if len(parts) == 1 and parse(parts[0]) == parts:
        return parts[0]
    return ".".join('"' + part.replace('"', '""') + '"' if "." in part or '"' in part else part for part in parts)


def table(parts: tuple[str, ...]) -> exp.Table:
    """Refer to a table by (table), (schema, table) or (catalog, schema, table), always quoted.

    Raises
    ------
    KanonError
        When there are more than three parts.
    """
    if len(parts) > 3:
        raise KanonError(
            f"the name {display(parts)} has {len(parts)} parts; write at most catalog.schema.table, "
            "with double quotes around a part that contains a dot"
        )
    places = ("this", "db", "catalog")
    return exp.Table(
        **{place: exp.to_identifier(part, quoted=True) for place, part in zip(places, reversed(parts), strict=False)}
    )

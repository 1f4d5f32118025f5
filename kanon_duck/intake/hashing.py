"""SQL for the hashes by which a refresh recognizes people and their values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kanon_duck.catalog.columns import private_names
from kanon_duck.catalog.settings import Settings

NO_HASH = "CAST(0 AS UBIGINT)"

SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
"""Types that are hashed as a BIGINT; numbers that have no sign have its hashes already."""

MISHASHED = ("HUGEINT", "UHUGEINT", "INTERVAL")
"""Types of which DuckDB gives different values the same hash: 0 and -1, or a month and a day."""

TEXTS = ("VARCHAR", "JSON")

LONGEST_DECIMAL = 18
"""Digits of the longest decimals that are not among them."""

NESTED = ("STRUCT", "MAP", "UNION", "VARIANT")
"""How the names of types begin whose values hold others; those of lists and arrays end in ]."""


def typed_columns(settings: Settings, *roles: str) -> list[tuple[str, str]]:
    """Names in private tables of the columns of some roles, and their types."""
    types = [settings.columns[name] for role in roles for name in settings.roles()[role]]
    return list(zip(private_names(settings, *roles), types, strict=True))


def hash_of(columns: Sequence[tuple[str, str]]) -> str:
    """SQL for the hash of columns, given with their types, by DuckDB's own function whatever macros the caller has.

    That function gives different lists and structs the same hash, an empty list and NULL among them. So values that
    hold others take part with their texts as well. Values of some long types take part as texts alone.

    It also gives texts the same hash that differ only in the last bytes of words of eight: 1,296 such texts had 256
    hashes. So longer texts are hashed with a copy behind them, in which these bytes stand in the middle of words.

    Guarantee: a value keeps its hash when its column gets a wider type (see `kanon_duck.catalog.column_types`).
    DuckDB's own would not: it takes an ENUM's place in its list, and bytes of negative numbers.
    """
    taken = [_as_hashed(column, kind) for column, kind in columns]
    texts = [
        _twice(f"CAST({column} AS VARCHAR)")
        for column, kind in columns
        if kind.startswith(NESTED) or kind.endswith("]")
    ]
    return f"system.main.hash({', '.join(taken + texts)})" if columns else NO_HASH


def _as_hashed(column: str, kind: str) -> str:
    """SQL for a column as it is hashed."""
    if kind.startswith("ENUM(") and not kind.endswith("]"):
        return _twice(f"CAST({column} AS VARCHAR)")
    digits = re.fullmatch(r"DECIMAL\((\d+),\d+\)", kind)
    if kind in MISHASHED or (digits is not None and int(digits[1]) > LONGEST_DECIMAL):
        return _twice(f"CAST({column} AS VARCHAR)")
    if kind in TEXTS:
        return _twice(column)
    if kind == "BLOB":
        return _twice(f"system.main.hex({column})")
    return f"CAST({column} AS BIGINT)" if kind in SIGNED else column


def _twice(text: str) -> str:
    """SQL for a text that differs from others also by a copy, which begins in the middle of a word of eight bytes."""
    length = f"system.main.strlen({text})"
    between = f"system.main.repeat('#', (12 - {length} % 8) % 8)"
    return f"CASE WHEN {length} <= 8 THEN {text} ELSE {text} || {between} || {text} END"


def person(settings: Settings) -> str:
    """SQL for the number of a person, which is the same in all releases: of the key, and what is released as it is.

    Guarantee: in other databases it is another. Nobody who has not read this one can tell whose number it is, not even
    by trying all keys.
    """
    number = hash_of(typed_columns(settings, "key", "sensitive", "kept"))
    return f"system.main.hash((SELECT salt FROM kanon_private.salt), {number})"


def tuple_hash(settings: Settings) -> str:
    """SQL for the hash of all that is released of a row as it is."""
    return hash_of(typed_columns(settings, "sensitive", "kept"))

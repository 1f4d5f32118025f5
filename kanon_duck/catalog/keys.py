"""The key of one person, as it is typed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kanon_duck.catalog.views import MaskedView
from kanon_duck.errors import KanonError
from kanon_duck.runtime.arguments import shown


def read_key(view: MaskedView, given: Any) -> list[str]:
    """The typed key as one text per key column; several columns are typed as a struct.

    Raises
    ------
    KanonError
        When the masked view has no key, or another one.
    """
    if not view.key:
        raise KanonError(f"masked view {view.name} has no key: its rows cannot be told apart")
    if given is None:
        raise KanonError("key is missing: name the row's key, as in key => 4711")
    if not isinstance(given, dict):
        if len(view.key) > 1:
            example = ", ".join(f"'{name}': ..." for name in view.key)
            raise KanonError(f"key is {shown(given)}, but the key has several columns: give {{{example}}}")
        return [_text(given)]
    spelled = {name.lower(): value for name, value in given.items()}
    missing = [name for name in view.key if name.lower() not in spelled]
    if missing or len(spelled) > len(view.key):
        raise KanonError(f"key is {shown(given)}: its columns are {', '.join(view.key)}")
    return [_text(spelled[name.lower()]) for name in view.key]


def _text(value: Any) -> str:
    """A key value as DuckDB writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if isinstance(value, Decimal) else str(value)

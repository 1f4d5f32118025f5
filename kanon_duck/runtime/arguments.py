"""Reads the arguments of a procedure: each function returns one of them or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from kanon_duck.errors import KanonError

Arguments = Mapping[str, Any]


def shown(value: Any) -> str:
    """A value as SQL writes it, for messages; long values are cut."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "NULL"
        case str():
            written = "'" + value.replace("'", "''") + "'"
        case list():
            written = "[" + ", ".join(map(shown, value)) + "]"
        case dict():
            written = "{" + ", ".join(f"'{name}': {shown(each)}" for name, each in value.items()) + "}"
        case _:
            written = str(value)
    written = " ".join(written.split())
    return written if len(written) <= 200 else written[:199] + "…"


def text(arguments: Arguments, name: str) -> str:
    """A required text."""
    value = arguments.get(name)
    if value is None:
        raise KanonError(f"{name} is missing: name it, as in {name} => '...'")
    if not isinstance(value, str):
        raise KanonError(f"{name} is {shown(value)}: it must be a text")
    if not value.strip():
        raise KanonError(f"{name} is empty: name it, as in {name} => '...'")
    return value


def choice(arguments: Arguments, name: str, choices: Iterable[str], default: str, besides: str = "") -> str:
    """One of some words, in any case; ``besides`` says, in the message, what else is allowed."""
    value = arguments.get(name)
    if value is None:
        return default
    words = list(choices)
    for word in words:
        if isinstance(value, str) and value.strip().lower() == word:
            return word
    raise KanonError(f"{name} is {shown(value)}: it must be one of {', '.join(words)}{besides}")


def integer(arguments: Arguments, name: str, default: int | None, least: int) -> int:
    """A whole number."""
    value = arguments.get(name)
    if value is None:
        if default is None:
            raise KanonError(f"{name} is missing: name it, as in {name} => {max(least, 5)}")
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise KanonError(f"{name} is {shown(value)}: it must be a whole number of at least {least}")
    if value < least:
        raise KanonError(f"{name} is {value}: it must be at least {least}")
    if value >= 2**63:
        raise KanonError(f"{name} is {value}: it must be below {2**63}")
    return value


def share(arguments: Arguments, name: str, default: float) -> float:
    """A share of a whole: a number of at least 0 and below 1."""
    value = arguments.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value < 1:
        raise KanonError(f"{name} is {shown(value)}: it must be a number from 0 to below 1")
    return float(value)


def boolean(arguments: Arguments, name: str, default: bool) -> bool:
    """True or false."""
    value = arguments.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise KanonError(f"{name} is {shown(value)}: it must be true or false")
    return value


def names(arguments: Arguments, name: str) -> list[str]:
    """A list of names; a single text is a list of one, and a missing argument is an empty list."""
    value = arguments.get(name)
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
        raise KanonError(f"{name} is {shown(value)}: it must be a column name or a list of column names")
    return values


def columns(arguments: Arguments, name: str, known: Iterable[str], what: str) -> list[str]:
    """A list of names as `names` reads it, as they are spelled among the known ones; none stands in it twice."""
    candidates = list(known)
    found: list[str] = []
    for each in names(arguments, name):
        column = one_of(name, each, candidates, what)
        if column in found:
            raise KanonError(f"{name} names {column} twice: name it once")
        found.append(column)
    return found


def mapping(arguments: Arguments, name: str) -> dict[str, Any]:
    """A structure {'name': value, ...}; a missing argument is an empty one."""
    value = arguments.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise KanonError(f"{name} is {shown(value)}: it must have the form {{'name': value}}")
    return value


def fold(name: str) -> str:
    """A name in lower case, for comparisons as DuckDB makes them: only ASCII letters change."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def one_of(argument: str, given: str, known: Iterable[str], what: str) -> str:
    """Find the known name that is meant, whatever its case.

    Raises
    ------
    KanonError
        When there is none; the message suggests the nearest one.
    """
    candidates = list(known)
    if given in candidates:
        return given
    folded = {fold(candidate): candidate for candidate in reversed(candidates)}
    if fold(given) in folded:
        return folded[fold(given)]
    near = get_close_matches(fold(given), folded, n=1)
    hint = f"did you mean {folded[near[0]]}" if near else f"there are {', '.join(candidates[:20]) or 'none'}"
    raise KanonError(f"{argument} names {shown(given)}, but there is no such {what}: {hint}")

"""What was meant by an option that a procedure does not have: DuckDB's own message lists all it has, and no more."""

from __future__ import annotations

import re
from difflib import get_close_matches

from sqlglot import TokenType

from kanon_duck.shell.calls import CLOSING, OPENING, opened_verb, tokens_of

_REFUSED = re.compile(r'Macro "?(\w+)"?\(\) does not support .*?Candidate macros:\s*(.*?)(?:\n\n|\Z)', re.DOTALL)
_PARAMETER = re.compile(r'[(,]\s*"?(\w+)"?\s*(?=:=|,|\))')


def told(statement: str, message: str) -> str | None:
    """What to say of options in a statement that the called procedure does not have, None of other errors.

    Parameters
    ----------
    statement : str
    message : str
        DuckDB's error.
    """
    found = _REFUSED.search(message)
    if found is None:
        return None
    verb, candidates = found[1], found[2]
    known = dict.fromkeys(_PARAMETER.findall(candidates))
    unknown = [name for name in _named_arguments(statement, verb) if name.lower() not in known]
    if not unknown:
        return None
    return "\n".join(f"kanon.{verb} has no option {name}: {_meant(name, list(known))}" for name in unknown)


def _meant(name: str, known: list[str]) -> str:
    """The option that is nearest to a name, or all that there are."""
    near = get_close_matches(name.lower(), known, n=1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"


def _named_arguments(statement: str, verb: str) -> list[str]:
    """Names of the arguments of a call of ours, as typed."""
    tokens = tokens_of(statement)
    names, depth = [], 0
    for place, token in enumerate(tokens):
        if depth == 0:
            depth = int(opened_verb(tokens, place) == verb.lower())
        elif token.token_type in OPENING:
            depth += 1
        elif token.token_type in CLOSING:
            depth -= 1
        elif depth == 1 and token.token_type in (TokenType.FARROW, TokenType.COLON_EQ):
            names.append(tokens[place - 1].text)
    return names

"""What was meant by an option that a procedure does not have: DuckDB's own message lists all it has, and no more."""

from __future__ import annotations

import re
from difflib import get_close_matches

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import TokenError

_REFUSED = re.compile(r'Macro "?(\w+)"?\(\) does not support .*?Candidate macros:\s*(.*?)(?:\n\n|\Z)', re.DOTALL)
_CALL = re.compile(r"\bCALL\b(?=\s+kanon\b)", re.IGNORECASE)
_PARAMETER = re.compile(r'[(,]\s*"?(\w+)"?\s*(?=:=|,|\))')

OPENING = (TokenType.L_PAREN, TokenType.L_BRACE, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACE, TokenType.R_BRACKET)


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
    try:
        tokens = tokenize(_CALL.sub("FROM", statement), read="duckdb")  # sqlglot does not look into CALL
    except TokenError:
        return []
    names, depth = [], 0
    for place, token in enumerate(tokens):
        if depth == 0:
            depth = int(_opens(tokens, place, verb))
        elif token.token_type in OPENING:
            depth += 1
        elif token.token_type in CLOSING:
            depth -= 1
        elif depth == 1 and token.token_type in (TokenType.FARROW, TokenType.COLON_EQ):
            names.append(tokens[place - 1].text)
    return names


def _opens(tokens: list[Token], place: int, verb: str) -> bool:
    """Whether a token is the parenthesis after ``kanon.<verb>``."""
    before = [token.text.lower() for token in tokens[max(place - 3, 0) : place]]
    return tokens[place].token_type == TokenType.L_PAREN and before == ["kanon", ".", verb.lower()]

"""Finds the calls of procedures in a statement, also in one that is not finished."""

from __future__ import annotations

import re

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import TokenError

_CALL = re.compile(r"\bCALL\b(?=\s+kanon\b)", re.IGNORECASE)

OPENING = (TokenType.L_PAREN, TokenType.L_BRACE, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACE, TokenType.R_BRACKET)


def tokens_of(statement: str) -> list[Token]:
    """The tokens of a statement, of its calls too; none if it ends inside a string, a quoted name or a comment."""
    try:
        return tokenize(_CALL.sub("FROM", statement), read="duckdb")  # sqlglot does not look into CALL
    except TokenError:
        return []


def opened_verb(tokens: list[Token], place: int) -> str | None:
    """The verb, in lower case, if a token is the parenthesis after ``kanon.<verb>``."""
    if tokens[place].token_type != TokenType.L_PAREN or place < 3:
        return None
    schema, dot, verb = (token.text.lower() for token in tokens[place - 3 : place])
    return verb if (schema, dot) == ("kanon", ".") else None


def unfinished_call(statement: str) -> str | None:
    """The verb of the call among whose arguments, and not inside one of them, a statement ends."""
    tokens = tokens_of(statement)
    around: list[str | None] = []
    for place, token in enumerate(tokens):
        if token.token_type in OPENING:
            around.append(opened_verb(tokens, place))
        elif token.token_type in CLOSING and around:
            around.pop()
        elif token.token_type == TokenType.SEMICOLON:
            around.clear()
    return around[-1] if around else None

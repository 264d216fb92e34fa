"""The normal form of an expression: independent of blanks, comments and case.

Computed columns and accumulations are named by it, and a checkpoint holds these names. So it is made of the words of the text
alone, and no version of a parser changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from beamish.statement.text import Span, Text, Token, is_name, word_of

_NO_BLANK_BEFORE = ("COMMA", "R_PAREN", "R_BRACKET", "DOT", "L_BRACKET", "DCOLON")
_NO_BLANK_AFTER = ("L_PAREN", "L_BRACKET", "DOT", "DCOLON")
_OPERAND_FOLLOWS = """
    SELECT ALIAS FROM WHERE GROUP_BY HAVING COMMA DOT AND OR NOT EQ NEQ LT GT LTE GTE NULLSAFE_EQ PLUS DASH STAR SLASH DIV MOD DPIPE
    IS LIKE ILIKE RLIKE BETWEEN IN CASE WHEN THEN ELSE L_PAREN L_BRACKET
"""
_NO_FUNCTIONS = frozenset(_OPERAND_FOLLOWS.split())


def normal(text: Text, span: Span, owners: Collection[str] = ()) -> str:
    """The normal form.

    Args:
        text: the statement.
        span: the place of the expression.
        owners: names of the source, in lower case; they are left out before columns.
    """
    words = text.words(span)
    tokens = [token for at, token in enumerate(words) if not _is_owner(words, at, owners)]
    said = ""
    for at, token in enumerate(tokens):
        kind, before = token.token_type.name, tokens[at - 1] if at else None
        after = None if before is None else before.token_type.name
        called = kind == "L_PAREN" and before is not None and is_name(before) and after not in _NO_FUNCTIONS
        joined = kind in _NO_BLANK_BEFORE or called or after is None or after in _NO_BLANK_AFTER
        said += ("" if joined else " ") + _spelled(text, tokens, at)
    return said


def _is_owner(tokens: Sequence[Token], at: int, owners: Collection[str]) -> bool:
    """Whether a word is the name of the source before a column, or the dot after that."""
    if tokens[at].token_type.name == "DOT":
        return at > 0 and _is_owner(tokens, at - 1, owners)
    first = at == 0 or tokens[at - 1].token_type.name != "DOT"
    followed = at + 1 < len(tokens) and tokens[at + 1].token_type.name == "DOT"
    return first and followed and is_name(tokens[at]) and tokens[at].text.lower() in owners


def _spelled(text: Text, tokens: Sequence[Token], at: int) -> str:
    token, kind = tokens[at], tokens[at].token_type.name
    if kind == "IDENTIFIER" and token.text.isidentifier():
        return str(token.text).lower()
    word = word_of(token)
    function = at + 1 < len(tokens) and tokens[at + 1].token_type.name == "L_PAREN"
    if not word:
        return text[Span(token.start, token.end + 1)]
    return word.lower() if kind == "VAR" and not function else word

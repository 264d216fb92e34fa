"""The normal form of an expression: one spelling for all that differ in blanks, comments and case.

Columns of the pipeline that are no columns of the rows are called by it, and what a checkpoint holds is called by these names.
So it is made of the words of the text alone, and no version of a parser changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from beamish.statement.text import Text
from beamish.statement.tokens import OPERAND_FOLLOWS, Token

_NO_BLANK_BEFORE = ("COMMA", "R_PAREN", "R_BRACKET", "DOT", "L_BRACKET", "DCOLON")
_NO_BLANK_AFTER = ("L_PAREN", "L_BRACKET", "DOT", "DCOLON")


def normal(text: Text, tokens: Sequence[Token], owners: Collection[str] = ()) -> str:
    """The normal form.

    Args:
        text: the statement.
        tokens: the words of the expression.
        owners: names by which columns may say whose they are, in lower case; they are left out.
    """
    tokens = [token for at, token in enumerate(tokens) if not _is_owner(tokens, at, owners)]
    said = ""
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        named = before is not None and before.is_name and before.kind not in OPERAND_FOLLOWS
        called = token.kind == "L_PAREN" and named
        joined = token.kind in _NO_BLANK_BEFORE or called or before is None or before.kind in _NO_BLANK_AFTER
        said += ("" if joined else " ") + _spelled(text, tokens, at)
    return said


def _is_owner(tokens: Sequence[Token], at: int, owners: Collection[str]) -> bool:
    """Whether a word is the name of the source before a column, or the dot after that."""
    if tokens[at].kind == "DOT":
        return at > 0 and _is_owner(tokens, at - 1, owners)
    first = at == 0 or tokens[at - 1].kind != "DOT"
    followed = at + 1 < len(tokens) and tokens[at + 1].kind == "DOT"
    return first and followed and tokens[at].is_name and tokens[at].text.lower() in owners


def _spelled(text: Text, tokens: Sequence[Token], at: int) -> str:
    token = tokens[at]
    if token.kind == "IDENTIFIER":
        return token.text.lower() if token.text.isidentifier() else text[token.span]
    if not token.word:
        return text[token.span]
    function = at + 1 < len(tokens) and tokens[at + 1].kind == "L_PAREN"
    return token.word.lower() if token.kind == "VAR" and not function else token.word

"""String literals as Spark reads them, with their values; and what draws both."""

from __future__ import annotations

from hypothesis import strategies as st

LITERALS = {
    "'O''Brien'": "O'Brien",
    '"say ""no"""': 'say "no"',
    "'\"\"'": '""',
    "\"it''s\"": "it''s",
    "''": "",
    "''''": "'",
    "''''''": "''",
    r"'\''''": "''",
    "'O' 'Brien'": "OBrien",
    "'O'\n  -- a comment\n  \"Brien\"": "OBrien",
    r"'it\'s'": "it's",
    r"'a\\'": "a\\",
    r"'\q\é\2\"'": 'qé2"',
    r"'\b\t\r\n\0\Z'": "\b\t\r\n\0\x1a",
    r"'\%\_%_'": r"\%\_%_",
    r"'\u00e9\U0001F600\ud83d\ude00\U00000041'": "é😀😀A",
    r"'\101\1011\08\177\377\12'": "AA1\x008\x7f37712",
    r"'\u12\U1234\x41\f'": "u12U1234x41f",
    r"'\ud83d!\U00110000'": "?!??",
    "'\\\n\t'": "\n\t",
    r"r'a\n\'": "a\\n\\",
    "R\"x''y\"": "x''y",
}
"""Compared with Spark (tests/spark/test_statement_functions.py)."""

_NOT_ITSELF = frozenset("0bnrtZ%_uU1")
"""After a backslash these are other characters, or begin a number."""


def _spellings(character: str, quote: str) -> list[str]:
    code_point = ord(character)
    return [
        *([] if character in (quote, "\\") else [character]),
        *([quote * 2] if character == quote else []),
        *([] if character in _NOT_ITSELF else [f"\\{character}"]),
        *([f"\\{code_point:03o}"] if code_point < 0o200 else []),
        *([f"\\u{code_point:04x}"] if code_point < 0x10000 else []),
        f"\\U{code_point:08X}",
    ]


@st.composite
def literals(draw: st.DrawFn) -> tuple[str, str]:
    """A literal, of one part or more, and its value."""
    parts, value = [], ""
    for quote in draw(st.lists(st.sampled_from("'\""), min_size=1, max_size=2)):
        text = draw(st.text(st.sampled_from("OB'\"\\01bnuUZ%_;-/* \n\té😀\0`()"), max_size=6))
        parts.append(quote + "".join(draw(st.sampled_from(_spellings(one, quote))) for one in text) + quote)
        value += text
    return " ".join(parts), value

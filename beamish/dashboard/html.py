"""Markup from tags and text: text is escaped unless it is markup already."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Controls, marks that turn the direction of text, and halves of characters: shown as their codes."""
_VOID = frozenset({"meta", "link", "img", "input", "br"})


class Markup(str):
    """Text that is markup."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
"""Content of a tag: text, markup, a number, or several; None: nothing."""


def text(value: object) -> Markup:
    """Text as markup."""
    if isinstance(value, Markup):
        return value
    visible = _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))
    return Markup(escape(visible))


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """A tag.

    Args:
        name: its name.
        children: its content.
        attributes: with ``_`` for ``-``, and one at the end of a Python keyword (``class_``); True: without a value, None or False: omitted.
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{given}>" + ("" if name in _VOID else f"{joined(children)}</{name}>"))


def joined(children: Iterable[Child]) -> Markup:
    """Content, one after the other."""
    return Markup("".join(map(_child, children)))


def _child(child: Child) -> Markup:
    if child is None:
        return Markup()
    return text(child) if isinstance(child, (str, int)) else joined(child)

"""Values as HTML for notebooks: tables and text, with foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_TABLE = "border-collapse:collapse;text-align:left"
_CELL = "text-align:left;vertical-align:top;padding:2px 8px"


def html_table(head: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table.

    Args:
        head: the column names; empty: no head.
        rows: their cells, formatted by ``str``.
        caption: above it.
    """
    title = f'<caption style="{_CELL};caption-side:top"><b>{escape(caption)}</b></caption>' if caption else ""
    names = f"<thead><tr>{_cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f'<table style="{_TABLE}">{title}{names}<tbody>{body}</tbody></table>'


def html_code(text: str) -> str:
    """Text as code."""
    return f"<code>{escape(text)}</code>"


def html_text(text: str) -> str:
    """Text as paragraphs, separated by empty lines."""
    return "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n"))


def _cells(tag: str, cells: Sequence[Any]) -> str:
    return "".join(f'<{tag} style="{_CELL}">{escape(str(cell))}</{tag}>' for cell in cells)

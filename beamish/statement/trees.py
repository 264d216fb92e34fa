"""Expressions as sqlglot has them, and the place of each in the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from beamish.statement.text import Span

Tree = Any
"""An expression as sqlglot has it; its ``meta["span"]`` is its place."""


@attrs.frozen(eq=False)
class Call:
    """A call of an aggregate.

    Attributes:
        name: in upper case.
        span: its place.
        distinct: whether DISTINCT is set.
        args: its arguments.
    """

    name: str
    span: Span
    distinct: bool
    args: Sequence[Tree]


def span_of(tree: Tree) -> Span:
    """The place of an expression: from the first to the last place in it that is known."""
    if "span" in tree.meta:
        found: Span = tree.meta["span"]
        return found
    spans = [span_of(child) for child in tree.iter_expressions()]
    spans += [Span(tree.meta["start"], tree.meta["end"] + 1)] if "start" in tree.meta else []
    known = [span for span in spans if span.end > 0]
    return Span(min(span.start for span in known), max(span.end for span in known)) if known else Span(0, 0)


def call_of(tree: Tree) -> Call | None:
    """The call of an aggregate that an expression is; None: it is another."""
    found: Call | None = tree.meta.get("call")
    return found

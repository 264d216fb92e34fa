"""The parts of a statement that was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from beamish.durations import Duration
from beamish.statement.trees import Tree
from beamish.windows import GlobalWindow, WindowOption

Kind = Literal["persistent", "push", "pull"]
Refinement = Literal["changes", "final"]


@attrs.frozen
class Name:
    """A name and its place."""

    text: str
    start: int


@attrs.frozen(eq=False)
class Item:
    """An item of the SELECT list: an expression, and its name; None: it has none."""

    tree: Tree
    alias: Name | None


@attrs.frozen
class Rows:
    """The source.

    Attributes:
        name: as FROM says, without the database.
        alias: the name by which columns may be qualified; the same without AS.
    """

    name: str
    alias: str


@attrs.frozen
class Windows:
    """The WINDOW clause.

    Attributes:
        option: the windows.
        grace: how late rows may come; None: not set.
        retention: how long results are asked to be kept; None: not set.
    """

    option: WindowOption = GlobalWindow()
    grace: Duration | None = None
    retention: Duration | None = None


@attrs.frozen
class Emit:
    """Which rows of a group are emitted, and when.

    Attributes:
        kind: persistent with CREATE TABLE, push with EMIT alone, else pull.
        refinement: every change, or the final row; a pull query gives final rows.
        retracting: whether RETRACTING is set.
        every: at most how often; None: not set.
    """

    kind: Kind
    refinement: Refinement
    retracting: bool = False
    every: Duration | None = None


@attrs.frozen(eq=False)
class Statement:
    """A statement that was read.

    Attributes:
        name: the name after CREATE TABLE; None without.
        properties: those under WITH.
        begins: the place of each clause.
        items: the SELECT list.
        rows: the source.
        windows: the windows.
        where: the condition on rows; None without.
        group_by: the expressions that make a group.
        having: the condition on panes; None without.
        emit: the emitted rows.
        end: the place of the last word.
    """

    name: str | None
    properties: Mapping[str, Any]
    begins: Mapping[str, int]
    items: Sequence[Item]
    rows: Rows
    windows: Windows
    where: Tree | None
    group_by: Sequence[Tree]
    having: Tree | None
    emit: Emit
    end: int

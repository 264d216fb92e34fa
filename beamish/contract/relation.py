"""What flows between stages: the rows of a source, or the panes of a stage."""

from __future__ import annotations

import enum
from typing import Any

import attrs
import pyarrow as pa

from beamish.kernels.formulas import Formula
from beamish.kernels.reserved import is_reserved
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption

PANE_COLUMNS = ("window", "pane", "timestamp", "dropped")
"""Columns of a stage's output beside keys and values."""


class Follows(enum.StrEnum):
    """How rows of one slot follow each other: what the next one makes of those before it."""

    ONCE = "once"
    """There is no next one."""
    RETRACTING = "retracting"
    """It comes when they have been taken back."""
    REPLACING = "replacing"
    """It stands for them, though nothing takes them back."""
    ADDING = "adding"
    """It adds to them."""
    SETTING = "setting"
    """It sets or deletes what they had set."""


@attrs.frozen
class Relation:
    """What a stage takes, or gives.

    Attributes:
        keys: by which columns the stage that takes it groups its rows; of what a stage gives, its key columns.
        event_time: the column of a source's rows that holds their event time; None for panes, whose time is their
            ``timestamp``.
        window: the windows that panes are in; None: they are in none, as a source's rows.
        retracts: whether panes are taken back.
        watermarks: the policies of the sources that it comes from.
        behind_us: how far past a pane's time the watermark may be when it comes out, where that alone decides; microseconds.
        has_timestamps: whether panes have a timestamp; not so in a window that never ends, without a combiner.
        at_window_ends: whether the timestamp of each pane is the last microsecond of its window.
        is_changelog: whether its rows set and delete slots, as ``changes()`` says, and are no panes of a window.
        slot: the columns that, with the window, say what a row of output is a row of; None: there are none, it is one of a bag.
        follows: how rows of a slot follow each other.
        schema: its columns with their types; None where no data is known yet.
        name: what the stage that takes it calls it, where it takes several; None otherwise.
        where: which rows of an input are taken, where its stage says nothing of it; None: all.
    """

    keys: tuple[Any, ...] = ()
    event_time: Any = None
    window: WindowOption | None = None
    retracts: bool = False
    watermarks: tuple[Watermark, ...] = ()
    behind_us: int = 0
    has_timestamps: bool = True
    at_window_ends: bool = False
    is_changelog: bool = False
    slot: tuple[Any, ...] | None = None
    follows: Follows = Follows.ONCE
    schema: pa.Schema | None = None
    name: str | None = None
    where: Formula | None = None

    @property
    def is_signed(self) -> bool:
        """Whether it is a source whose rows have a ``SIGN``, since some take others back."""
        return self.retracts and not self.is_panes

    @property
    def is_panes(self) -> bool:
        """Whether they are the panes of a stage."""
        return self.event_time is None

    @property
    def columns(self) -> pa.Schema:
        """The columns that a stage may name: of panes their keys and values, of rows all."""
        assert self.schema is not None  # noqa: S101 - asked only where there is data
        hidden = PANE_COLUMNS if self.is_panes else ()
        return pa.schema([field for field in self.schema if field.name not in hidden and not is_reserved(field.name)])

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of panes beside their keys."""
        return tuple(name for name in self.columns.names if name not in self.keys)

    @property
    def policy(self) -> Watermark:
        """How the watermark of the stage that takes it follows: a stage hands its own on, which simply rises."""
        return Watermark() if self.is_panes else self.watermarks[0]

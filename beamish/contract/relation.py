"""Relations between stages: the rows of a source, or the panes of a stage; and the identity of panes, as metadata of the column ``pane``.

The relational meaning of output rows, as metadata of the column ``pane``. So any DataFrame of panes can be read as a changelog, also after
it was written to a table that keeps column metadata.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.updates import PANE
from beamish.kernels.column_names import is_reserved
from beamish.kernels.expressions import Formula
from beamish.kernels.field_paths import path_of, with_fields, with_named
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption

PANE_COLUMNS = ("window", "pane", "timestamp", "dropped")
"""Columns of a stage's output besides keys and values."""


class SlotSemantics(enum.StrEnum):
    """How rows of one slot follow each other: the effect of a row on those before it."""

    ONCE = "once"
    """A slot has one row."""
    RETRACTING = "retracting"
    """The earlier rows are retracted first."""
    REPLACING = "replacing"
    """It replaces them, without a retraction."""
    ADDING = "adding"
    """It adds to them."""
    SETTING = "setting"
    """It sets or deletes their values."""


@attrs.frozen
class Relation:
    """An input or the output of a stage.

    Attributes:
        keys: the grouping columns of the consuming stage; for an output, its key columns.
        event_time: the event-time column of a source; None for panes, whose time is their ``timestamp``.
        window: the windows of panes; None: no windows, as for a source.
        retracts: whether panes may be retracted.
        watermarks: the policies of its sources.
        behind_us: how far past a pane's time the watermark may be when it is emitted, if bounded; microseconds.
        has_timestamps: whether panes have a timestamp; not in a global window without a combiner.
        at_window_ends: whether the timestamp of each pane is the last microsecond of its window.
        is_changelog: whether its rows are upserts and deletes as of ``changes()``, not panes of a window.
        slot: the columns that, with the window, identify an output row; None: bag semantics.
        follows: how rows of a slot follow each other.
        schema: its columns with their types; None before data is known.
        name: its name as one of several inputs; None otherwise.
        where: the condition of an input, unless its stage has one; None: all.
        key_sets: the sets of keys that rows are grouped by, of a source with several; empty: by all keys.
        shards_by: the positions of the keys that decide a row's shard; None: all.
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
    follows: SlotSemantics = SlotSemantics.ONCE
    schema: pa.Schema | None = None
    name: str | None = None
    where: Formula | None = None
    shards_by: tuple[int, ...] | None = None
    key_sets: tuple[tuple[str, ...], ...] = ()

    @property
    def totals(self) -> set[str]:
        """The key columns that are null in the rows of some key sets."""
        return {name for one in self.key_sets for name in one}

    @property
    def is_signed(self) -> bool:
        """Whether it is a source with a ``SIGN`` column, since some rows retract others."""
        return self.retracts and not self.is_panes

    @property
    def is_panes(self) -> bool:
        """Whether it is the output of a stage."""
        return self.event_time is None

    @cached_property
    def columns(self) -> pa.Schema:
        """The columns that a stage may name: keys and values of panes, all columns of a source."""
        assert self.schema is not None  # noqa: S101 - asked only where there is data
        hidden = PANE_COLUMNS if self.is_panes else ()
        return pa.schema([field for field in self.schema if field.name not in hidden and not is_reserved(field.name)])

    @cached_property
    def own_columns(self) -> pa.Schema:
        """The columns of a whole row: without nested fields that the stage names, unless they are keys."""
        return pa.schema([field for field in self.columns if path_of(field) is None or field.name in self.keys])

    def naming(self, names: Iterable[Any]) -> Relation:
        """The same with the nested fields among these names as columns, and among the keys."""
        assert self.schema is not None  # noqa: S101 - it is bound
        named = with_named(self.schema, self.columns, (*self.keys, *names), any_case=not self.is_panes)
        return attrs.evolve(self, schema=named)

    def with_fields(self, rows: pa.Table) -> pa.Table:
        """Its rows with the nested fields that the stage names."""
        assert self.schema is not None  # noqa: S101 - it is bound
        return with_fields(rows, self.schema)

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of panes besides their keys."""
        return tuple(name for name in self.columns.names if name not in self.keys)

    @property
    def policy(self) -> Watermark:
        """The watermark policies of the consuming stage; the watermark of an upstream stage is forwarded as it is."""
        return Watermark() if self.is_panes else self.watermarks[0]


FIELDS = (*(field.name for field in PANE if field.name not in ("kind", "change")), "timestamp")
"""Additional columns that can be derived from a pane."""
METADATA = "beamish"
"""The name of the entry."""


@attrs.frozen
class Ledger:
    """The relational meaning of output rows (docs/rules/panes.md#pane-change).

    Attributes:
        keys: the key columns.
        slot: the columns that, with the window, identify a row; None: bag semantics.
        follows: how rows of a slot follow each other.
        windowed: whether windows have bounds; not for a global window or rows without windows.
        merging: whether windows merge.
    """

    keys: tuple[str, ...]
    slot: tuple[str, ...] | None
    follows: SlotSemantics = attrs.field(converter=SlotSemantics)
    windowed: bool
    merging: bool

    @classmethod
    def of(cls, gives: Relation, *, final: bool = False) -> Ledger:
        """For the output of a stage; ``final``: in a batch, where each row is final."""
        window = gives.window
        return cls(
            tuple(map(str, gives.keys)),
            None if gives.slot is None else tuple(map(str, gives.slot)),
            SlotSemantics.ONCE if final else gives.follows,
            window is not None and not window.is_all_of_time,
            window is not None and window.merging,
        )

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Ledger | None:
        """From the metadata of a column; None: absent."""
        about = metadata.get(METADATA)
        if about is None:
            return None
        slot = about["slot"]
        return cls(
            tuple(about["keys"]),
            None if slot is None else tuple(slot),
            about["follows"],
            about["windowed"],
            about["merging"],
        )

    def renamed(self, names: Mapping[str, str]) -> Ledger:
        """For renamed columns; columns without a new name are gone."""
        keys = tuple(names[key] for key in self.keys if key in names)
        slot = (
            None if self.slot is None or not set(self.slot) <= names.keys() else tuple(names[key] for key in self.slot)
        )
        return attrs.evolve(self, keys=keys, slot=slot)

    @property
    def metadata(self) -> dict[str, Any]:
        """As metadata of a column."""
        return {METADATA: attrs.asdict(self)}

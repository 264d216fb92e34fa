"""The contract of a window part: one feature of window stages, in a file of its own.

A plan has the parts that its options ask for (``WindowPlan.parts``, in the order of planning.py); the engine knows none of them by name.
A method that a part does not override does nothing.

Laws:

1. Removing a part equals not declaring its option.
2. A part with nothing to do changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from beamish.contract.keys import KeyedWindows
from beamish.contract.stored import KeyedTable, Store
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.binding import BoundAccumulation
from beamish.triggers.trigger import WindowIndices

# Classes that know the parts.
Plan: TypeAlias = Any
Step: TypeAlias = Any
Bundle: TypeAlias = Any
Entries: TypeAlias = Any
Merge: TypeAlias = Any
Firing: TypeAlias = Any
Assign: TypeAlias = Callable[[Step, Bundle, Flags], Entries]
Add: TypeAlias = Callable[[Step, Bundle, Entries], WindowIndices]
Table: TypeAlias = Any


class WindowPart:
    """A feature of a window stage: as declared, or, once ``open``, of one shard.

    Attributes:
        columns: additional columns of the window table.
        layout_facts: metadata that determines segments or due times; if it differs, all segments are rewritten.
        accumulators: additional accumulators of each window.
        pools: additional Arrow columns per window, by the prefix of their names; ``<prefix>_at`` points to a window's row.
        companions: additional rows per window, any number (tables/working_table.py).
        by_key: whether ``segments`` partitions windows by key.
        reads_times: whether it needs the earliest or latest event time of slices.
        keeps_state: whether accumulators survive a firing that is not the last, under discarding too.
        stores: its state in words, appended to those about windows' values.
        waits_for_end: whether the last pane of a window may differ without new rows.
    """

    columns: Mapping[str, tuple[str, Any]] = {}
    layout_facts: Mapping[str, Any] = {}
    accumulators: tuple[BoundAccumulation, ...] = ()
    pools: Mapping[str, pa.Schema] = {}
    companions: Mapping[str, tuple[str, Any]] = {}
    by_key: bool = False
    reads_times: ClassVar[bool] = False
    keeps_state: ClassVar[bool] = False
    stores: str = ""
    waits_for_end: bool = False

    @classmethod
    def of(cls, plan: Plan) -> WindowPart | None:
        """The part for a plan; None: not needed."""
        raise NotImplementedError

    # Stored state

    def tables(self, plan: Plan) -> Iterator[KeyedTable]:
        """The tables that it stores beside the windows."""
        yield from ()

    def open(self, plan: Plan, store: Store, about: Mapping[str, Any]) -> WindowPart | None:
        """The part for a shard; None: nothing to do. ``about``: the shard's stored metadata (segments.py)."""
        return self

    def missing(self, watermark_us: int) -> Mapping[str, Any]:
        """The values of its columns in windows that were stored without them."""
        return {name: value for name, (_, value) in self.columns.items()}

    def noted(self) -> Mapping[str, Any]:
        """Additional metadata of the shard."""
        return {}

    def segments(self, span: int, end: Ints, keys: pa.Table, progress: int | Ints) -> Ints:
        """The segments of windows, if ``by_key``; ``span``: the number of ends per segment, ``progress``: see step.py."""
        raise NotImplementedError

    def save(self, watermark_us: int, reached: int) -> None:
        """Write its tables.

        Args:
            watermark_us: the forwarded watermark.
            reached: how far all windows have come (``Progress``).
        """

    @property
    def next_due_us(self) -> int | None:
        """The least forwarded watermark at which something in its tables is due; None: never."""
        return None

    # Arriving rows

    def receive(self, step: Step, payloads: Sequence[bytes]) -> Sequence[bytes]:
        """Take payloads that are not for windows; returns the others."""
        return payloads

    def prepare(self, step: Step, bundle: Bundle) -> None:
        """Add columns to arriving rows, before windows are assigned."""

    def assigning(self, assign: Assign) -> Assign:
        """Wrap the function that assigns rows to windows."""
        return assign

    def adding(self, add: Add) -> Add:
        """Wrap the function that adds entries to windows."""
        return add

    def admit_keys(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        """Drop rows for their key, before they are numbered; returns which of ``rows`` remain: bool, one per row."""
        return rows

    def admit_rows(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        """For count windows, drop rows before they are numbered; returns which of ``rows`` remain: bool, one per row."""
        return rows

    def admit(self, step: Step, bundle: Bundle, entries: Entries) -> Entries:
        """Drop entries, with a reason, before their windows are looked up; returns the others."""
        return entries

    def admit_to(
        self, step: Step, bundle: Bundle, entries: Entries, window: Ints, *, closed: Flags, held: Ints, of_held: Ints
    ) -> Flags | None:
        """Drop entries after their windows are looked up; returns which remain: bool, one per entry; None: all.

        Args:
            step, bundle, entries: n entries of a bundle.
            window: int64[n], a number for the window of each.
            closed: bool[n], whether that window is closed.
            held, of_held: the windows of the table that they may be in, and the number of each.
        """
        return None

    def admit_beside(
        self, step: Step, bundle: Bundle, entries: Entries, own: KeyedWindows, *, closed: Ints, windows: KeyedWindows
    ) -> Flags | None:
        """The same for closed windows, before merging; ``own``: the rows' own windows, ``windows``: the bounds of ``closed``."""
        return None

    def ordered(self, step: Step, groups: Groups, target: WindowIndices) -> Groups:
        """Renumber the groups of entries; ``target``: the window of each entry."""
        return groups

    def refused(
        self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices, *, state: pa.Table
    ) -> Flags | None:
        """Drop entries that the windows ``at`` cannot add, given their new accumulators; returns which; None: none."""
        return None

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        """Entries were added to the windows ``at``; ``groups``: of the entries, one per window."""

    def after_rows(self, step: Step, at: WindowIndices) -> None:
        """The windows ``at`` got rows and were evaluated."""

    def on_idle(self, keys: pa.Table) -> None:
        """Reset keys, as if they had no row yet."""

    # Windows

    def on_merge(self, step: Step, merge: Merge) -> None:
        """Windows have merged."""

    def on_fire(self, step: Step, firing: Firing) -> None:
        """Windows fire: decide which emit a pane (firing.py)."""

    def on_panes(self, step: Step, firing: Firing, at: WindowIndices) -> None:
        """The windows ``at``, of those that fire, emit panes, after rows added to ``firing`` here."""

    def after_fire(self, step: Step, firing: Firing) -> None:
        """Windows have fired."""

    def on_progress(self, step: Step, open_: Flags) -> Flags | None:
        """The watermark or rows advanced; returns which open windows of the table to evaluate; None: none."""
        return None

    def over_us(self, table: Table, at: WindowIndices) -> Ints | None:
        """The watermark at which windows expire before their end; None: not determined here."""
        return None

    def due_us(self, table: Table, at: WindowIndices) -> Ints | None:
        """The watermark at which something is due in windows; None: never."""
        return self.over_us(table, at)


class Progress(WindowPart):
    """The progress that windows are compared with: the watermark, or row numbers per group.

    A plan has one (``WindowPlan.progress``); ends, expiry and lateness of windows are compared with it.

    Attributes:
        by_watermark: whether it is the watermark.
        needs_clock: whether it needs the processing-time clock.
        why_not_preaggregated: why rows are not pre-aggregated; empty: they may be.
        working: columns of windows that are not stored.
    """

    by_watermark: ClassVar[bool] = True
    needs_clock: bool = False
    why_not_preaggregated: str = ""
    working: Mapping[str, tuple[str, Any]] = {}

    def open(self, plan: Plan, store: Store, about: Mapping[str, Any]) -> Progress:
        return self

    def begin_step(self, watermark_us: int) -> None:
        """A step begins at a watermark."""

    def begin_part(self) -> None:
        """A part of the step begins."""

    def of_windows(self, step: Step, at: WindowIndices) -> int | Ints:
        """The progress of windows; one number for all, or one each."""
        return step.watermark_us  # type: ignore[no-any-return]

    def before(self, step: Step, at: WindowIndices) -> int | Ints:
        """The same when the current part of the step began."""
        return step.watermark_before_us  # type: ignore[no-any-return]

    def of_rows(self, step: Step, bundle: Bundle, rows: Ints) -> int | Ints:
        """The same for the windows of rows of a bundle."""
        return step.watermark_us  # type: ignore[no-any-return]

    def of_all(self, watermark_us: int) -> int:
        """The progress of all windows."""
        return watermark_us

    def forwarded_us(self, watermark_us: int) -> int:
        """The watermark for the next stage, which also decides when what is stored beside windows expires."""
        return watermark_us

    def at_rest(self, plan: Plan, keys: pa.Table, watermark_us: int) -> int | Ints:
        """The progress of stored windows with these keys."""
        return watermark_us

    def windows_due_us(self, index: Mapping[str, Ints]) -> list[int]:
        """The watermarks at which windows are due, by the index of their segments."""
        return index["due_us"].tolist()  # type: ignore[no-any-return]

    def load_due(self, step: Step) -> bool:
        """Load the segments in which something is due at the watermark, if it moved; returns whether something may be due."""
        if step.watermark_us <= step.watermark_before_us and not step.state.changed.options:
            return False
        step.load(step.state.index["due_us"] <= step.watermark_us)
        return True

    def place(self, step: Step, bundle: Bundle) -> Flags:
        """Number or time rows, and drop those without; returns which remain: bool, one per row."""
        raise NotImplementedError

    def ask(self, step: Step, bundle: Bundle, came: WindowIndices) -> None:
        """Evaluate windows with new rows, and those whose end has been passed."""
        raise NotImplementedError

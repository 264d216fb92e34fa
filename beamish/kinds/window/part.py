"""The contract of a part: one feature of window stages, in one file, behind the same calls as all others.

A plan has the parts that its options ask for (``WindowPlan.parts``, in the order of planning.py); the engine knows none of them by name.
What a part does not define does nothing.

Laws:

1. A part that is removed is an option that was not declared.
2. A part that finds nothing to do changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from beamish.contract.keys import KeyedWindows
from beamish.contract.stored import KeyedTable, Store
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.window.binding import BoundAccumulation
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
    """A feature of a window stage: what is declared of it, or, once ``open``, the feature of one shard.

    Attributes:
        columns: stored beside each window.
        lies: metadata by which windows are cut into segments, or are due; if it differs, all segments are written anew.
        accumulators: beside those of the accumulations, in each window.
        pools: Arrow columns stored beside each window, by the prefix of their names; ``<prefix>_at`` points to a window's.
        companions: stored beside windows, any number for each (tables/working_table.py).
        by_key: whether windows are cut into segments by their keys, by ``segments``.
        reads_times: whether it asks for the earliest or the latest event time of slices of rows.
        keeps_state: whether a firing leaves windows their accumulators, unless it is the last, under discarding too.
        stores: what it stores, in words that follow those about windows' values.
        waits_for_end: whether the last pane of a window may have something new though no row is.
    """

    columns: Mapping[str, tuple[str, Any]] = {}
    lies: Mapping[str, Any] = {}
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
        """The part of a plan; None: nothing asks for it."""
        raise NotImplementedError

    # What is stored

    def tables(self, plan: Plan) -> Iterator[KeyedTable]:
        """The tables that it stores beside the windows."""
        yield from ()

    def open(self, plan: Plan, store: Store, about: Mapping[str, Any]) -> WindowPart | None:
        """The part of a shard; None: there is nothing to do. ``about``: the metadata that the shard stored (segments.py)."""
        return self

    def missing(self, watermark_us: int) -> Mapping[str, Any]:
        """The values of its columns in windows that were stored without them."""
        return {name: value for name, (_, value) in self.columns.items()}

    def noted(self) -> Mapping[str, Any]:
        """Further metadata of the shard."""
        return {}

    def segments(self, span: int, end: Ints, keys: pa.Table, progress: int | Ints) -> Ints:
        """The segments of windows, where it says them; ``span``: how many ends one has, ``progress``: see step.py."""
        raise NotImplementedError

    def save(self, watermark_us: int, reached: int) -> None:
        """Write its tables; ``reached``: how far all windows have come (``Progress``)."""

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something in its tables is due; None: nothing is."""
        return None

    # Rows that come

    def receive(self, step: Step, payloads: Sequence[bytes]) -> Sequence[bytes]:
        """Take payloads that are not for windows; returns the others."""
        return payloads

    def prepare(self, step: Step, bundle: Bundle) -> None:
        """Add columns to rows that came, before they have windows."""

    def assigning(self, assign: Assign) -> Assign:
        """Another way to put rows into windows of their own, around the one that is there."""
        return assign

    def adding(self, add: Add) -> Add:
        """Another way to add entries to windows, around the one that is there."""
        return add

    def admit_rows(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        """Drop rows before they are given numbers, where windows are of rows: bool, one per row, which of ``rows`` are left."""
        return rows

    def admit(self, step: Step, bundle: Bundle, entries: Entries) -> Entries:
        """Drop entries, with a reason, before their windows are looked for; returns the others."""
        return entries

    def admit_to(
        self, step: Step, bundle: Bundle, entries: Entries, window: Ints, *, closed: Flags, held: Ints, of_held: Ints
    ) -> Flags | None:
        """Drop entries whose windows were found. Returns which are left: bool, one per entry; None: all.

        Args:
            step, bundle, entries: n entries of a bundle.
            window: int64[n], a number for the window of each.
            closed: bool[n], whether that takes no more rows.
            held, of_held: the windows of the table that they may be in, and the number of each.
        """
        return None

    def admit_beside(
        self, step: Step, bundle: Bundle, entries: Entries, own: KeyedWindows, *, closed: Ints, windows: KeyedWindows
    ) -> Flags | None:
        """The same, before they merge, with closed windows; ``own``: those of the rows alone, ``windows``: the bounds of ``closed``."""
        return None

    def ordered(self, step: Step, groups: Groups, target: WindowIndices) -> Groups:
        """The groups of entries, numbered otherwise; ``target``: per entry its window."""
        return groups

    def refused(
        self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices, *, state: pa.Table
    ) -> Flags | None:
        """Drop entries that the windows ``at`` cannot have, given the accumulators that they would make. Returns which; None: none."""
        return None

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        """Entries were added to the windows ``at``; ``groups``: of the entries, one per window."""

    def after_rows(self, step: Step, at: WindowIndices) -> None:
        """The windows ``at`` got a row and were asked."""

    def on_idle(self, keys: pa.Table) -> None:
        """Keys begin anew, as if they had no row yet."""

    # Windows

    def on_merge(self, step: Step, merge: Merge) -> None:
        """Windows have become one."""

    def on_fire(self, step: Step, firing: Firing) -> None:
        """Windows fire: say which give a pane (firing.py)."""

    def on_panes(self, step: Step, firing: Firing, at: WindowIndices) -> None:
        """The windows ``at``, of those that fire, give panes, after the rows that are added to ``firing`` here."""

    def after_fire(self, step: Step, firing: Firing) -> None:
        """Windows have fired."""

    def on_progress(self, step: Step, open_: Flags) -> Flags | None:
        """Progress was made: which windows of the table, of those that stay open, are asked; None: none."""
        return None

    def over_us(self, table: Table, at: WindowIndices) -> Ints | None:
        """The watermark at which windows are over, before their end; None: that is not for it to say."""
        return None

    def due_us(self, table: Table, at: WindowIndices) -> Ints | None:
        """The watermark at which something is due in windows; None: nothing is."""
        return self.over_us(table, at)


class Progress(WindowPart):
    """How far rows have come in what windows are cut of: the watermark, or a number for each group of rows.

    A plan has one (``WindowPlan.progress``); ends, expiry and lateness of windows are compared with it.

    Attributes:
        by_watermark: whether it is the watermark.
        working: columns of windows that are not stored.
    """

    by_watermark: ClassVar[bool] = True
    working: Mapping[str, tuple[str, Any]] = {}

    def open(self, plan: Plan, store: Store, about: Mapping[str, Any]) -> Progress:
        return self

    def begin_step(self, watermark_us: int) -> None:
        """A step begins at a watermark."""

    def begin_part(self) -> None:
        """A part of the step begins."""

    def of_windows(self, step: Step, at: WindowIndices) -> int | Ints:
        """How far windows have come; one number for all, or one each."""
        return step.watermark_us  # type: ignore[no-any-return]

    def before(self, step: Step, at: WindowIndices) -> int | Ints:
        """The same when the current part of the step began."""
        return step.watermark_before_us  # type: ignore[no-any-return]

    def of_rows(self, step: Step, bundle: Bundle, rows: Ints) -> int | Ints:
        """The same for the windows of rows of a bundle."""
        return step.watermark_us  # type: ignore[no-any-return]

    def of_all(self, watermark_us: int) -> int:
        """How far all windows have come."""
        return watermark_us

    def at_rest(self, plan: Plan, keys: pa.Table, watermark_us: int) -> int | Ints:
        """How far stored windows with these keys have come."""
        return watermark_us

    def windows_due_us(self, index: Mapping[str, Ints]) -> list[int]:
        """The watermarks at which windows are due, by the index of their segments."""
        return index["due_us"].tolist()  # type: ignore[no-any-return]

    def load_due(self, step: Step) -> bool:
        """Read the segments in which something is due at the watermark, if it moved; returns whether something may be."""
        if step.watermark_us <= step.watermark_before_us and not step.state.changed.options:
            return False
        step.load(step.state.index["due_us"] <= step.watermark_us)
        return True

    def place(self, step: Step, bundle: Bundle) -> Flags:
        """Place rows in what windows are cut of; drop those that are nowhere. Returns which are left: bool, one per row."""
        raise NotImplementedError

    def ask(self, step: Step, bundle: Bundle, came: WindowIndices) -> None:
        """Rows have come into windows: ask these, and those whose end they have passed."""
        raise NotImplementedError

"""The pipeline: a value that turns streams of rows into panes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar, overload

import attrs

from beamish.accumulations.base.accumulation import Accumulation
from beamish.addresses import printable
from beamish.checkpoint.of_script import ScriptStages
from beamish.checkpoint.questions import CheckpointState, ScriptState
from beamish.checkpoint.upgrade import check_next_run
from beamish.costs import YEAR, check_span, warn
from beamish.durations import Duration, DurationLike, not_negative, positive
from beamish.errors import OptionError, PipelineError, ScriptError
from beamish.explain import explain, explained
from beamish.flow import Flow, Input, Panes
from beamish.forms import FromChangelog, FromPanes, InputForm
from beamish.fusion.groups import fuse_of
from beamish.kernels.expressions import Formula, read_condition, read_formula
from beamish.kernels.identity import check_says_what_it_is
from beamish.kernels.key_sets import GROUPING_ID, KeySets
from beamish.kinds.changes.options import ChangesOptions
from beamish.kinds.changes.stage import ChangesStage
from beamish.kinds.deduplicate.option import read_deduplication
from beamish.kinds.deduplicate.stage import DeduplicateStage
from beamish.kinds.gaps.option import read_gap_filling
from beamish.kinds.gaps.stage import GapsStage
from beamish.kinds.over.options import Frame, OverOptions
from beamish.kinds.over.stage import OverStage
from beamish.kinds.refine import read_explode
from beamish.kinds.retime.stage import read_retime
from beamish.kinds.rolling.stage import rolling_or
from beamish.kinds.suppress.option import UNLIMITED, Buffer, Suppress, UntilTimeLimit, UntilWindowCloses
from beamish.kinds.suppress.stage import Suppressed
from beamish.kinds.upserts.options import read_upserts
from beamish.kinds.upserts.stage import UpsertsStage
from beamish.kinds.versions.options import read_versions
from beamish.kinds.versions.stage import VersionsStage
from beamish.kinds.window.plan.options import KeyWatermark, Retention, WindowOptions
from beamish.kinds.window.stage import WindowStage
from beamish.local import run
from beamish.markup import html_code, html_table, html_text
from beamish.modes import AccumulationMode, ClosingBehavior, OnTimeBehavior, RetractMerged, TimestampCombiner
from beamish.pane import Pane
from beamish.source import Source, key_by_call, where_call
from beamish.testing import TestStream
from beamish.triggers.trigger import Trigger, check_trigger
from beamish.versioned_table.table import compacted_topic
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption, check_window
from beamish.windows.rolling import Rolling
from beamish.windows.windowings import Windowings

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from pyspark.sql import Column, DataFrame, SparkSession

_T = TypeVar("_T")


def _check(where: str, value: Any, kind: type[_T], example: str) -> _T:
    if isinstance(value, type) and issubclass(value, kind):
        raise OptionError(f"{where}={value.__name__}: a class; write {value.__name__}(...)")
    if not isinstance(value, kind):
        raise OptionError(
            f"{where}={value!r}: must be {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}, such as {example}"
        )
    check_says_what_it_is(where, value)
    return value


_CALLS = {
    "derived": "with_columns",
    "deduplication": "deduplicate",
    "retention": "retain",
    "mode": "accumulation_mode",
    "on_time": "on_time_behavior",
    "closing": "closing_behavior",
    "combiner": "timestamp_combiner",
    "only_updated": "only_updated_panes",
    "late_rows": "allowed_lateness",
    "key_watermark": "watermark_per_key",
    "accumulations": "accumulate",
}
"""The calls that set an option of another name."""


def _late_event_time(call: str) -> str:
    return (
        f"{call} after then(...): the stage has taken its rows; call it in the pipeline that then() is given: first.then(bm.Pipeline().event_time(...)...); "
        "or leave it out: panes have a timestamp"
    )


def _late_key_sets(sets: KeySets) -> str:
    return (
        f"key_by({sets!r}) in a later stage: several key sets are of the rows of a source; give them to the first stage, and group its panes by "
        "their key columns, grouping_id among them"
    )


def _check_column(where: str, value: Any) -> Any:
    if (isinstance(value, str) and value) or type(value).__module__.startswith("pyspark."):
        return value
    raise OptionError(f"{where}={value!r}: must be the name of a column (on Spark also a Column expression)")


def _check_flow(_: Any, __: Any, flow: Any) -> None:
    if not isinstance(flow, Flow):
        raise OptionError(
            f"Pipeline({type(flow).__name__}): Pipeline() takes no argument, and transform takes a pipeline, not the class: df.transform(bm.Pipeline().event_time(...)...)"
        )


@attrs.frozen(repr=False)
class Pipeline:
    """How streams of rows become panes: windows, trigger, accumulations, accumulation mode.

    ``bm.merge(...)`` creates one with several inputs, ``first.then(second)`` one with several stages; further calls configure the
    last stage.

    Each call returns a new pipeline; pipelines are immutable. Calling a method again replaces the earlier setting;
    ``accumulate``, ``where``, ``having`` and ``with_columns`` add to it. The same value is applied to a streaming or batch
    DataFrame (``df.transform(pipeline)``) and to a scripted test stream without Spark (``pipeline.run(script)``).

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count
        >>> plays = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
        ...     .key_by("team")
        ...     .window(bm.FixedWindows("2 minutes"))
        ...     .accumulate(plays=Count())
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": 30, "team": "red"}]).advance_watermark_to_infinity()
        >>> [pane.values for pane in plays.run(script)]
        [{'plays': 1}]
    """

    flow: Flow = attrs.field(default=Flow(WindowStage(), (Source(),)), validator=_check_flow)

    def _with(self, **changes: Any) -> Pipeline:
        option = next(iter(changes))
        stage = self.flow.stage.declaring(f"{_CALLS.get(option, option)}(...)", **changes)
        stage.check_inputs([one.name for one in self.flow.inputs if one.name is not None])
        return Pipeline(attrs.evolve(self.flow, stage=stage))

    def _added(self, call: str, option: str, added: Mapping[str, Any]) -> Pipeline:
        """With entries added to an option (OptionError: it has another entry of such a name)."""
        before = self.flow.stage.declared(option) or {}
        for name, one in added.items():
            if before.get(name, one) != one:
                raise OptionError(
                    f"{call}({name}={one!r}): the pipeline has {name}={before[name]!r} already, which it would replace; choose another name"
                )
        return self._with(**{option: {**before, **added}})

    def _with_input(self, **changes: Any) -> Pipeline:
        return Pipeline(attrs.evolve(self.flow, inputs=(attrs.evolve(self.flow.inputs[0], **changes),)))

    def _check_no_merge(self, call: str) -> None:
        self.flow.stage.check_call(call)
        if len(self.flow.inputs) > 1:
            raise PipelineError(
                f"{call} of a merge: each input has its own; call it in bm.merge(orders=bm.Pipeline()...)"
            )

    def event_time(self, column: str | Column, watermark: Watermark) -> Pipeline:
        """Set the event-time column and the watermark policy.

        In a later stage, ``first.then(bm.Pipeline().event_time("paid_at", bm.BoundedOutOfOrderness("1 hour")).window(...))``, the
        event time of a pane is its column, and the watermark that of the stage before, less the delay
        (docs/rules/stage-rows.md#event-time-of-stages).

        Args:
            column: the name of a timestamp column (in a script: seconds since the epoch or aware datetimes); on Spark also
                a Column expression.
            watermark: a policy, such as ``bm.BoundedOutOfOrderness("30 seconds")``.

        Raises:
            OptionError: not a column, or not a watermark policy.
            PipelineError: it is a merge, whose inputs have their own; or called after ``then``.
        """
        call = f"event_time({column!r}, ...)"
        self._check_no_merge(call)
        if self.flow.inputs[0].flows:
            raise PipelineError(_late_event_time(call))
        _check_column("event_time(column)", column)
        _check("event_time(watermark)", watermark, Watermark, "bm.BoundedOutOfOrderness('30 seconds')")
        return self._with_input(event_time=column, watermark=watermark)

    def key_by(self, *columns: str | Column | KeySets | Sequence[str | Column | KeySets]) -> Pipeline:
        """Set the keys: the rows of each key are windowed separately. A second call replaces the first.

        Args:
            columns: column names, one by one or as one list, of any types but arrays and maps; on Spark also Column expressions.
                Without any, all rows have one key. Null is a key. One may be a ``bm.Rollup``, ``bm.Cube`` or ``bm.GroupingSets``:
                then each row is grouped by each of its sets, in one pass, and ``grouping_id``, the last key column, tells a total
                from a null (docs/rules/key-sets.md).

        Raises:
            OptionError: not a column, or a repeated one.
            PipelineError: it is a merge, whose inputs have their own.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> plays = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by(bm.Rollup("country", "city"))
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(n=Count())
            ... )
            >>> rows = [{"ts": 1, "country": "NO", "city": "Oslo"}, {"ts": 2, "country": "NO", "city": "Bergen"}]
            >>> for pane in plays.run(bm.testing.TestStream().add(rows).advance_watermark_to(60)):
            ...     print(*pane.key.values(), pane.values["n"])
            NO Oslo 0 1
            NO None 1 2
            None None 3 2
            NO Bergen 0 1
        """
        self._check_no_merge(f"key_by{columns!r}")
        only = columns[0] if len(columns) == 1 else None
        keys = tuple(only) if isinstance(only, (list, tuple)) else columns
        sets = [one for one in keys if isinstance(one, KeySets)]
        if len(sets) > 1:
            raise OptionError(
                f"key_by{keys!r}: {len(sets)} key sets; write their combinations in one bm.GroupingSets(...)"
            )
        named = [name for one in keys for name in (one.columns if isinstance(one, KeySets) else (one,))]
        named += [GROUPING_ID] if sets else []
        for column in named:
            _check_column("key_by(column)", column)
        names = [column for column in named if isinstance(column, str)]
        if len(set(names)) < len(names):
            raise OptionError(f"key_by{keys!r}: a column is named twice")
        if sets and len(names) < len(named):
            raise OptionError(
                f"key_by{keys!r}: an expression beside key sets is computed where their columns are null; add it as a column before, "
                "df.withColumn('day', ...), and name that"
            )
        if isinstance(self.flow.inputs[0], Source):
            return self._with_input(keys=tuple(named), key_sets=sets[0] if sets else None)
        if sets:
            raise PipelineError(_late_key_sets(sets[0]))
        return self._with_input(keys=tuple(named))

    def window(self, option: WindowOption | Mapping[str, WindowOption]) -> Pipeline:
        """Set the window option.

        Args:
            option: a window option; or several by name, in one pass: the output then has a column ``windowing``,
                after the key columns, with the name (on ``Pane`` a part of the key).

        Raises:
            OptionError: not a window option, or a custom one without an identity or ``assign``.
        """
        option = Windowings(option) if isinstance(option, Mapping) else option
        check_window("window(option)", _check("window(option)", option, WindowOption, "bm.FixedWindows('1 minute')"))
        pipeline = self._with(window=option)
        if not isinstance(option, Rolling):
            return pipeline
        return Pipeline(attrs.evolve(pipeline.flow, stage=rolling_or(pipeline.flow.stage)))

    def trigger(self, trigger: Trigger, *, allow_data_loss: bool = False) -> Pipeline:
        """Set the trigger; default: at the window's end, and for each bundle of late rows.

        Args:
            trigger: from ``beamish.triggers``, or your own.
            allow_data_loss: allow a trigger that can finish while rows may still arrive; they are then dropped.

        Raises:
            OptionError: not a trigger, or a custom one without an identity or ``should_fire``.
        """
        check_says_what_it_is("trigger(trigger)", check_trigger("trigger(trigger)", trigger))
        return self._with(trigger=trigger, allow_data_loss=bool(allow_data_loss))

    @overload
    def allowed_lateness(self, lateness: DurationLike) -> Pipeline: ...
    @overload
    def allowed_lateness(self, *, rows: int) -> Pipeline: ...
    def allowed_lateness(self, lateness: DurationLike | None = None, *, rows: int | None = None) -> Pipeline:
        """Set how far past its end the watermark, or for count windows their reach, may be for a window to accept rows.

        Args:
            lateness: a duration of at least 0 (``"1 hour"``, a timedelta, seconds); default 0.
            rows: for ``CountWindows`` and ``CountSessions`` instead: a number of rows of at least 0. Windows are stored for as
                long, so rows with row numbers may arrive late, and ``state`` shows them.

        Raises:
            OptionError: not a duration or number of rows, or negative; both, or neither.
        """
        if rows is None and lateness is not None:
            span = not_negative("allowed_lateness", lateness)
            check_span("allowed_lateness", span, "a window is stored for this long past its end", 10 * YEAR)
            return self._with(allowed_lateness=span, late_rows=0)
        if not isinstance(rows, int) or lateness is not None:
            raise OptionError(
                f"allowed_lateness({lateness!r}, rows={rows!r}): must be a duration, such as '1 hour', or for count windows a number of rows: rows=100"
            )
        if isinstance(rows, bool) or not 0 <= rows <= 2**40:
            raise OptionError(f"allowed_lateness(rows={rows!r}): must be a whole number of rows, from 0 to 2^40")
        return self._with(late_rows=rows, allowed_lateness=Duration(0))

    def accumulation_mode(self, mode: AccumulationMode) -> Pipeline:
        """Set the accumulation mode; required if a window may have several panes.

        Args:
            mode: see ``discarding()``, ``accumulating()`` and ``accumulating_and_retracting()``.

        Raises:
            OptionError: not an accumulation mode.
        """
        return self._with(
            mode=_check("accumulation_mode(mode)", mode, AccumulationMode, "bm.AccumulationMode.DISCARDING")
        )

    def discarding(self) -> Pipeline:
        """A pane has the rows since the window's last pane."""
        return self.accumulation_mode(AccumulationMode.DISCARDING)

    def accumulating(self) -> Pipeline:
        """A pane has all rows so far."""
        return self.accumulation_mode(AccumulationMode.ACCUMULATING)

    def accumulating_and_retracting(self) -> Pipeline:
        """A pane has all rows so far, and is preceded by a RETRACTION of the pane it replaces."""
        return self.accumulation_mode(AccumulationMode.ACCUMULATING_AND_RETRACTING)

    def on_time_behavior(self, behavior: OnTimeBehavior) -> Pipeline:
        """Set whether an on-time firing emits a pane without new rows.

        Args:
            behavior: default FIRE_ALWAYS.

        Raises:
            OptionError: not an on-time behavior.
        """
        return self._with(
            on_time=_check("on_time_behavior", behavior, OnTimeBehavior, "bm.OnTimeBehavior.FIRE_IF_NON_EMPTY")
        )

    def closing_behavior(self, behavior: ClosingBehavior) -> Pipeline:
        """Set whether a window's last firing emits a pane without new rows.

        Args:
            behavior: default FIRE_IF_NON_EMPTY.

        Raises:
            OptionError: not a closing behavior.
        """
        return self._with(
            closing=_check("closing_behavior", behavior, ClosingBehavior, "bm.ClosingBehavior.FIRE_ALWAYS")
        )

    def timestamp_combiner(self, combiner: TimestampCombiner) -> Pipeline:
        """Set the timestamp of panes.

        Args:
            combiner: default END_OF_WINDOW, the window's last microsecond.

        Raises:
            OptionError: not a timestamp combiner.
        """
        return self._with(
            combiner=_check("timestamp_combiner", combiner, TimestampCombiner, "bm.TimestampCombiner.EARLIEST")
        )

    def retract_merged(self, when: RetractMerged) -> Pipeline:
        """Set when the panes of sessions that merged away are retracted.

        Args:
            when: ``bm.AT_MERGE`` (default) or ``bm.WITH_NEXT_PANE``.

        Raises:
            OptionError: neither bm.AT_MERGE nor bm.WITH_NEXT_PANE.
        """
        return self._with(
            retract_merged=_check("retract_merged", when, RetractMerged, "bm.AT_MERGE or bm.WITH_NEXT_PANE")
        )

    def only_updated_panes(self) -> Pipeline:
        """Skip a pane equal in all values to the window's last one, and its retraction."""
        return self._with(only_updated=True)

    def with_dropped(self) -> Pipeline:
        """Emit dropped rows too, with the reason and the original row."""
        return self._with(with_dropped=True)

    def on_error(self, what: Literal["fail", "drop"]) -> Pipeline:
        """Set what happens to a row that causes an error: a sum that does not fit its type, a user function that raises.

        Args:
            what: "fail", the default: the query stops, nothing of the batch is stored, and it continues from the checkpoint after
                a fix. "drop": the row is dropped with the reason ``error`` and the message, and leaves its window unchanged;
                implies ``with_dropped()``. In a stage with a later stage such rows are only counted. It may change between two
                runs.

        Raises:
            OptionError: neither of these.
            PipelineError: the stage has no windows.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Sum
            >>> totals = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(total=Sum("x"))
            ...     .on_error("drop")
            ... )
            >>> rows = [{"ts": 1, "x": 2**62}, {"ts": 2, "x": 2**62}, {"ts": 3, "x": 1}]
            >>> for pane in totals.run(bm.testing.TestStream().add(rows).advance_watermark_to(60)):
            ...     print(pane)
            DROPPED    [1970-01-01 00:00:00, 00:01:00) error ts=2 x=4611686018427387904
            PANE       [1970-01-01 00:00:00, 00:01:00) ON_TIME 0 first last: total=4611686018427387905
        """
        if what not in ("fail", "drop"):
            raise OptionError(
                f"on_error({what!r}): must be 'fail', which stops the query, or 'drop', which drops the row that causes the error"
            )
        return self._with(on_error=what)

    def accumulate(self, *unnamed: Never, **accumulations: Accumulation) -> Pipeline:
        """Add accumulations. A second call adds to the first.

        Args:
            unnamed: rejected: accumulations are given by name.
            accumulations: from ``beamish.accumulations``, or your own, each by the name of its output column.

        Raises:
            OptionError: not an accumulation, a custom one without an identity, or another one has the name already.
            PipelineError: it names an input that the pipeline does not have.
        """
        if unnamed:
            given = _shown_unnamed(unnamed)
            raise OptionError(f"accumulate({', '.join(given)}): name the output column: accumulate(n={given[0]})")
        for name, accumulation in accumulations.items():
            _check(f"accumulate({name})", accumulation, Accumulation, "Count() or Sum('amount')")
        return _warned("accumulate(...)", self._added("accumulate", "accumulations", accumulations))

    def where(self, condition: pc.Expression) -> Pipeline:
        """Keep only the rows, or in a later stage the panes, that satisfy a condition; a second call adds to the first.

        Filtered rows still advance the watermark, and are not listed as dropped. A row is filtered out if the condition is null.
        An input of ``bm.merge`` or ``bm.as_of_join``, and the changes of ``versions``, may have a condition too.

        Args:
            condition: a pyarrow expression over the input columns, such as ``pc.field("score") > 3``, on panes also
                ``pc.field("pane", "timing") == "LATE"``. Combine conditions by ``&``, ``|`` and ``~``.

        Raises:
            OptionError: not an expression, or one that is never true, such as a comparison with null.
            PipelineError: it is a merge or an as-of join: call it on an input.

        Example:
            >>> import beamish as bm
            >>> import pyarrow.compute as pc
            >>> from beamish.accumulations import Count
            >>> good = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .where(pc.field("score") > 3)
            ...     .accumulate(good=Count())
            ... )
            >>> rows = [{"ts": 1, "score": 5}, {"ts": 2, "score": 1}, {"ts": 3, "score": None}]
            >>> [pane.values for pane in good.run(bm.testing.TestStream().add(rows).advance_watermark_to(60))]
            [{'good': 1}]
        """
        self._check_no_merge(f"where({condition})")
        formula = read_condition("where(condition)", condition, "pc.field('score') > 3")
        return self._with(where=_both(self.flow.stage.declared("where"), formula))

    def deduplicate(self, *columns: str, within: DurationLike | None = None) -> Pipeline:
        """Drop duplicates: rows equal to an earlier one in their key and in ``columns``.

        Null equals null, NaN equals NaN. Duplicates are counted, and listed by ``with_dropped()``, as ``duplicate``. Without
        ``within`` a row counts once in each window, in any mode, as long as the window is stored. With ``within`` it counts once
        in all windows, and the pipeline may have no window: it then forwards its rows, each once.

        Args:
            columns: the id columns, at least one.
            within: how long ids are stored, above 0: until the watermark is this far past the event time. An older row is dropped
                as ``out_of_retention``. ``"forever"``: ids never expire.

        Returns:
            a pipeline. Without windows ``df.transform`` returns the columns of ``df`` (and ``dropped`` with ``with_dropped()``);
            ``run`` returns panes without window and with timing UNKNOWN; their key is the key columns, or ``columns`` without
            keys, their values the others.

        Raises:
            OptionError: an argument is invalid.
            PipelineError: rows are retracted, or come from several inputs; ``within`` is missing where ids would never expire.

        Example:
            >>> import beamish as bm
            >>> once = (
            ...     bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("id", within="1 hour")
            ... )
            >>> script = bm.testing.TestStream().add([{"ts": 1, "id": 7}, {"ts": 2, "id": 8}]).add([{"ts": 3, "id": 7}])
            >>> [pane.key["id"] for pane in once.run(script)]
            [7, 8]
        """
        options = read_deduplication(columns, within)
        if self.flow.stage.declared("deduplication") is not None:
            raise PipelineError(
                f"{options.call}: the pipeline has deduplicate() already; name all columns in one call, or add a stage: first.then(bm.Pipeline().deduplicate(...))"
            )
        dropped = self.flow.stage.with_dropped
        if len(self.flow.inputs) > 1 or self.flow.stage != WindowStage(WindowOptions(with_dropped=dropped)):
            return self._with(deduplication=options)
        in_windows = WindowStage(WindowOptions(deduplication=options, with_dropped=dropped))
        return Pipeline(attrs.evolve(self.flow, stage=DeduplicateStage(options, in_windows, with_dropped=dropped)))

    def fill_gaps(
        self,
        step: DurationLike,
        *,
        by: Literal["last", "linear", "null"],
        within: DurationLike,
        offset: DurationLike = 0,
    ) -> Pipeline:
        """Add a row per key for each cell of a grid that has none.

        Rows are forwarded at once, with ``filled`` false. A row is filled, with ``filled`` true and the start of the cell as event
        time, when the watermark reaches the end of its cell; with ``by="linear"`` the end of the cell of the next row. The stage has
        no windows; ``allowed_lateness`` lets late rows correct what was filled, by retractions.

        Args:
            step: the length of a cell, above 0.
            by: the values of a filled row: ``"last"``, those of the row before; ``"linear"``, numbers on the line between the rows before and
                after it, as doubles, and only if these are at most ``within`` apart; ``"null"``. Among rows of one time the greatest by
                value is the last, as for ``Last``.
            within: how far after a row its gap is filled, at least ``step``.
            offset: the start of one cell, counted from the epoch.

        Returns:
            a pipeline of panes without window: the columns of the rows, ``filled``, ``pane`` and ``timestamp``.

        Raises:
            OptionError: an argument is invalid, or more than a million rows would follow one.
            PipelineError: the pipeline has windows, several inputs, or input that is retracted.

        Example:
            >>> import beamish as bm
            >>> by_minute = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .fill_gaps("1 minute", by="last", within="1 hour")
            ... )
            >>> script = bm.testing.TestStream().add([{"ts": 10, "v": 1}, {"ts": 190, "v": 2}]).advance_watermark_to(200)
            >>> [(pane.timestamp.minute, pane.values["v"], pane.values["filled"]) for pane in by_minute.run(script)]
            [(0, 1, False), (3, 2, False), (1, 1, True), (2, 1, True)]
        """
        options = read_gap_filling(step, by, within, offset)
        known = self.flow.stage.declared
        stage = GapsStage(options, known("allowed_lateness") or Duration(0), self.flow.stage.with_dropped)
        plain = WindowOptions(with_dropped=stage.with_dropped, allowed_lateness=stage.lateness)
        if self.flow.stage != WindowStage(plain):
            raise PipelineError(
                f"{options.call}: it is a stage of its own; put the other calls in a stage before it, or in one after: .then(bm.Pipeline()....)"
            )
        return Pipeline(attrs.evolve(self.flow, stage=stage))

    def retain(
        self,
        *,
        windows: int | None = None,
        rows: int | None = None,
        bytes: int | None = None,  # noqa: A002 - what they are
    ) -> Pipeline:
        """Set the retention of a key: its latest windows, as far as they fit within each budget.

        After a bundle with rows for a key, its windows are checked from the latest, by end and start, backwards. The latest
        stays; the first that exceeds a budget, and all before it, are evicted: they emit their last pane, as on expiry, and are
        dropped. A later row for these or earlier windows is dropped as ``out_of_retention``.

        Args:
            windows: number of windows, at least 1; None: unlimited.
            rows: number of rows in them.
            bytes: bytes of accumulators: numbers and times by their width, text by its length, lists by their items.

        Raises:
            OptionError: no budget, or one that is not a whole number of at least 1.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> from beamish.triggers import Default
            >>> latest = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(10))
            ...     .allowed_lateness("1 hour")
            ...     .retain(windows=2)
            ...     .accumulating()
            ...     .accumulate(n=Count())
            ... )
            >>> script = bm.testing.TestStream().add([{"ts": 5}, {"ts": 15}]).add([{"ts": 25}]).add([{"ts": 3}])
            >>> [(pane.start.second, pane.is_last) for pane in latest.run(script)]
            [(0, True)]
        """
        return self._with(retention=Retention(windows, rows, bytes))

    def forget_after(self, span: DurationLike) -> Pipeline:
        """Drop a key from the global window when the watermark is this far past its latest row; otherwise it is stored for ever.

        Its window then expires as at its end: rows in no pane yet are emitted in a last, on-time pane, and its state is dropped. A
        later row starts a new window, with pane number 0. Emitted panes stay: they are not retracted. A trigger that waits for
        the end, such as ``Never()``, thus emits one final pane per key (docs/rules/windows.md#forget-after). After ``over`` it drops
        what is stored of a key for ever (docs/rules/over.md#over-idle-keys), after ``upserts`` the row of a key
        (docs/rules/upserts.md#upserts-expiry), and with ``bm.Lifetime()`` among rolling spans the key, after a last row
        (docs/rules/rolling.md#rolling-lifetime). A batch drops no keys.

        Args:
            span: a duration above 0, of event time, from the latest event time of the key's rows.

        Raises:
            OptionError: not a positive duration.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> from beamish.triggers import Never
            >>> visits = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("user")
            ...     .window(bm.GlobalWindow())
            ...     .trigger(Never())
            ...     .forget_after("30 days")
            ...     .discarding()
            ...     .accumulate(n=Count())
            ... )
            >>> days = 24 * 60 * 60
            >>> script = bm.testing.TestStream().add([{"ts": 1, "user": "ann"}, {"ts": 2 * days, "user": "ann"}])
            >>> script = script.advance_watermark_to(31 * days).advance_watermark_to(32 * days)
            >>> [(pane.key["user"], pane.values["n"], str(pane.timing)) for pane in visits.run(script)]
            [('ann', 2, 'ON_TIME')]
        """
        return self._with(forget_after=positive("forget_after", span))

    def watermark_per_key(self, delay: DurationLike, at_most: DurationLike) -> Pipeline:
        """Give each key a watermark of its own, so that a fast key's windows end early, and a slow key's rows are not late.

        It is the greatest event time of the key's rows in earlier batches minus ``delay``, but never more than ``at_most`` behind the
        watermark of the event time's policy. Its windows end, expire and merge by it, rows are late by it, and triggers follow it. The
        next stage follows the watermark of the policy minus ``at_most`` (docs/rules/key-watermarks.md#watermark-per-key). A batch has no
        watermarks.

        Args:
            delay: how far out of order rows of a key may be and still be on time; at least 0.
            at_most: how far a key may be behind the watermark of all; at least 0. Keys without rows are so far behind: their windows end
                that much later.

        Raises:
            OptionError: not a duration, or negative.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> loads = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("device")
            ...     .window(bm.FixedWindows(10))
            ...     .watermark_per_key(0, at_most="1 minute")
            ...     .accumulate(n=Count())
            ... )
            >>> script = bm.testing.TestStream().add([{"ts": 1, "device": "slow"}, {"ts": 31, "device": "fast"}])
            >>> script = script.advance_watermark_to(31).add([{"ts": 2, "device": "slow"}, {"ts": 42, "device": "fast"}])
            >>> for pane in loads.run(script.advance_watermark_to(42).advance_watermark_to(70)):
            ...     print(pane.key["device"], pane.start.second, pane.values["n"])
            fast 30 1
            slow 0 2
        """
        spans = not_negative("watermark_per_key(delay)", delay), not_negative("watermark_per_key(at_most)", at_most)
        for name, span in zip(("delay", "at_most"), spans, strict=True):
            check_span(
                f"watermark_per_key({name})", span, "a key's watermark trails by this much, and its windows end as late"
            )
        return self._with(key_watermark=KeyWatermark(*spans))

    def having(self, condition: pc.Expression) -> Pipeline:
        """Emit only the panes that satisfy a condition, and their retractions; a second call adds to the first.

        Filtered panes are still numbered and still count for triggers. A filtered pane does not retract, unless the pipeline is
        retracting: then the pane before is still retracted, if it was emitted. With a later ``suppress``, the condition applies
        to the panes that the suppress emits.

        Args:
            condition: a pyarrow expression over the output columns, such as ``pc.field("n") >= 5``, columns of ``with_columns``,
                or ``~pc.field("pane", "is_last")``. Null is false.

        Raises:
            OptionError: not an expression, or one that is never true, such as a comparison with null.
            PipelineError: the stage has no windows.

        Example:
            >>> import beamish as bm
            >>> import pyarrow.compute as pc
            >>> from beamish.accumulations import Count
            >>> busy = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("user")
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(n=Count())
            ...     .having(pc.field("n") >= 2)
            ... )
            >>> rows = [{"ts": 1, "user": "ann"}, {"ts": 2, "user": "ann"}, {"ts": 3, "user": "bob"}]
            >>> [pane.key for pane in busy.run(bm.testing.TestStream().add(rows).advance_watermark_to(60))]
            [{'user': 'ann'}]
        """
        formula = read_condition("having(condition)", condition, "pc.field('n') >= 5")
        return self._with(having=_both(self.flow.stage.declared("having"), formula))

    def with_columns(self, **columns: pc.Expression) -> Pipeline:
        """Compute columns of the output, which a later stage may use like any other value; a second call adds to the first.

        Args:
            columns: pyarrow expressions over the output columns, by the name of the new column. Types and rules are pyarrow's:
                integer division yields an integer, so cast first: ``pc.field("n").cast("double")``.

        Raises:
            OptionError: not an expression, or another one has the name already.
            PipelineError: the stage has no windows.

        Example:
            >>> import beamish as bm
            >>> import pyarrow.compute as pc
            >>> from beamish.accumulations import Count, Sum
            >>> rates = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(wins=Sum("won"), plays=Count())
            ...     .with_columns(rate=pc.field("wins").cast("double") / pc.field("plays"))
            ... )
            >>> rows = [{"ts": 1, "won": 1}, {"ts": 2, "won": 0}]
            >>> [pane.values for pane in rates.run(bm.testing.TestStream().add(rows).advance_watermark_to(60))]
            [{'wins': 1, 'plays': 2, 'rate': 0.5}]
        """
        example = "pc.field('wins') + pc.field('losses')"
        formulas = {name: read_formula(f"with_columns({name})", one, example) for name, one in columns.items()}
        return self._added("with_columns", "derived", formulas)

    def explode(self, column: str) -> Pipeline:
        """Emit a row for each item of an array in place of the pane; its retraction becomes the same rows.

        An empty or null array gives no row. The rows of a pane have the same numbers. It applies last: ``with_columns`` and
        ``having`` see the array. A later stage takes the rows; fields of an item are named by their path, ``"items.price"``.

        Args:
            column: an output column with an array, such as that of ``Collect``, ``TopNByKey`` or ``with_columns``; for ``upserts``
                one of the rows. It then holds the item.

        Raises:
            OptionError: not the name of a column.
            PipelineError: the stage has no windows, and is not an ``upserts``.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Collect, Count
            >>> seen = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("user")
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(pages=Collect("page"))
            ...     .explode("pages")
            ... )
            >>> by_page = seen.then(bm.Pipeline().key_by("pages").accumulate(users=Count()))
            >>> rows = [{"ts": 1, "user": "ann", "page": "a"}, {"ts": 2, "user": "ann", "page": "b"}, {"ts": 3, "user": "bob", "page": "a"}]
            >>> script = bm.testing.TestStream().add(rows).advance_watermark_to_infinity()
            >>> [(pane.key["pages"], pane.values["users"]) for pane in by_page.run(script)]
            [('a', 2), ('b', 1)]
        """
        return self._with(explode=read_explode(column))

    def suppress(
        self, until: UntilWindowCloses | UntilTimeLimit, *, buffer: Buffer = UNLIMITED, name: str = "suppress"
    ) -> Pipeline:
        """Buffer the last stage's updates, and emit their net change: ``.then(bm.Suppress(...))``.

        Args:
            until: ``bm.UntilWindowCloses()``: one final pane per key and window; ``bm.UntilTimeLimit(wait, clock=...)``: at
                most one change per ``wait``.
            buffer: the buffer size of a shard; default: unlimited, in the state store.
            name: its name in the checkpoint.

        Returns:
            a pipeline with fewer and later rows; a later stage may take them: ``.then(...)``.

        Raises:
            OptionError: an argument is invalid.
            PipelineError: the stage is incomplete, already suppressed, or cannot be suppressed.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> from beamish.triggers import Always
            >>> plays = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .trigger(Always())
            ...     .accumulating()
            ...     .accumulate(plays=Count())
            ...     .suppress(bm.UntilWindowCloses())
            ... )
            >>> script = bm.testing.TestStream().add([{"ts": 1}]).add([{"ts": 2}]).advance_watermark_to(60)
            >>> [pane.values for pane in plays.run(script)]
            [{'plays': 2}]
        """
        return self._suppressed(Suppress(until, buffer=buffer, name=name))

    def _suppressed(self, suppress: Suppress) -> Pipeline:
        stage = self.flow.stage
        stage.suppressed_by(suppress)  # or it raises the reason
        flow = attrs.evolve(self.flow, stage=Suppressed(stage, suppress))
        if is_complete(flow):
            flow.completed.check()
        return Pipeline(flow)

    def from_changelog(self, format: str = "spark") -> Pipeline:  # noqa: A002 - as Spark calls it
        """Read rows as changes of a table: inserts and deletes of whole rows. Deleted rows are retracted.

        After every bundle an accumulation equals that over the current rows of the table. An update is a deletion and an
        insertion. Call it before ``event_time``, which is a column of the table's rows.

        Args:
            format: the format of rows:

                - ``"spark"``, or ``"delta-cdf"``: ``_change_type``: insert, update_preimage, update_postimage, delete;
                - ``"flink"``: ``op``: INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE, or +I, -U, +U, -D;
                - ``"debezium"``: ``op`` (c, r, u, d), ``before``, ``after``: structs, whose columns are the table's; tombstones,
                in which all three are null, are skipped and counted;
                - ``"diff"``: ``_diff``: how often the row is inserted, or deleted if below 0.

        Raises:
            OptionError: another format.
            PipelineError: its input is not a source, or already has a change format.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Sum
            >>> spent = (
            ...     bm.Pipeline()
            ...     .from_changelog("flink")
            ...     .event_time("at", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(spent=Sum("price"))
            ... )
            >>> rows = [{"op": "+I", "at": 1, "price": 5}, {"op": "+I", "at": 2, "price": 7}, {"op": "-D", "at": 1, "price": 5}]
            >>> [pane.values for pane in spent.run(bm.testing.TestStream().add(rows).advance_watermark_to(60))]
            [{'spent': 7}]
        """
        return self._with_form(FromChangelog(format))

    def from_panes(self) -> Pipeline:
        """Read a stored table of panes: a RETRACTION in ``pane.kind`` retracts the pane that it repeats.

        Their columns are the keys, ``window_start``, ``window_end``, the values and ``timestamp``, which is usually the event
        time; dropped rows are left out. To process panes in the query that emits them, use ``first.then(second)``. Without this
        call such a table is rejected; to read it as plain rows, drop its column ``pane``.

        Raises:
            PipelineError: its input is not a source, or already has a change format.

        Example:
            >>> import beamish as bm
            >>> daily = bm.Pipeline().from_panes().event_time("timestamp", bm.BoundedOutOfOrderness("1 hour"))
        """
        return self._with_form(FromPanes())

    def _with_form(self, form: InputForm) -> Pipeline:
        call = form.call()[1:]
        (first, *others) = self.flow.inputs
        if others or not isinstance(first, Source):
            raise PipelineError(
                f"{call}: reads the rows of a source; call it on an input: bm.merge(orders=bm.Pipeline().{call}.event_time(...)...)"
            )
        self.flow.stage.check_form(call)
        if first.form is not None and first.form != form:
            raise PipelineError(f"{call} after {first.form.call()[1:]}: both define what a row does; use one of them")
        return self._with_input(form=form)

    def upserts(
        self,
        *,
        deleted: str | None = None,
        sequence_by: str | None = None,
        keep_deleted: DurationLike | None = None,
    ) -> Pipeline:
        """Read rows, or the panes of the stage before, as upserts of a table, and emit its changes.

        A row sets the row of its key, or deletes it; the last one of each key is stored. A row that replaces another is emitted after the
        retraction of that one, so a later stage is right while the table changes. The pipeline before it declares ``event_time`` and
        ``key_by`` only; ``forget_after`` after it bounds how long rows are stored.

        Args:
            deleted: a boolean column: true for a delete. Null is false.
            sequence_by: the column that orders the rows of a key, such as a Kafka offset or a log position; null is the least. None:
                the event time. A row older than that of its key is dropped as ``superseded``.
            keep_deleted: how far the watermark passes a delete until it expires, above 0; None: deletes are stored for ever.
                An older row that arrives later brings its key back.

        Returns:
            a pipeline whose rows are the key columns, all others but those named here, ``window`` (null), ``pane`` (timing UNKNOWN,
            index 0), ``timestamp`` (the row's event time).

        Raises:
            OptionError: an argument is invalid.
            PipelineError: it has no keys, its input retracts, or the pipeline declares more.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> from beamish.triggers import Always
            >>> orders = (
            ...     bm.Pipeline()
            ...     .event_time("at", bm.BoundedOutOfOrderness(0))
            ...     .key_by("id")
            ...     .upserts(deleted="gone", sequence_by="offset")
            ... )
            >>> by_country = orders.then(
            ...     bm.Pipeline()
            ...     .key_by("country")
            ...     .window(bm.GlobalWindow())
            ...     .trigger(Always())
            ...     .accumulating_and_retracting()
            ...     .accumulate(orders=Count())
            ... )
            >>> first = {"at": 1, "id": 7, "country": "NO", "gone": False, "offset": 0}
            >>> moved = {"at": 1, "id": 7, "country": "SE", "gone": False, "offset": 1}
            >>> for pane in by_country.run(bm.testing.TestStream().add([first]).add([moved])):
            ...     print(pane.kind, pane.key["country"], pane.values["orders"])
            PANE NO 1
            RETRACTION NO 1
            PANE SE 1
        """
        options = read_upserts(deleted, sequence_by, keep_deleted)
        (first, *others) = self.flow.inputs
        if not others and self.flow.stage.declared("where") is not None:
            UpsertsStage(options).check_call("where(...)")
        if others or self.flow.stage != WindowStage():
            raise PipelineError(
                f"{options.call}: reads input rows, so the pipeline before it may declare event_time and key_by only; leave the rest out, or add a stage: first.then(bm.Pipeline().key_by(...).{options.call})"
            )
        if isinstance(first, Source) and first.form is not None:
            UpsertsStage(options).check_form(first.form.call()[1:])
        return Pipeline(Flow(UpsertsStage(options), (first,)))

    def changes(
        self, *, deleted: str | None = None, sequence_by: str | None = None, window: str | None = None
    ) -> Pipeline:
        """Read rows as upserts and deletes of a foreign table: a row sets or deletes the value of its key (and window).

        The pipeline declares event time and keys only; ``.suppress(...)`` then determines when changes are emitted.

        Args:
            deleted: a boolean column: true for a delete. Null is false.
            sequence_by: the column that orders the rows of a key; default: the event time.
            window: a column ``struct<start: timestamp, end: timestamp>``, if the table has windows.

        Returns:
            a pipeline whose rows are the key columns, ``window`` (null without one), all other columns but ``deleted``'s,
            ``pane`` (UNKNOWN, index 0; PANE sets, RETRACTION deletes, with the deleting row's own values), ``timestamp``
            (the row's event time).

        Raises:
            OptionError: not a column name.
            PipelineError: the pipeline declares more, or no event time.

        Example:
            >>> import beamish as bm
            >>> limited = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("account")
            ...     .changes(deleted="gone")
            ...     .suppress(bm.UntilTimeLimit(10, clock="event"))
            ... )
            >>> rows = [{"ts": 1, "account": "ann", "balance": 5, "gone": False}]
            >>> rows += [{"ts": 3, "account": "ann", "balance": 7, "gone": False}]
            >>> [pane.values for pane in limited.run(bm.testing.TestStream().add(rows).advance_watermark_to(11))]
            [{'ts': 3, 'balance': 7}]
        """
        options = ChangesOptions(deleted, sequence_by, window)
        call = f"changes({options.arguments})"
        (first, *others) = self.flow.inputs
        if others or not isinstance(first, Source) or self.flow.stage != WindowStage():
            raise PipelineError(
                f"{call}: reads input rows, so the pipeline before it may declare event_time and key_by only; leave the rest out"
            )
        if first.form is not None:
            raise PipelineError(
                f"{call} after {first.form.call()[1:]}: both define what a row does; use changes() for upserts by key, the other for inserts and deletes of whole rows"
            )
        first.check()
        return Pipeline(attrs.evolve(self.flow, stage=ChangesStage(options)))

    def versions(
        self,
        history: DurationLike,
        *,
        values: Sequence[str] | None = None,
        deleted: str | None = None,
        sequence_by: str | None = None,
        allowed_lateness: DurationLike | None = None,
        only_updated: bool = False,
        latest_only: bool = False,
    ) -> Pipeline:
        """Read rows, or the panes of the stage before, as changes of a table, and emit its versions (SCD type 2).

        A row sets the value of its key from its event time until the key's next change. Changes may be out of order: an outdated
        version is retracted and the corrected one emitted, so live versions of a key never overlap. Among several changes of the
        same key and time one is effective: the greatest ``sequence_by``, else the later bundle's; within a bundle a value before
        a delete, then the greatest values. ``bm.as_of_join`` joins rows with the version valid at their time. The pipeline
        declares ``event_time`` and ``key_by`` only (a later stage ``key_by`` only; none: a single key).

        Args:
            history: how far behind the watermark reads of the table are exact, at least 0; further back only each key's latest
                change is stored.
            values: the columns of a version; None: all but the keys, the event time, ``deleted`` and ``sequence_by``.
            deleted: a boolean column: true for a delete. Null is false.
            sequence_by: the column that orders changes of the same key and time; null is the least.
            allowed_lateness: how far behind the watermark a change may be, at most ``history``; None: that.
            only_updated: ignore a change equal in all values to the current version.
            latest_only: emit latest versions only: one that ends is retracted, and not emitted again with its end.

        Returns:
            a pipeline whose rows are the key columns, the values, ``valid_from``, ``valid_to`` (null: still valid), ``window``
            (null), ``pane`` (LATE if a change of the key was behind the watermark, else ON_TIME), ``timestamp``
            (``valid_from``).

        Raises:
            OptionError: an argument is invalid.
            PipelineError: the lateness is above the history, or the pipeline declares more.

        Example:
            >>> import beamish as bm
            >>> rates = (
            ...     bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("currency").versions("1 day")
            ... )
            >>> rows = [{"ts": 10, "currency": "EUR", "rate": 1.1}, {"ts": 30, "currency": "EUR", "rate": 1.3}]
            >>> for pane in rates.run(bm.testing.TestStream().add(rows)):
            ...     print(pane.values["rate"], pane.values["valid_from"].second, pane.values["valid_to"])
            1.1 10 1970-01-01 00:00:30+00:00
            1.3 30 None
        """
        options = read_versions(
            history,
            values=values,
            deleted=deleted,
            sequence_by=sequence_by,
            allowed_lateness=allowed_lateness,
            only_updated=only_updated,
            latest_only=latest_only,
        )
        if len(self.flow.inputs) > 1 or not only_takes(self.flow):
            raise PipelineError(
                f"versions({options.arguments}): reads input rows, so the pipeline before it may declare event_time, key_by and where only; leave the rest out, or add a stage: first.then(bm.Pipeline().key_by(...).versions(...))"
            )
        flow = Flow(VersionsStage(options), (taken_by(self.flow),))
        if is_complete(flow):
            flow.completed.check()
        return Pipeline(flow)

    def over(self, frame: Frame, *, order_by: str | None = None) -> Pipeline:
        """Emit each row with values over the rows of its key around it, as SQL's OVER: ``accumulate`` declares them.

        The rows of a key are ordered by event time, then ``order_by``, then all columns. A row is emitted when the watermark
        passes its time. With an allowed lateness late rows are emitted at once, and under ``accumulating_and_retracting()`` they correct the
        emitted rows whose frame holds them; the trigger ``AfterWatermark(early=Always())`` emits rows as they arrive. ``having`` on
        ``bm.RowNumber()`` keeps the first rows of each key. The pipeline before it declares ``event_time``, ``key_by`` and
        ``where`` only.

        Args:
            frame: the rows that accumulations hold: ``bm.Preceding("1 hour")``, ``bm.PrecedingRows(10)`` or ``bm.Unbounded()``.
            order_by: a column that orders rows of the same key and event time.

        Returns:
            a pipeline whose rows are the columns of its input, the values of ``accumulate`` (accumulations, and ``bm.Lag``,
            ``bm.Lead``, ``bm.RowNumber``, ``bm.Rank``, ``bm.DenseRank``, ``bm.FirstValue``, ``bm.LastValue``), ``window`` (null for
            rows of a source), ``pane``, ``timestamp`` (the row's event time).

        Raises:
            OptionError: not a frame, or not a column name.
            PipelineError: the pipeline declares more.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Sum
            >>> spent = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("user")
            ...     .over(bm.Preceding("1 hour"))
            ...     .accumulate(total=Sum("amount"), before=bm.Lag("amount"), n=bm.RowNumber())
            ... )
            >>> rows = [{"ts": 10, "user": "ann", "amount": 5}, {"ts": 20, "user": "ann", "amount": 7}]
            >>> for pane in spent.run(bm.testing.TestStream().add(rows).advance_watermark_to(30)):
            ...     print(pane.values)
            {'ts': 10, 'amount': 5, 'total': 5, 'before': None, 'n': 1}
            {'ts': 20, 'amount': 7, 'total': 12, 'before': 5, 'n': 2}
        """
        _check("over(frame)", frame, Frame, "bm.Preceding('1 hour')")
        options = OverOptions(frame, order_by)
        if len(self.flow.inputs) > 1 or not only_takes(self.flow):
            raise PipelineError(
                f"over({options.arguments}): reads input rows, so the pipeline before it may declare event_time, key_by and where only; leave the rest out, or add a stage: first.then(bm.Pipeline().key_by(...).over(...))"
            )
        return Pipeline(Flow(OverStage(options), (taken_by(self.flow),)))

    def topic_config(self) -> dict[str, str]:
        """The settings of a compacted Kafka topic from which this table can be restored.

        Returns:
            ``cleanup.policy``, and in ``min.compaction.lag.ms`` the history and 24 hours.

        Raises:
            PipelineError: its last stage is not ``versions(...)``.

        Example:
            >>> import beamish as bm
            >>> bm.Pipeline().key_by("currency").versions("1 hour").topic_config()
            {'cleanup.policy': 'compact', 'min.compaction.lag.ms': '90000000'}
        """
        options = self.flow.stage.declared("versions")
        if options is None:
            raise PipelineError(
                "topic_config(): the last stage is not a versioned table; call it on a pipeline that ends in .versions(...)"
            )
        return compacted_topic(options.history.us)

    def then(self, stage: Pipeline | Suppress) -> Pipeline:
        """Chain a stage that takes this one's panes as rows; or suppress this one's updates, by a ``bm.Suppress``.

        A stage without a window of its own keeps the panes' windows; otherwise each pane is windowed by its timestamp. If a stage
        retracts, panes replace their predecessors in the next one, so downstream totals are correct after every bundle. The
        stage's own allowed lateness applies to late panes.

        Args:
            stage: a pipeline of one stage or several, without event time, or with a column of the panes as event time; or a
                ``bm.Suppress`` (see ``suppress``).

        Raises:
            OptionError: its event time is not a column with a bounded disorder.
            PipelineError: not a pipeline, has several inputs, or cannot take these panes; or this one is
                incomplete, or is ``with_dropped()``.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count, Max
            >>> most_plays = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .key_by("team")
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(plays=Count())
            ...     .then(bm.Pipeline().accumulate(most=Max("plays")))
            ... )
            >>> rows = [{"ts": 1, "team": "red"}, {"ts": 2, "team": "red"}, {"ts": 3, "team": "blue"}]
            >>> script = bm.testing.TestStream().add(rows).advance_watermark_to_infinity()
            >>> [pane.values for pane in most_plays.run(script)]
            [{'most': 2}]
        """
        if isinstance(stage, Suppress):
            return self._suppressed(stage)
        if not isinstance(stage, Pipeline):
            raise PipelineError(
                f"then({stage!r}): must be a pipeline, such as bm.Pipeline().key_by('total').accumulate(...)"
            )
        sources = stage.flow.sources
        if len(sources) > 1:
            raise PipelineError(
                f"then({stage!r}): it takes several inputs; make this pipeline one of them: bm.{stage.flow.stage.joined_by}(name=first, ...)"
            )
        Panes(self.flow).check()
        flow = stage.flow.on_sources(self._as_input)
        if is_complete(flow):
            flow.completed.check()
        return _warned("then(...)", Pipeline(flow))

    def _as_input(self, source: Source) -> Panes:
        """Its panes, in place of a source; at the times of the source's event-time column, if it has one."""
        if source.key_sets is not None:
            raise PipelineError(_late_key_sets(source.key_sets))
        if source.event_time is None:
            return Panes(self.flow, source.keys, where=source.where)
        assert source.watermark is not None  # noqa: S101 - event_time sets both
        retime = read_retime(source.event_time, source.watermark)
        return Panes(Flow(retime, (Panes(self.flow, where=source.where),)), source.keys)

    def run(self, test_stream: TestStream, *, initial: Any = None) -> list[Pane]:
        """Run a script in process, without Spark.

        Args:
            test_stream: the script; for a merge each bundle names its input.
            initial: initial rows of a versioned table, before the first event; for several tables by the name of their input.
                None of them is late, and their versions count as emitted.

        Returns:
            panes, retractions and, with ``with_dropped``, dropped rows of the last stage, in the order of emission: a list of
            ``bm.Pane``, shown in a notebook as a table.

        Raises:
            PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
        """
        if not isinstance(test_stream, TestStream):
            raise ScriptError(
                f"run({test_stream!r}): must be a script, such as bm.testing.TestStream().add([{{'ts': 1}}])"
            )
        return run(self.flow.completed, test_stream.events, initial=initial)

    def why(
        self,
        test_stream: TestStream,
        *,
        key: Any = None,
        window: Any = None,
        stage: int | None = None,
        initial: Any = None,
    ) -> str:
        """Why a window has not fired after a script: what it waits for, and how long; for a query see ``bm.inspect``.

        Args:
            test_stream: the script.
            key: only windows of keys with these values in these columns (a dict; for a single key column its value).
            window: only the one that starts at, or those that contain, a time (seconds, an aware datetime, or ISO text; for
                count windows a number), or that overlap a span (start, end).
            stage: the number of the stage in ``explain``, if several have windows; 1: the first.
            initial: initial rows of a versioned table, as for ``run``.

        Returns:
            a paragraph for each selected window (for many the first ones), or for a missing one.

        Raises:
            PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid; no stage has windows, or
                several have and ``stage`` is missing.
            OptionError: no such key column, or an invalid window.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> plays = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .accumulate(plays=Count())
            ... )
            >>> script = bm.testing.TestStream().add([{"ts": 1}]).advance_watermark_to(45)
            >>> print(plays.why(script, window=0).partition(" Its trigger")[0])
            The window [1970-01-01 00:00:00, 00:01:00) is open. It has emitted no pane yet; 1 row is in no pane yet. A pane would
            hold plays=1 now. It waits for the watermark to reach its end, 1970-01-01 00:01:00: 15 seconds to go.
        """
        if not isinstance(test_stream, TestStream):
            raise ScriptError(
                f"why({test_stream!r}): must be a script, such as bm.testing.TestStream().add([{{'ts': 1}}]); for a query use bm.inspect(spark, checkpoint).why(...)"
            )
        stages = ScriptStages.after(self.flow.completed, test_stream.events, initial)
        return stages.why(key=key, window=window, stage=stage)

    @overload
    def state(self, of: TestStream, *, initial: Any = None) -> ScriptState: ...
    @overload
    def state(self, of: SparkSession, checkpoint: str | Path, *, batch: int | None = None) -> CheckpointState: ...
    def state(
        self,
        of: TestStream | SparkSession,
        checkpoint: str | Path | None = None,
        *,
        batch: int | None = None,
        initial: Any = None,
    ) -> ScriptState | CheckpointState:
        """The state after a script, or in the checkpoint of a query, for lookups.

        Args:
            of: a script, or the session that reads the checkpoint.
            checkpoint: the query's checkpoint folder.
            batch: read the state after this batch; None: the last one.
            initial: for a script, initial rows of a versioned table, as for ``run``.

        Returns:
            a value with methods that return a list, or for a checkpoint a DataFrame: ``windows(start, end, key=...)``: the stored
            windows, count windows too (``bm.KeptWindow``); ``rows(start, end, key=..., of=...)``: the rows in them
            (``bm.KeptRow``); ``held()``: the buffers of its suppresses (``bm.Held``); ``versions(as_of=...)``: the versions of
            its versioned table (``bm.StoredVersion``).

        Raises:
            PipelineError: a session without a checkpoint or with ``initial``, or a script with a checkpoint.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> from beamish.triggers import Always
            >>> plays = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(60))
            ...     .trigger(Always())
            ...     .accumulating()
            ...     .accumulate(plays=Count())
            ...     .suppress(bm.UntilWindowCloses())
            ... )
            >>> (held,) = plays.state(bm.testing.TestStream().add([{"ts": 1}]).add([{"ts": 2}])).held()
            >>> held.values, held.due.minute
            ({'plays': 2}, 1)
            >>> script = bm.testing.TestStream().add([{"ts": 1}, {"ts": 2}, {"ts": 70}])
            >>> [(kept.window.start.minute, kept.values) for kept in plays.state(script).windows(start=60)]
            [(1, {'plays': 1})]
        """
        if isinstance(of, TestStream):
            if checkpoint is not None:
                raise PipelineError(f"state(script, {printable(checkpoint)}): a script has no checkpoint; leave it out")
            return ScriptState(self.flow.completed, of.events, initial)
        if checkpoint is None:
            raise PipelineError(
                f"state({printable(of)}): must be a script, or a session and a checkpoint: state(spark, folder)"
            )
        if initial is not None:
            raise PipelineError(
                "state(spark, checkpoint, initial=...): initial rows of a table are in the checkpoint; leave it out"
            )
        return CheckpointState(self.flow.completed, of, checkpoint, batch)

    def apply(
        self,
        df: DataFrame | None = None,
        *,
        initial: DataFrame | Mapping[str, DataFrame] | None = None,
        shards: int | None = None,
        schema: Any = None,
        streaming: bool | None = None,
        checkpoint: str | Path | None = None,
        fuse: bool = True,
        shard_by: Sequence[str] | None = None,
        **inputs: DataFrame,
    ) -> DataFrame:
        """Apply it to streaming or batch DataFrames, all stages in one query; lazy, output mode append.

        Args:
            df: has the event time, key and value columns. A pipeline without event time takes the panes of another.
            initial: a batch DataFrame of initial changes of a versioned table (for several tables by the name of their input),
                loaded into a new checkpoint before its first batch. None of them is late.
            shards: number of state partitions, at least 1; default ``spark.sql.shuffle.partitions``. Fixed for the life of the checkpoint.
            schema: the columns of ``df``, ``"ts timestamp, team string"`` or a ``StructType`` (for a merge a dict by input). With
                it, ``shards`` and ``streaming``, no Spark call is made, as required in query functions of declarative pipelines;
                call ``bm.register(spark)`` before, outside of them.
            streaming: with ``schema``, whether ``df`` is a stream.
            checkpoint: the query's ``checkpointLocation``. If it has an earlier query that cannot continue with this pipeline,
                raise here, before anything is written (``bm.check_upgrade``); None: the first batch fails. Which stages run
                together is then as in its checkpoint.
            fuse: whether stages run in one operator where their keys allow it, with one shuffle for all; ``explain(df)`` says which.
                Fixed for the life of the checkpoint, as is ``shard_by``.
            shard_by: key columns that decide the shard, in place of all keys, so that stages with fewer keys run together with those
                before them: ``["user"]`` for a stage by user after one by user and page. The shards are fewer keys each, and less even.
            inputs: for a merge, in place of ``df``: a DataFrame for each source, by name, all streaming or all batch.

        Returns:
            the key columns (for a merge by the first input's names), ``window struct<start, end>``, one column per
            accumulation, ``pane struct<kind, timing, index, on_time_index, is_first, is_last, change,
            sequence, watermark>``, ``timestamp``; with ``with_dropped`` also ``dropped`` (reason, late_by, row; for a merge a row
            is a struct of one struct per input, of which only the row's own is not null).

        Raises:
            PipelineError, ColumnError, SparkSetupError: the pipeline, its columns or the session is invalid, or a source has no DataFrame.
            StateError: the query of ``checkpoint`` cannot continue with it.
        """
        from beamish.spark import apply
        from beamish.spark.rows.schemas import DeclaredInputs

        how = fuse_of("apply", fuse, shard_by)
        declared = DeclaredInputs.read(schema, shards, streaming)
        if declared is not None and initial is not None:
            raise PipelineError(
                "apply(initial=..., schema=...): initial rows need Spark calls; leave out one of the two"
            )
        if declared is not None and checkpoint is not None:
            raise PipelineError(
                "apply(checkpoint=..., schema=...): reading a checkpoint needs Spark calls; leave out one of the two"
            )
        flow = self.flow.completed
        applied = apply(flow, df, inputs, shards, initial=initial, declared=declared, fuse=how)
        if checkpoint is None:
            return applied
        stored = check_next_run(applied.sparkSession, checkpoint, self, df, shards=shards, inputs=inputs)
        return applied if stored is None else apply(flow, df, inputs, shards, initial=initial, fuse=stored)

    __call__ = apply

    def explain(self, df: DataFrame | None = None, **inputs: DataFrame) -> str:
        """Explain the pipeline, stage by stage: clocks, watermark, late rows, retractions, state.

        Args:
            df: the DataFrame it would be applied to, for its column types; optional.
            inputs: for a merge, in place of ``df``.

        Returns:
            text, a block per stage; with DataFrames also column types, the state and the number of shards.

        Raises:
            PipelineError, ColumnError: the pipeline or its columns are wrong.
        """
        return explain(self.flow.completed, df, inputs)

    def __repr__(self) -> str:
        return _repr(self.flow)

    def _repr_html_(self) -> str:
        if not is_complete(self.flow):
            return html_code(repr(self))
        try:
            stages = explained(self.flow.completed)
        except PipelineError as error:
            return html_code(repr(self)) + html_text(str(error))
        return "".join(html_table((), lines, title) for title, lines in stages)


def _both(before: Formula | None, formula: Formula) -> Formula:
    return formula if before is None else Formula(before.expression & formula.expression)


def _shown_unnamed(unnamed: Sequence[Any]) -> list[str]:
    return [f"{one.__name__}()" if isinstance(one, type) else repr(one) for one in unnamed]


def _warned(call: str, pipeline: Pipeline) -> Pipeline:
    """A pipeline, after a warning if its last stage counts how often the one before it fires."""
    if is_complete(pipeline.flow) and (reason := pipeline.flow.completed.counted_firings):
        warn(f"{call}: {reason}")
    return pipeline


def is_complete(flow: Flow) -> bool:
    """Whether the pipeline is complete, not under construction."""
    has_time = (source.event_time is not None or taker.stage.counts_rows for source, taker, _ in flow.leaves)
    return all(has_time) and all(below.stage.is_complete for below in flow.flows)


def only_takes(flow: Flow) -> bool:
    """Whether a single-stage pipeline declares a condition (``where``) and keys, but no windows."""
    return flow.stage == WindowStage(WindowOptions(where=flow.stage.declared("where")))


def taken_by(flow: Flow) -> Input:
    """Its input, as an input of another stage."""
    return attrs.evolve(flow.inputs[0], where=flow.stage.declared("where"))


def _repr(flow: Flow) -> str:
    (first, *others), calls = flow.inputs, flow.stage.calls()
    if calls is None:
        return f"Pipeline({flow!r})"
    own = "".join(calls)
    if others:
        shown = [(_repr_of_input(taken), _repr_of_input(taken, keyed=False)) for taken in flow.inputs]
        return flow.stage.call_that_joins(flow.takes, shown) + own
    if isinstance(first, Panes):
        times, taken = "", first.flow
        (below, *_) = taken.inputs
        if taken.stage.declared("event_time") is not None and isinstance(below, Panes):
            times, taken = f"{''.join(taken.stage.calls() or ())}{where_call(below.where)}", below.flow
        return f"{_repr(taken)}.then(Pipeline(){times}{_takes_call(first)}{own})"
    return f"Pipeline(){first.calls()}{own}"


def _repr_of_input(taken: Input, *, keyed: bool = True) -> str:
    """The pipeline that a merge was given."""
    if isinstance(taken, Source):
        return f"Pipeline(){(taken if keyed else attrs.evolve(taken, keys=())).calls()}"
    return _repr(taken.flow) + (f".then(Pipeline(){_takes_call(taken)})" if keyed and taken.keys is not None else "")


def _takes_call(panes: Panes) -> str:
    """The calls that declare a stage's condition and keys."""
    return key_by_call(panes.keys or ()) + where_call(panes.where)

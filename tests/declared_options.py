"""The options of a pipeline's last stage and of its inputs, flat: the tests' own view of pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

import beamish as bm
from beamish.contract.stage import Stage
from beamish.flow import Flow, Input, Panes
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.changes.options import ChangesOptions
from beamish.kinds.changes.stage import ChangesStage
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.deduplicate.stage import DeduplicateStage
from beamish.kinds.gaps.option import GapFilling
from beamish.kinds.gaps.stage import GapsStage
from beamish.kinds.over.options import OverOptions
from beamish.kinds.over.stage import OverStage
from beamish.kinds.retime.stage import RetimeStage
from beamish.kinds.rolling.stage import RollingStage
from beamish.kinds.suppress.stage import Suppressed
from beamish.kinds.table_join.stage import TableJoinStage
from beamish.kinds.upserts.stage import UpsertsStage
from beamish.kinds.versions.options import AsOfOptions, VersionsOptions
from beamish.kinds.versions.stage import VersionsStage
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.stage import WindowStage
from beamish.source import Source


@attrs.frozen
class StageOptions:
    """The options of a stage, flat.

    Attributes:
        keys: the names of its key columns in the output.
        event_time, watermark: of its source, if it has a single unnamed one.
        inputs: its inputs.
        suppress: its suppress.
        changes: the options of changes().
        versions: the options of its versioned table.
        as_of: the options of an as-of join.
        gaps: the options of fill_gaps().
        over: the options of an over stage.
        the rest: as declared, or None.
    """

    keys: tuple[Any, ...]
    event_time: Any
    watermark: bm.Watermark | None
    inputs: tuple[Input, ...]
    window: bm.WindowOption | None
    trigger: bm.triggers.Trigger
    allowed_lateness: bm.durations.Duration
    late_rows: int
    mode: bm.AccumulationMode | None
    on_time: bm.OnTimeBehavior
    closing: bm.ClosingBehavior
    combiner: bm.TimestampCombiner
    retract_merged: bm.RetractMerged | None
    only_updated: bool
    with_dropped: bool
    on_error: str
    accumulations: Mapping[str, bm.accumulations.Accumulation]
    where: Any = None
    deduplication: Deduplication | None = None
    retention: Any = None
    forget_after: Any = None
    key_watermark: Any = None
    derived: Mapping[str, Any] = attrs.Factory(dict)
    having: Any = None
    explode: str | None = None
    wait_for: bm.WaitFor = bm.BOTH_INPUTS
    suppress: bm.Suppress | None = None
    changes: ChangesOptions | None = None
    versions: VersionsOptions | None = None
    as_of: AsOfOptions | None = None
    gaps: GapFilling | None = None
    over: OverOptions | None = None

    @property
    def retracts(self) -> bool:
        """Whether panes are retracted."""
        return self.mode == bm.AccumulationMode.ACCUMULATING_AND_RETRACTING

    @property
    def discards(self) -> bool:
        """Whether a pane holds only new rows; the default mode, unless its input retracts.

        See rules/stages.md#retractions-as-rows.
        """
        if self.mode is None:
            return not any(map(takes_back, self.inputs))
        return self.mode == bm.AccumulationMode.DISCARDING

    @property
    def retracts_at_merge(self) -> bool:
        """Whether retraction is immediate (rules/windows.md#retractions-of-merged-windows, rules/running.md#defaults-and-ranges)."""
        return self.retracts and self.retract_merged in (None, bm.AT_MERGE)

    @property
    def merges(self) -> bool:
        """Whether it has several, named inputs."""
        return len(self.inputs) > 1


def takes_back(taken: Input) -> bool:
    """Whether an input of a stage retracts rows."""
    return said(taken.flow).retracts if isinstance(taken, Panes) else taken.form is not None


def said(pipeline: bm.Pipeline | Flow) -> StageOptions:
    """The options of the last stage, suppressed or not; none for a kind defined in the tests."""
    flow = pipeline.flow if isinstance(pipeline, bm.Pipeline) else pipeline
    stage, suppress = stage_of(flow), flow.stage.suppress if isinstance(flow.stage, Suppressed) else None
    options = stage.options if isinstance(stage, WindowStage) else WindowOptions()
    if isinstance(stage, RollingStage):
        options = stage.effective
    changes = stage.options if isinstance(stage, ChangesStage) else None
    if changes:
        options = attrs.evolve(options, with_dropped=changes.with_dropped)
    if isinstance(stage, DeduplicateStage):
        options = attrs.evolve(options, deduplication=stage.options, with_dropped=stage.with_dropped)
    gaps = stage.options if isinstance(stage, GapsStage) else None
    if isinstance(stage, GapsStage):
        mode = bm.AccumulationMode.ACCUMULATING_AND_RETRACTING if stage.lateness.us else None
        options = attrs.evolve(options, mode=mode, allowed_lateness=stage.lateness, with_dropped=stage.with_dropped)
    if isinstance(stage, UpsertsStage):
        options = attrs.evolve(
            options,
            mode=bm.AccumulationMode.ACCUMULATING_AND_RETRACTING,
            with_dropped=stage.with_dropped,
            forget_after=stage.options.forget_after,
            explode=stage.options.explode,
        )
    if isinstance(stage, TableJoinStage):
        options = attrs.evolve(
            options,
            mode=bm.AccumulationMode.ACCUMULATING_AND_RETRACTING,
            with_dropped=stage.with_dropped,
            forget_after=stage.options.forget_after,
        )
    if isinstance(stage, RetimeStage):
        (taken,) = flow.inputs
        assert isinstance(taken, Panes)
        options = attrs.evolve(options, mode=said(taken.flow).mode)
    over = stage.options if isinstance(stage, OverStage) else None
    if over:
        own = ("mode", "with_dropped", "accumulations", "derived", "having", "explode", "allowed_lateness")
        options = attrs.evolve(options, **{name: getattr(over, name) for name in own})
    versions, as_of = versions_of(stage)
    if versions:
        mode = as_of.mode if as_of else bm.AccumulationMode.ACCUMULATING_AND_RETRACTING
        options = attrs.evolve(options, mode=mode, with_dropped=stage.with_dropped)
    first = flow.inputs[0]
    source = first if isinstance(first, Source) and len(flow.inputs) == 1 else Source()
    declared = attrs.asdict(options, recurse=False)
    del declared["allow_data_loss"]
    declared["with_dropped"] = options.lists_dropped
    place = flow.takes[0].keys, source.event_time, source.watermark, flow.inputs
    of_kinds: dict[str, Any] = {"changes": changes, "versions": versions, "as_of": as_of, "gaps": gaps, "over": over}
    return StageOptions(*place, suppress=suppress, **(declared | of_kinds))


def versions_of(stage: Stage) -> tuple[VersionsOptions | None, AsOfOptions | None]:
    """The options of a table and of a join with it."""
    if isinstance(stage, AsOfStage):
        return stage.table, stage.options
    return (stage.options if isinstance(stage, VersionsStage) else None), None


def stage_of(flow: Flow) -> Stage:
    """The last stage, without its suppress."""
    return flow.stage.core


def stages(pipeline: bm.Pipeline) -> list[StageOptions]:
    """The options of each stage, each after its inputs."""
    return [said(flow) for flow in pipeline.flow.flows]


def evolve(pipeline: bm.Pipeline, **changes: Any) -> bm.Pipeline:
    """The pipeline with other options of its last stage, or of its single source; nothing is checked."""
    flow = pipeline.flow
    stage = stage_of(flow)
    assert isinstance(stage, WindowStage)
    suppress = changes.pop("suppress", flow.stage.suppress if isinstance(flow.stage, Suppressed) else None)
    of_input = {name: changes.pop(name) for name in ("event_time", "watermark", "keys", "form") if name in changes}
    inputs = flow.inputs
    if of_input:
        (only,) = inputs
        inputs = (attrs.evolve(only, **of_input),)
    stage = stage.declaring("evolve", **changes)
    return bm.Pipeline(Flow(Suppressed(stage, suppress) if suppress else stage, inputs))


def declared(**options: Any) -> bm.Pipeline:
    """A pipeline of one stage with these options, by the names of ``StageOptions``; nothing is checked."""
    return evolve(bm.Pipeline(), **options)

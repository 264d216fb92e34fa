"""The text of explain() for a window stage, and the calls that declare it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from beamish.accumulations.joins import Join
from beamish.contract.inputs import describe_where
from beamish.contract.relation import Relation
from beamish.kernels.column_names import has_no_event_time
from beamish.kernels.expressions import shown_formulas
from beamish.kinds.deduplicate.option import FOREVER, describe_deduplication
from beamish.kinds.refine import describe_explode
from beamish.kinds.window.parts.pairs_once import describe_pairs_once, joins_once
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.modes import ClosingBehavior, OnTimeBehavior, TimestampCombiner
from beamish.watermarks import NoWatermark
from beamish.windows.option import Numbering


def describe(options: WindowOptions, takes: Sequence[Relation]) -> Iterator[tuple[str, str]]:
    """Subjects and words, in order.

    Args:
        options: the options of the stage.
        takes: its inputs.
    """
    if any(relation.is_panes for relation in takes):
        yield "takes", _takes(takes)
    yield "rows", _rows(options, takes)
    if takes[0].key_sets:
        sets = ", ".join(f"({', '.join(one)})" for one in takes[0].key_sets)
        yield "key sets", f"each row is in the groups of {sets}; a key column that is not in the set is null"
    yield from describe_where(takes, options.where)
    if options.deduplication is not None:
        yield "duplicates", describe_deduplication(options.deduplication, takes[0])
    yield "windows", _windows(options)
    if options.numbering is not None:
        yield "numbers", _numbers(options.numbering, takes)
    for _, join in joins_once(options.accumulations):
        yield "pairs", describe_pairs_once(join, options)
    waiting = _watermark(options, takes)
    waiting = waiting.partition("; when rows stop")[0] if options.counts_rows else waiting
    yield "watermark", waiting if options.key_watermark is None else f"{options.key_watermark.describe()}{waiting}"
    yield "clock", _clock(options, takes)
    yield "panes", f"a window fires {_fires(options)}"
    yield "late", _late(options)
    yield "expiry", _expiry(options)
    if options.retention is not None:
        yield "retained", options.retention.describe()
    if options.forget_after is not None:
        yield "forgotten", _forgotten(options)
    yield "bounded", _bounded(options, takes)
    yield "a pane holds", _mode(options)
    if options.derived:
        yield "columns", f"computed: {shown_formulas(options.derived)}"
    if options.having is not None:
        yield "having", f"only panes with {options.having!r} are emitted, and only their retractions"
    if options.explode is not None:
        yield "explode", describe_explode(options.explode)
    yield "timestamp", _timestamp(options)
    yield "dropped", _dropped(options, takes)
    if options.drops_errors:
        yield "errors", _errors(options)


def _takes(takes: Sequence[Relation]) -> str:
    panes = [relation for relation in takes if relation.is_panes]
    named = ", ".join(str(relation.name) for relation in panes)
    whose = "the panes of the stage before" if panes[0].name is None else f"the panes of {named}"
    removal = "; a retraction removes the retracted row" if any(relation.retracts for relation in panes) else ""
    return f"{whose}, before the clocks move{removal}"


def _rows(options: WindowOptions, takes: Sequence[Relation]) -> str:
    keys = ", ".join(map(str, takes[0].keys))
    by = f"by {keys}" if keys else "not keyed: all rows have one key"
    if takes[0].name is not None:
        by = f"of {len(takes)} inputs, {by}"
    values = ", ".join(f"{name} = {accumulation!r}" for name, accumulation in options.accumulations.items())
    return f"{by}; {'; '.join(map(_times, takes))}; accumulated: {values}"


def _times(relation: Relation) -> str:
    time = "event time is the panes' timestamp" if relation.is_panes else f"event time in {relation.event_time}"
    if not relation.has_timestamps:
        time = "panes without a timestamp"
    if has_no_event_time(relation.event_time):
        time = "no event time"
    if relation.is_signed:
        time += "; each is a change: a delete retracts an equal row"
    if relation.name is None:
        return time
    return f"{relation.name}: {time}" + (f", keyed by {', '.join(map(str, relation.keys))}" * bool(relation.keys))


def _windows(options: WindowOptions) -> str:
    assert options.window is not None  # noqa: S101 - checked before it is described
    return options.window.describe()


def _numbers(numbering: Numbering, takes: Sequence[Relation]) -> str:
    """How rows are numbered, and the cost."""
    words = attrs.evolve(numbering, over_stream=numbering.over_stream or not takes[0].keys).describe()
    if numbering.over_stream or not takes[0].keys:
        words += "; a single shard numbers all rows, so one task does all the work of this stage"
    return words


def _watermark(options: WindowOptions, takes: Sequence[Relation]) -> str:
    if takes[0].name is None:
        return "that of the stage before" if takes[0].is_panes else takes[0].policy.describe()
    if all(has_no_event_time(relation.event_time) for relation in takes):
        return NoWatermark().describe()
    fastest = options.by_fastest
    words = f"the {'maximum' if fastest else 'minimum'} of the inputs' watermarks"
    for relation in takes:
        own = "that of its stage" if relation.is_panes else relation.policy.describe().partition("; when rows stop")[0]
        words += f". {relation.name}: {own}"
    if fastest:
        return f"{words}. Rows of slower inputs are late where it has passed the end of their window"
    words += ". It is undefined until every input has one"
    waits = [str(relation.name) for relation in takes if any(not policy.needs_clock for policy in relation.watermarks)]
    if waits:
        words += f"; when rows of {' or '.join(waits)} stop, it stops, since there is no idle_timeout"
    return words


def _clock(options: WindowOptions, takes: Sequence[Relation]) -> str:
    if options.trigger.needs_clock or any(policy.needs_clock for relation in takes for policy in relation.watermarks):
        return (
            "needed: a heartbeat row carries the batch's clock to every shard, so a batch runs at every Spark trigger interval "
            "(writeStream.trigger)"
        )
    if takes[0].name is not None and any(relation.is_panes for relation in takes):
        return "not needed; but on Spark heartbeats carry the inputs' watermarks to every shard"
    return "not needed: nothing here depends on processing time"


def _fires(options: WindowOptions) -> str:
    words = options.trigger.describe()
    if not options.lateness:  # late rows are dropped
        words = words.removesuffix(", then with every bundle of late rows")
    if options.waits_for_end_of_time:
        words += "; the global window ends with the input, as in a batch: a streaming DataFrame is refused"
    return words.replace("the watermark reaches its end", "it is full") if options.counts_rows else words


def _late(options: WindowOptions) -> str:
    lateness = options.lateness_in_words
    if options.counts_rows:
        if options.numbering is None or options.numbering.numbered_by is None:
            kept = f"; a window is stored for {lateness} more, for state() only" if lateness else ""
            return f"rows are numbered on arrival, so none is late{kept}"
        then = f"added until the numbers are {lateness} past it" if lateness else "dropped"
        return f"rows whose number arrives after its window was full are late; they are {then}"
    then = f"added until the watermark is {lateness} past it" if lateness else "dropped"
    return f"rows that arrive after the watermark has reached their window's end are late; they are {then}"


def _expiry(options: WindowOptions) -> str:
    at = f" plus {options.lateness_in_words}" if options.lateness else ""
    what = "its row numbers reach" if options.counts_rows else "the watermark reaches"
    emits = "rows in no pane yet are emitted in a last pane"
    if options.closing is ClosingBehavior.FIRE_ALWAYS:
        emits = "it emits a last pane, even without new rows"
    on_time = "even without" if options.on_time is OnTimeBehavior.FIRE_ALWAYS else "only with"
    return (
        f"a window expires when {what} its end{at}: {emits}, and its state is deleted; the on-time pane is emitted {on_time} "
        "new rows"
    )


def _bounded(options: WindowOptions, takes: Sequence[Relation]) -> str:
    """The state of inactive keys."""
    numbering = options.numbering
    within = options.deduplication.within if options.deduplication is not None else None
    ids = f"; its ids are stored until the watermark is {within} past them" if within is not None else ""
    ids = "; its ids are stored forever" if within == FOREVER else ids
    if numbering is not None and not numbering.over_stream and takes[0].keys:
        if numbering.idle is None:
            return f"no: the number of each key, and its last window, are stored forever; idle='30 days' expires idle keys{ids}"
        return f"the state of a key without new rows is deleted when the watermark is {numbering.idle} past its latest row{ids}"
    if numbering is None and options.never_ends and options.forget_after is None:
        return f"no: the global window of each key is stored forever; .forget_after('30 days') expires idle keys{ids}"
    if numbering is None and options.never_ends:
        return f"the state of a key without new rows is deleted when the watermark is {options.forget_after} past its latest row{ids}"
    return f"the state of a key without new rows is deleted when its last window has expired{ids}"


def _forgotten(options: WindowOptions) -> str:
    return (
        f"a key expires when the watermark is {options.forget_after} past its latest row: rows in no pane yet are emitted in its "
        "last pane, and its state is deleted; a later row starts a new window"
    )


def _mode(options: WindowOptions) -> str:
    if options.discards:
        return "the rows since the window's last pane"
    words = "all rows so far"
    if options.retracts:
        words += "; before it a RETRACTION repeats the pane it replaces"
        if options.window is not None and options.window.merging:
            when = "at once" if options.retracts_at_merge else "together with the merged window's next pane"
            words += f"; panes of merged-away windows are retracted {when}"
    elif options.window is not None and options.window.merging and _fires_twice(options):
        words += (
            "; panes of merged-away windows are not retracted: a table would keep them (accumulating_and_retracting() retracts "
            "them)"
        )
    if options.only_updated:
        words += "; a pane with the same values as the one before is omitted"
    return words


def _fires_twice(options: WindowOptions) -> bool:
    """Whether a window may emit a pane before its last one."""
    return options.lateness > 0 or options.trigger.can_fire_before_end()


def _timestamp(options: WindowOptions) -> str:
    if options.combiner is TimestampCombiner.END_OF_WINDOW:
        all_of_time = options.window is not None and (options.window.is_all_of_time or options.counts_rows)
        return "null" if all_of_time else "the last microsecond of the window"
    words = f"the {options.combiner.value} event time of the pane's new rows that were not late"
    alone = any(one.keeps_left or one.keeps_right for _, one in joins_once(options.accumulations))
    return words + "; null if a pane has unmatched rows only" * (alone and options.never_ends)


def _dropped(options: WindowOptions, takes: Sequence[Relation]) -> str:
    errors = "rows that cause an error, " if options.drops_errors else ""
    return errors + _dropped_by_rule(options, takes)


def _errors(options: WindowOptions) -> str:
    listed = "" if options.lists_dropped else ", and only counted, since only panes are forwarded"
    return f"the row that makes a function raise or a sum overflow is dropped{listed}; an error in a pane's values stops the query"


def _dropped_by_rule(options: WindowOptions, takes: Sequence[Relation]) -> str:
    removals = "removals without a matching row, where that is known, " if _is_signed(takes) else ""
    again = "duplicates, " if options.deduplication is not None else ""
    by_time = any(one.keep_for for _, one in joins_once(options.accumulations))
    again += "rows older than the keep_for of their input, " * by_time
    again += "rows with a null in their key, " * _drops_null_keys(options, takes)
    finished = ", rows of windows whose trigger has finished" * options.trigger.may_lose_rows(options.lateness)
    if options.counts_rows:
        brought = options.numbering is not None and options.numbering.numbered_by
        words = f"{again}{'rows without a number, ' if brought else ''}rows of expired windows{finished}; "
        return words + ("each is emitted with its reason" if options.lists_dropped else "with_dropped() lists them")
    words = f"{removals}{again}rows without event time or with one outside the years 1 to 9999, rows of expired windows{finished}; "
    return words + ("each is emitted with its reason" if options.lists_dropped else "with_dropped() lists them")


def _drops_null_keys(options: WindowOptions, takes: Sequence[Relation]) -> bool:
    joins = (one for one in options.accumulations.values() if isinstance(one, Join))
    return bool(takes[0].keys) and any(one.null_keys == "unmatched" and not all(one.gives_alone) for one in joins)


def _is_signed(takes: Sequence[Relation]) -> bool:
    return any(relation.is_signed for relation in takes)


def describe_shuffled(plan: WindowPlan) -> str:
    """How rows travel to their shards."""
    if plan.preaggregates:
        return "rows are pre-aggregated by key and window before the shuffle"
    return f"rows are packed, not pre-aggregated, before the shuffle: {plan.why_not_preaggregated}"


def describe_stored(plan: WindowPlan, *, per: str = "key and window") -> str:
    """The unit of the state of shards: one row each."""
    columns = ", ".join(f"{field.name} {field.type}" for field in plan.state_schema)
    values = ", and the last emitted values" if plan.options.keeps_values else ""
    values += "".join(part.stores for part in plan.parts)
    return f"{plan.shards} shards; one row per {per} with {columns}{values}"


@attrs.frozen(repr=False)
class _Rows:
    """A number of rows, in source form."""

    count: int

    def __repr__(self) -> str:
        return f"rows={self.count}"


def calls(declared: WindowOptions) -> Iterator[str]:
    """The pipeline calls that declare this."""
    default = WindowOptions()
    if declared.deduplication is not None:
        yield f".{declared.deduplication.call}"
    if declared.window is not None:
        yield f".window({declared.window!r})"
    if declared.trigger != default.trigger or declared.allow_data_loss:
        yield f".trigger({declared.trigger!r}{', allow_data_loss=True' * declared.allow_data_loss})"
    for name, value, undeclared in (
        ("allowed_lateness", declared.allowed_lateness, default.allowed_lateness),
        ("allowed_lateness", _Rows(declared.late_rows), _Rows(0)),
        ("accumulation_mode", declared.mode, None),
        ("on_time_behavior", declared.on_time, default.on_time),
        ("closing_behavior", declared.closing, default.closing),
        ("timestamp_combiner", declared.combiner, default.combiner),
        ("retract_merged", declared.retract_merged, None),
    ):
        if value != undeclared:
            yield f".{name}({value!r})"
    if declared.retention is not None:
        yield f".{declared.retention.call}"
    if declared.forget_after is not None:
        yield f".forget_after({str(declared.forget_after)!r})"
    if declared.key_watermark is not None:
        yield f".{declared.key_watermark.call}"
    if declared.only_updated:
        yield ".only_updated_panes()"
    if declared.with_dropped:
        yield ".with_dropped()"
    if declared.drops_errors:
        yield ".on_error('drop')"
    if declared.accumulations:
        yield f".accumulate({', '.join(f'{name}={accumulation!r}' for name, accumulation in declared.accumulations.items())})"
    if declared.where is not None:
        yield f".where({declared.where!r})"
    if declared.derived:
        yield f".with_columns({shown_formulas(declared.derived)})"
    if declared.having is not None:
        yield f".having({declared.having!r})"
    if declared.explode is not None:
        yield f".explode({declared.explode!r})"

"""Facts as sentences, for checkpoints and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
import pyarrow as pa

from beamish.checkpoint.question import Question, bounds_in_words
from beamish.durations import span_in_words
from beamish.errors import shown
from beamish.instants import END_OF_TIME_US, EPOCH, instant_in_words
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.stored.read_plan import windows_at
from beamish.stage_facts import InputFacts, StageFacts
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.windowings import WINDOWING

SECOND_US = 1_000_000
MOST_WINDOWS = 3
"""How many windows are described individually."""


@attrs.frozen
class QueryFacts:
    """The progress of a query.

    Attributes:
        batch: the batch.
        clock_us: its clock.
        next_watermark_us: the watermark of the next one; NO_WATERMARK_US: unknown.
        is_last: whether it is the last committed batch.
    """

    batch: int
    clock_us: int
    next_watermark_us: int
    is_last: bool


def rows_of(windows: pa.Table) -> list[dict[str, Any]]:
    """Windows (``kinds/window/stored/at_rest.py``) as rows, with ``start`` and ``end``: their bounds, microseconds or row numbers."""
    bounds = windows["window"].combine_chunks()
    starts, ends = (bounds.field(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    rows: list[dict[str, Any]] = windows.drop_columns(["window"]).to_pylist()
    for row, start, end in zip(rows, starts, ends, strict=True):
        row["start"] = -END_OF_TIME_US if start is None else start
        row["end"] = END_OF_TIME_US if end is None else end
    return rows


def why(
    stage: StageFacts, question: Question, windows: Sequence[Mapping[str, Any]], query: QueryFacts | None = None
) -> str:
    """Why the selected windows have not fired, a paragraph for each.

    Args:
        stage: their stage.
        question: the selection.
        windows: the stored ones, from ``rows_of``.
        query: for a checkpoint, the progress of the query; None: for a script.
    """
    exact = [window for window in windows if window["start"] == question.start]
    meant = exact if question.start is not None and exact else list(windows)
    meant.sort(key=lambda window: (window["closed"], window["end"], window["start"]))
    paragraphs = [" ".join(_kept(stage, window, query)) for window in meant[:MOST_WINDOWS]]
    if not meant:
        asked = question.key.get(WINDOWING)
        plans = {name: of.plan for name, of in stage.plans.items() if asked in (None, name)}
        each = [sentence for name, plan in plans.items() for sentence in _not_kept(stage, plan, name, question)]
        paragraphs = [" ".join([*each, *dropped_in_words(stage), *how_far(stage, None, query)])]
    if len(meant) > MOST_WINDOWS:
        paragraphs.append(f"{len(meant) - MOST_WINDOWS} more windows; narrow it down with why(key=..., window=...).")
    unknown = [
        f"Unknown: {sentence}." for sentence in stage.unknown if stage.about.number or "descriptions" not in sentence
    ]
    return "\n\n".join([*paragraphs, *unknown])


def _kept(stage: StageFacts, window: Mapping[str, Any], query: QueryFacts | None) -> Iterator[str]:
    plan = stage.plans[window.get(WINDOWING)].plan
    name = window_in_words(plan, window)
    came = _panes_in_words(stage, window)
    if window["closed"]:
        yield f"{name} is closed: its trigger has finished. {came}."
        yield f"It is stored only to drop later rows for it{_until_expiry(stage, window).replace(', when', ', until', 1)}."
        yield from dropped_in_words(stage)
        return
    yield f"{name} is open. {came}; {_new_rows_in_words(plan, window)}."
    if window.get("last_values") is not None:
        yield f"The last pane had {_values(window['last_values'])}."
    if window.get("values") is not None:
        yield f"A pane would hold {_values(window['values'])} now."
    if window["waits_for"] is not None:
        yield f"It waits for {window['waits_for']}."
    if window.get("watermark") is not None:
        yield f"The watermark of its key is {_watermark(_us(window['watermark']))}."
    yield f"Its trigger: a window fires {plan.options.trigger.describe()}."
    yield from how_far(stage, window["end"], query)
    if window["expires"] is not None:
        yield f"Regardless of its trigger, rows in no pane yet are emitted when it expires{_until_expiry(stage, window)}."
    yield from _after_it_fired(stage)
    yield from dropped_in_words(stage)


def _panes_in_words(stage: StageFacts, window: Mapping[str, Any]) -> str:
    panes = int(window["panes"])
    if not panes:
        return "It has emitted no pane yet"
    if "having" in stage.about.lines:
        return f"It fired {_count(panes, 'time')}, the last time {window['last_timing']}, and .having(...) may have filtered out its panes"
    return f"It has emitted {_count(panes, 'pane')}, the last one {window['last_timing']}"


def _new_rows_in_words(plan: WindowPlan, window: Mapping[str, Any]) -> str:
    rows = int(window["new_rows"])
    if not rows and window["panes"] and not plan.options.only_updated:
        return "no row has arrived since its last pane"
    return f"{_count(rows, 'row')} {'is' if rows == 1 else 'are'} in no pane yet"


def _not_kept(stage: StageFacts, plan: WindowPlan, windowing: str | None, question: Question) -> Iterator[str]:
    if windowing is not None:
        yield f"In the windowing {windowing!r}:"
    key = ", ".join(f"{name}={shown(value)}" for name, value in question.key.items())
    whose = f" of key {key}" if key else ""
    if question.start is None:
        yield f"No window{whose} is stored." if stage.windows else f"No window{whose} is stored, nor any other."
        unless = ", unless .having(...) filtered them out," * ("having" in stage.about.lines)
        yield (
            f"Either no row arrived for it, or all were dropped, or its windows expired: then their last panes were emitted{unless} "
            "and their state was deleted."
        )
        yield from filtered(stage)
    else:
        yield from _no_such_window(stage, plan, question, whose)


def _no_such_window(stage: StageFacts, plan: WindowPlan, question: Question, whose: str) -> Iterator[str]:
    start = question.start
    assert start is not None  # noqa: S101 - a window is asked for
    at = windows_at(plan, start)
    wanted = bounds_in_words(plan, start, question.end)
    if at is None:
        yield (
            f"No window{whose} that contains {wanted.partition(',')[0][1:]} is stored: no row created one, or it expired and its "
            "state was deleted."
        )
        yield from filtered(stage)
        return
    exact = [bounds for bounds in at if bounds[0] == start and question.end in (None, bounds[1])]
    if not exact:
        near = ", ".join(bounds_in_words(plan, *bounds) for bounds in at) or "none"
        yield (
            f"There is no window {wanted}: windows are {plan.window.describe()}; those that contain {instant_in_words(start)}: "
            f"{near}."
        )
    for bounds in exact or at:
        name, expires = bounds_in_words(plan, *bounds), int(plan.expiry_us(bounds[1]))
        of_key = plan.options.key_watermark
        watermark, reached_us = "the watermark", stage.watermark_us
        if of_key is not None:
            watermark, reached_us = "the watermark of its key", of_key.least_us(stage.watermark_us)
        later = "" if of_key is None else " or later"
        if expires <= reached_us:
            yield (
                f"The window {name}{whose} has expired: {watermark}, {_watermark(reached_us)}{later}, is past its "
                f"end{_lateness(plan)}. {_if_rows_came(stage)}, and its state was deleted; rows that arrive for it now are dropped "
                "as expired."
            )
        else:
            ended = "" if bounds[1] > reached_us else ", though it has ended"
            or_expired = "" if of_key is None else ", or it has expired"
            yield (
                f"The window {name}{whose} is not open{ended}: no row has been added to it{or_expired}. It starts with its first row, if "
                f"that arrives before {watermark} reaches {instant_in_words(expires)}."
            )
            yield from filtered(stage)


def _if_rows_came(stage: StageFacts) -> str:
    if "having" in stage.about.lines:
        return f"If it had rows, it fired, and .having(...) may have filtered out its panes ({stage.about.lines['having']})"
    return "If it had rows, those in no pane yet were emitted in its last pane"


def filtered(stage: StageFacts) -> Iterator[str]:
    """The condition on its rows, if it has one."""
    if "where" in stage.about.lines:
        yield "Only rows that satisfy .where(...) are added; others are not counted as dropped."


def how_far(stage: StageFacts, end: int | None, query: QueryFacts | None) -> Iterator[str]:
    """The clocks, and what holds them back; ``end``: the watermark that is waited for, if any."""
    plan = stage.plan
    at = "" if query is None else f" after batch {query.batch}"
    clock_us = stage.clock_us if query is None else query.clock_us
    if plan is not None and plan.window.counts_rows:
        return
    if stage.watermark_us == NO_WATERMARK_US:
        yield f"There is no watermark yet{at}."
    else:
        yield f"The watermark is {_watermark(stage.watermark_us)}{at}{_ahead(stage.watermark_us, clock_us)}."
    holds = held_back_by(stage)
    if holds:
        yield holds
    elif query is None:
        yield _moved_in_script(stage)
    elif len(stage.inputs) == 1 and stage.inputs[0].moves is not None:
        yield f"It is {stage.inputs[0].moves}."
    elif len(stage.inputs) == 1 and stage.inputs[0].stage is not None:
        yield f"It is that of stage {stage.inputs[0].stage}."
    if query is not None and stage.follows_query and query.next_watermark_us > stage.watermark_us:
        words = (
            f"The rows of the last batch advance it to {instant_in_words(query.next_watermark_us)}"
            f"{_ahead(query.next_watermark_us, clock_us)}, from the next batch on"
        )
        if end is not None and stage.watermark_us < end <= query.next_watermark_us:
            meant = "what it waits for" if plan is None else "this window's end"
            words += f": that is past {meant}, but a batch must run: the query must be running (or run again)"
        yield f"{words}."
    if plan is not None and plan.options.key_watermark is not None:
        yield f"Windows follow the watermark of their key; it is that of its rows, but at most {plan.options.key_watermark.at_most} behind."
    if plan is not None and plan.options.trigger.needs_clock:
        yield f"The clock is {instant_in_words(stage.clock_us)}{at}; it moves only with batches."


def _moved_in_script(stage: StageFacts) -> str:
    if any(one.stage for one in stage.inputs):
        return "It is that of the stage before."
    if any(one.lag_us is not None for one in stage.inputs):
        return "It follows the clock: call advance_processing_time_to(...)."
    return "In a TestStream rows do not move the watermark: call advance_watermark_to(...)."


def holding(stage: StageFacts) -> InputFacts | None:
    """The input of a merge that holds the watermark back; None: it is the only one, all are equal, the fastest counts, or that is unknown."""
    least, greatest = _extremes(stage)
    by_fastest = stage.plan is not None and stage.plan.options.by_fastest
    return None if by_fastest or least.reaches_us == greatest.reaches_us else least


def _extremes(stage: StageFacts) -> tuple[InputFacts, InputFacts]:
    """The input that reaches least, and that which reaches furthest."""
    order = sorted(stage.inputs or [InputFacts()], key=lambda one: one.reaches_us)
    return order[0], order[-1]


def held_back_by(stage: StageFacts) -> str:
    """Which input of a merge holds the watermark back, as a sentence; empty: none, or unknown."""
    least, greatest = _extremes(stage)
    if holding(stage) is None:
        return ""
    if least.reaches_us == NO_WATERMARK_US:
        return (
            f"Input {_name(least)} holds it back: none of its rows has advanced its watermark, and the stage has none until "
            "every input has one."
        )
    words = f"Input {_name(least)} holds it back: "
    if NO_WATERMARK_US not in (least.latest_us, greatest.latest_us) and least.latest_us < greatest.latest_us:
        behind = span_in_words(greatest.latest_us - least.latest_us)
        words += f"its latest row is at {instant_in_words(least.latest_us)}, {behind} behind that of {_name(greatest)}"
        delay_us = least.delay_us
        return words + (f", and its watermark is {span_in_words(delay_us)} behind its rows." if delay_us else ".")
    return (
        words
        + f"its own watermark is {_watermark(least.reaches_us)}, that of {_name(greatest)} is {_watermark(greatest.reaches_us)}."
    )


def _after_it_fired(stage: StageFacts) -> Iterator[str]:
    """The steps between a firing and its output: ``having`` and suppress."""
    lines = stage.about.lines
    if "having" in lines:
        yield f"Its panes are filtered: {lines['having']}."
    if stage.about.suppress is not None:
        held = f"; it holds {_count(stage.held[1], 'update')} now" if stage.held else ""
        yield f"Its panes are buffered by the suppress {stage.about.suppress!r}{held}: see state(...).held()."


def dropped_in_words(stage: StageFacts) -> Iterator[str]:
    """The number of its dropped rows, if there are any."""
    if stage.dropped:
        each = ", ".join(f"{count:,} as {reason}" for reason, count in stage.dropped.items())
        yield f"Rows dropped by this stage so far: {each}."


def summary(
    stages: Sequence[StageFacts],
    query: QueryFacts,
    sizes: Mapping[int, int],
    next_windows: Mapping[int, Sequence[Mapping[str, Any]]],
) -> str:
    """A checkpoint, stage by stage.

    Args:
        stages: its stages.
        query: the progress of the query.
        sizes: bytes of state, by stage.
        next_windows: some windows due next, by stage, as for ``why``.
    """
    last = "the last batch" if query.is_last else "not the last batch"
    head = f"batch {query.batch} ({last}), clock {instant_in_words(query.clock_us // SECOND_US * SECOND_US)} UTC"
    if query.next_watermark_us != NO_WATERMARK_US:
        ahead = _ahead(query.next_watermark_us, query.clock_us)
        head += f"; watermark of the next batch: {instant_in_words(query.next_watermark_us)}{ahead}"
    blocks = [head]
    for place, stage in enumerate(stages):
        lines = [
            f"{subject:<12} {words}"
            for subject, words in stage_lines(stage, query.clock_us, sizes[place], next_windows.get(place, ()))
        ]
        blocks.append("\n".join([f"stage {place + 1} of {len(stages)}", *lines]))
    return "\n\n".join(blocks)


def stage_lines(
    stage: StageFacts, clock_us: int, size: int, next_windows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """A stage: subjects and words; ``clock_us``: of the query."""
    lines, plan = stage.about.lines, stage.plan
    for subject in ("rows", "windows"):
        if subject in lines:
            yield subject, lines[subject]
    if plan is not None and "windows" not in lines:
        yield "windows", stage.windows_in_words
    if plan is not None:
        yield "fires", plan.options.trigger.describe()
    if plan is None and lines and "rows" not in lines:
        yield next(iter(lines.items()))
    watermark = f"{_watermark(stage.watermark_us)}{_ahead(stage.watermark_us, clock_us)}"
    yield "watermark", " ".join(filter(None, [watermark, _brackets(held_back_by(stage))]))
    if stage.clock_us:
        yield "clock", instant_in_words(stage.clock_us)
    size_words = f"{size:,} bytes in {len(stage.stored_shards)} of {stage.shards} shards"
    if plan is not None:
        size_words = f"{_count(stage.windows, 'window')} in {_count(len(stage.segments), 'segment')}; {size_words}"
    yield "state", size_words
    if stage.dropped:
        yield "dropped", ", ".join(f"{count:,} {reason}" for reason, count in stage.dropped.items())
    if stage.rows_out is not None:
        yield "emitted", _count(stage.rows_out, "row")
    if stage.held is not None:
        yield "held", f"{_count(stage.held[1], 'update')} by the suppress {stage.held[0]!r}"
    for window in next_windows:
        assert plan is not None  # noqa: S101 - it has windows
        yield "next", f"{window_in_words(plan, window)} waits for {window['waits_for'] or 'an unknown condition'}"
    for sentence in stage.unknown:
        yield "unknown", sentence


def window_in_words(plan: WindowPlan, window: Mapping[str, Any]) -> str:
    """A window with its key."""
    key = {**(window.get("key") or {}), **({WINDOWING: window[WINDOWING]} if WINDOWING in window else {})}
    whose = f" of {', '.join(f'{name}={shown(value)}' for name, value in key.items())}" if key else ""
    return f"The window {bounds_in_words(plan, window['start'], window['end'])}{whose}"


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _until_expiry(stage: StageFacts, window: Mapping[str, Any]) -> str:
    if window["expires"] is None:
        return ""
    plan, expires_us = stage.plans[window.get(WINDOWING)].plan, _us(window["expires"])
    of_key = plan.options.key_watermark is not None
    words = (
        f", when {'its' if of_key else 'the'} watermark reaches {instant_in_words(expires_us)}{plan.unless_extended}"
    )
    known = window.get("watermark")
    reached_us = _us(known) if known is not None else NO_WATERMARK_US if of_key else stage.watermark_us
    if reached_us == NO_WATERMARK_US or expires_us <= reached_us:
        return words
    return f"{words}: {span_in_words(expires_us - reached_us)} to go"


def _us(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def _lateness(plan: WindowPlan) -> str:
    return f" plus the allowed lateness of {plan.options.lateness_in_words}" if plan.options.lateness else ""


def _watermark(us: int) -> str:
    if us == NO_WATERMARK_US:
        return "none yet"
    return "at the end of time" if us == END_OF_TIME_US else f"at {instant_in_words(us)}"


def _ahead(watermark_us: int, clock_us: int) -> str:
    """How far a watermark is ahead of the clock, if by a second or more; clock 0: unknown, or not moved in a script."""
    if not clock_us or watermark_us < clock_us + SECOND_US or watermark_us == END_OF_TIME_US:
        return ""
    return f", {span_in_words(watermark_us - clock_us)} ahead of the clock"


def _name(input_: InputFacts) -> str:
    return f"`{input_.name}`"


def _brackets(words: str) -> str:
    return f"({words.rstrip('.')})" if words else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

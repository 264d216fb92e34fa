"""Scripts for a pipeline, with times at the edges of its windows and deadlines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import attrs
from hypothesis import strategies as st

from beamish.durations import DurationLike, not_negative
from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.forms import FromChangelog
from beamish.instants import instant, instant_us
from beamish.script import Row
from beamish.testing.strategies.changes import as_rows
from beamish.testing.strategies.rows import Rows, numbers
from beamish.testing.strategies.rows import rows as rows_of
from beamish.testing.strategies.spans import Leaf, Spans
from beamish.testing.stream import Runnable, TestStream

_PARTS = 20
"""Shares are rounded to twentieths."""
_RECENT = 8
"""Number of newest rows whose deadlines the watermark moves to."""


def scripts(
    pipeline: Runnable,
    rows: Any,
    *,
    keys: int = 2,
    batches: int = 10,
    disorder: DurationLike | None = None,
    late: float = 0.15,
    too_late: float = 0.1,
    duplicates: float = 0.1,
    unique: Sequence[str] = (),
    idle: bool = True,
    clock: bool = True,
    start: float | datetime = 0,
    ends: bool = True,
) -> st.SearchStrategy[TestStream]:
    """Scripts for a pipeline. They shrink to few rows, small times and no disorder.

    Times are read off the pipeline: rows are at, just before and just after the edges of windows, gaps and deadlines, and so are
    the watermark and the clock. The event time replaces that of ``rows``: seconds, or a datetime where ``rows`` has one; null stays null. Changes of
    a table at one key and time are equal. For ``from_changelog`` a row becomes an insert, an update or a delete.

    Args:
        pipeline: any pipeline.
        rows: a strategy of dicts, or a schema (``strategies.rows``); of several inputs a mapping of these by name, or one for all.
        keys: number of distinct keys, at least 1.
        batches: maximum number of steps, at least 1.
        disorder: how far a row may be behind the newest one of its input. The watermark then follows the pipeline's policy, as in
            production, and rows are late where that disorder lets them be. None: the watermark moves freely.
        late: share of rows that arrive after the end of their window, but within the lateness.
        too_late: share of rows that arrive after that.
        duplicates: share of rows that repeat an earlier one.
        unique: the columns that identify a row in the source: rows that are equal in them are equal in all.
        idle: whether an input of several may have no rows.
        clock: whether the clock moves.
        start: the earliest event time: seconds since the epoch or an aware datetime.
        ends: whether the watermark goes to the end of time at last; one that follows the clock goes past all deadlines.

    Raises:
        OptionError: an argument is invalid, or an input lacks rows.
        PipelineError: the pipeline is invalid.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count
        >>> from beamish.testing import strategies as st
        >>> visits = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
        ...     .key_by("user")
        ...     .window(bm.Sessions("10 minutes"))
        ...     .accumulate(n=Count())
        ... )
        >>> scripts = st.scripts(visits, rows=st.rows("user string, ts timestamp"))
    """
    if not isinstance(getattr(pipeline, "flow", None), Flow):
        raise OptionError(f"scripts({pipeline!r}): must be a pipeline, such as bm.Pipeline()...accumulate(n=Count())")
    _check_count("keys", keys)
    _check_count("batches", batches)
    flow = pipeline.flow.completed
    flow.check()
    spans = Spans(flow)
    play = _Play(
        spans,
        instant_us("scripts(start)", start, OptionError),
        None if disorder is None else not_negative("scripts(disorder)", disorder).us,
        tuple(unique),
        clock,
        ends,
    )
    shares = {"late": late, "too late": too_late, "duplicate": duplicates}
    kinds = _kinds(shares, disordered=disorder != 0)
    inputs = list(_by_input(spans, rows).values())
    silent = [*[None] * 2 * len(inputs), *range(len(inputs))] if idle and len(inputs) > 1 else [None]
    pools = st.lists(inputs[0], min_size=keys, max_size=keys)
    return _scripts(play, pools, st.sampled_from(silent), _several(_moves(inputs, kinds), batches))


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"scripts({name}={value!r}): must be a whole number of at least 1")


def _by_input(spans: Spans, rows: Any) -> Mapping[str | None, Rows]:
    names = [leaf.source.name for leaf in spans.leaves]
    several = isinstance(rows, Mapping)
    if several and (missing := [name for name in names if name not in rows]):
        raise OptionError(f"scripts(rows={rows!r}): the rows of {missing[0]!r} are missing; name each input: {names}")
    return {name: _strategy(rows[name] if several else rows) for name in names}


def _strategy(rows: Any) -> Rows:
    return rows if isinstance(rows, st.SearchStrategy) else rows_of(rows)


def _kinds(shares: Mapping[str, Any], *, disordered: bool) -> list[str]:
    """Kinds of rows, each as often as its share."""
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise OptionError(f"scripts({name.replace(' ', '_')}={share!r}): must be a share, from 0 to 1")
    kinds = [name for name, share in shares.items() for _ in range(round(share * _PARTS))]
    left = max(_PARTS - len(kinds), 1 if not kinds else 0)
    return ["newest"] * (left - left // 3) + ["in time" if disordered else "newest"] * (left // 3) + kinds


class _Pick(NamedTuple):
    """A row to be: its values, and choices that are read modulo the number of possibilities.

    With ``kept`` 0 the row is left out, but later ones have the times that they have after it. So scripts shrink row by row.
    """

    row: Mapping[str, Any]
    kind: str
    key: int
    time: int
    change: int
    kept: int


class _Move(NamedTuple):
    """A step to be, likewise; ``watermark`` and ``clock``: 0: it stays."""

    input: int
    picks: Sequence[_Pick]
    watermark: int
    clock: int


@st.composite
def _scripts(
    draw: st.DrawFn,
    play: _Play,
    pools: st.SearchStrategy[list[dict[str, Any]]],
    silent: st.SearchStrategy[int | None],
    several: st.SearchStrategy[list[_Move]],
) -> TestStream:
    pool, without = draw(pools), draw(silent)
    if play.disorder_us is None and draw(st.sampled_from((False, False, True))):
        play = attrs.evolve(play, in_time=True)
    return play.script(pool, [move for move in draw(several) if without is None or move.input != without])


def _several(moves: st.SearchStrategy[_Move], batches: int) -> st.SearchStrategy[list[_Move]]:
    """Up to this many moves, often many."""
    of_size = {
        fewest: st.lists(moves, min_size=fewest, max_size=batches) for fewest in (1, (batches + 1) // 2, batches)
    }
    return st.sampled_from(list(of_size)).flatmap(of_size.__getitem__)


def _moves(rows: Sequence[Rows], kinds: Sequence[str]) -> st.SearchStrategy[_Move]:
    number, few, kept = numbers(40), numbers(5), numbers(19)
    seldom = st.one_of(st.just(0), st.just(0), numbers(41))

    def of_input(place: int) -> st.SearchStrategy[_Move]:
        picks = st.builds(_Pick, rows[place], st.sampled_from(kinds), few, number, few, kept)
        return st.builds(_Move, st.just(place), st.lists(picks, max_size=4), seldom, seldom)

    return st.one_of([of_input(place) for place in range(len(rows))])


@attrs.define
class _Input:
    """An input while a script is made.

    Attributes:
        leaf: its source.
        newest_us: the newest event time.
        watermark_us: its watermark; None: it has none yet.
        arrived: its rows, each with its event time.
        by_identity: the rows that later ones must equal.
        table: of a changelog, the rows that are in the table.
    """

    leaf: Leaf
    newest_us: int
    watermark_us: int | None = None
    arrived: list[tuple[dict[str, Any], int]] = attrs.field(factory=list)
    by_identity: dict[str, tuple[dict[str, Any], int]] = attrs.field(factory=dict)
    table: list[dict[str, Any]] = attrs.field(factory=list)

    @property
    def lag_us(self) -> int | None:
        """How far its watermark trails the clock; None: it does not follow the clock."""
        policy = self.leaf.source.watermark
        return policy.lag.us if policy is not None and policy.lag is not None else None


@attrs.frozen
class _Play:
    """Makes a script of moves.

    Attributes:
        spans: the times of the pipeline.
        start_us: the earliest event time.
        disorder_us: how far a row may be behind the newest one; None: any distance.
        unique: the columns that identify a row.
        clock: whether the clock moves.
        ends: whether the watermark goes to the end of time.
        in_time: whether no row is late, so that none is dropped.
    """

    spans: Spans
    start_us: int
    disorder_us: int | None
    unique: tuple[str, ...]
    clock: bool
    ends: bool
    in_time: bool = False

    def script(self, pool: Sequence[Row], moves: Iterable[_Move]) -> TestStream:
        """The script of these moves; ``pool``: rows that have the keys."""
        inputs = [_Input(leaf, self.start_us) for leaf in self.spans.leaves]
        script, clock_us = TestStream(), 0
        for move in moves:
            taken = inputs[move.input]
            watermark_us = self._watermark_us(taken, inputs, move.watermark)
            to_us = self._clock_us(taken, inputs, clock_us, move)
            if taken.lag_us is not None and to_us is not None:
                taken.watermark_us = to_us - taken.lag_us
            clock_us = clock_us if to_us is None else to_us
            arriving = [(self._arriving(taken, inputs, pool, pick), pick.kept) for pick in move.picks]
            bundle = [row for rows, kept in arriving if kept or not self._may_leave_out(taken) for row in rows]
            script = _stepped(script, bundle, taken.leaf.source.name, watermark_us, to_us)
        return self._ended(script, inputs, clock_us) if self.ends else script

    def _may_leave_out(self, taken: _Input) -> bool:
        """Whether rows may be left out: no watermark follows them, and no change depends on them."""
        return self.disorder_us is None and taken.leaf.source.form is None

    def _watermark_us(self, taken: _Input, inputs: Sequence[_Input], choice: int) -> int | None:
        """Where the watermark of an input moves to; None: it stays."""
        if not choice or taken.lag_us is not None or not taken.leaf.is_timed:
            return None
        least = max(0 if taken.watermark_us is None else taken.watermark_us, self.start_us)
        if self.disorder_us is not None:
            policy = taken.leaf.source.watermark
            after = [taken.newest_us - (policy.delay.us if policy is not None else 0)] if taken.arrived else []
        else:
            after = self._deadlines_us(inputs)
        later = sorted({us for us in after if us > least})
        if not later:
            return None
        taken.watermark_us = later[(choice - 1) % len(later)]
        return taken.watermark_us

    def _deadlines_us(self, inputs: Sequence[_Input]) -> list[int]:
        """At, before and after what is due for the newest rows, and these rows."""
        recent = [(one.leaf, time) for one in inputs for _, time in one.arrived[-_RECENT:]]
        due = {us for leaf, time in recent for us in (time, *leaf.deadlines_us(time))}
        tick, longest = self.spans.tick_us, self.spans.durations_us[-1]
        return [us + by for us in due for by in (0, -tick, tick, longest)]

    def _clock_us(self, taken: _Input, inputs: Sequence[_Input], clock_us: int, move: _Move) -> int | None:
        """Where the clock moves to; None: it stays."""
        lag_us = taken.lag_us
        if not move.clock or not (self.clock or lag_us is not None):
            return None
        if lag_us is not None and move.clock % 2:
            later = sorted({us + lag_us for us in self._deadlines_us(inputs) if us + lag_us > clock_us})
            if later:
                return later[move.clock // 2 % len(later)]
        distances = self.spans.distances_us[1:]
        return clock_us + distances[(move.clock - 1) % len(distances)]

    def _arriving(
        self, taken: _Input, inputs: Sequence[_Input], pool: Sequence[Row], pick: _Pick
    ) -> list[dict[str, Any]]:
        """The rows of a pick; several for a change."""
        source = taken.leaf.source
        if pick.kind == "duplicate" and taken.arrived and source.form is None and self._may_repeat(taken, pick):
            row, time_us = taken.arrived[pick.time % len(taken.arrived)]
        else:
            time_us = self._time_us(taken, inputs, pick)
            row = self._row(taken, inputs, pool, pick, time_us)
            if identity := self.unique or (taken.leaf.identity if taken.leaf.is_table else ()):
                same = repr([row.get(column) for column in identity])
                row, time_us = taken.by_identity.setdefault(same, (row, time_us))
        taken.newest_us = max(taken.newest_us, time_us)
        taken.arrived.append((row, time_us))
        return [dict(row)] if source.form is None else _changed(taken, row, pick)

    def _may_repeat(self, taken: _Input, pick: _Pick) -> bool:
        _, time_us = taken.arrived[pick.time % len(taken.arrived)]
        if self.in_time:
            return False
        return self.disorder_us is None or time_us >= taken.newest_us - self.disorder_us

    def _row(
        self, taken: _Input, inputs: Sequence[_Input], pool: Sequence[Row], pick: _Pick, time_us: int
    ) -> dict[str, Any]:
        source, row = taken.leaf.source, dict(pick.row)
        like = pool[pick.key % len(pool)]
        for column, of in zip(source.keys, inputs[0].leaf.source.keys, strict=False):
            row[column] = like.get(of, row.get(column))
        if taken.leaf.is_timed and row.get(source.event_time, 0) is not None:
            row[source.event_time] = _as_time(time_us, row.get(source.event_time))
        return row

    def _time_us(self, taken: _Input, inputs: Sequence[_Input], pick: _Pick) -> int:
        """The time of a row; of a script in time at least the watermark, if its windows have ended."""
        if not self.in_time:
            return self._any_time_us(taken, inputs, pick)
        kind = pick.kind if pick.kind == "newest" else "in time"
        time_us, watermark_us = self._any_time_us(taken, inputs, pick._replace(kind=kind)), _merged_us(inputs)
        is_late = _kind(taken.leaf, taken.leaf.ends_us([time_us])[0], watermark_us) != "in time"
        return time_us if watermark_us is None or not is_late else max(time_us, watermark_us)

    def _any_time_us(self, taken: _Input, inputs: Sequence[_Input], pick: _Pick) -> int:
        if not taken.arrived:
            first = (0, *self.spans.distances_us[1:4])
            return self.start_us + first[pick.time % len(first)]
        if pick.kind == "newest":
            distances = self.spans.distances_us
            return taken.newest_us + distances[pick.time % len(distances)]
        watermark_us = _merged_us(inputs)
        times = self._earlier_us(taken, watermark_us)
        kind = "in time" if pick.kind == "duplicate" else pick.kind
        if self.disorder_us is not None and kind == "in time":
            return times[pick.time % len(times)]
        ends = taken.leaf.ends_us(times)
        fitting = [us for us, end in zip(times, ends, strict=True) if _kind(taken.leaf, end, watermark_us) == kind]
        # With a declared disorder a row may be late only where that is longer than the delay.
        chosen = fitting or ([taken.newest_us] if self.disorder_us is None else times)
        return chosen[pick.time % len(chosen)]

    def _earlier_us(self, taken: _Input, watermark_us: int | None) -> list[int]:
        """Times up to the newest one, the latest first: at each distance from it, and about the edges of its windows.

        Those whose deadlines the watermark is at, too.
        """
        tick, newest = self.spans.tick_us, taken.newest_us
        windows = taken.leaf.bounds_us(newest)
        edges = [edge + by for bounds in windows for edge in bounds for by in (0, -tick)]
        if watermark_us is not None:
            waits = {end - newest + by for _, end in windows for by in (0, taken.leaf.lateness_us)}
            edges += [watermark_us - wait + by for wait in waits for by in (0, tick)]
        least = self.start_us if self.disorder_us is None else max(self.start_us, newest - self.disorder_us)
        back = [newest - us for us in self.spans.distances_us]
        extreme = [] if self.disorder_us is None else [newest - self.disorder_us]
        return sorted({us for us in (*back, *edges, *extreme) if least <= us <= newest}, reverse=True)

    def _ended(self, script: TestStream, inputs: Sequence[_Input], clock_us: int) -> TestStream:
        lags = [one.lag_us for one in inputs if one.lag_us is not None]
        for one in inputs:
            if lags and one.lag_us is None:
                script = script.advance_watermark_to_infinity(input=one.leaf.source.name)
        if not lags:
            return script.advance_watermark_to_infinity()
        newest = max(one.newest_us for one in inputs)
        last_us = max(newest, clock_us) + max(lags) + 2 * self.spans.distances_us[-1]
        return script.advance_processing_time_to(_seconds(last_us)).step(
            clock=_seconds(last_us + 2 * self.spans.distances_us[-1])
        )


def _changed(taken: _Input, row: dict[str, Any], pick: _Pick) -> list[dict[str, Any]]:
    """The rows of a change of the input's table: mostly an insert, or an update or a delete of a row that is there."""
    form = taken.leaf.source.form
    if not isinstance(form, FromChangelog):
        raise OptionError(
            f"scripts: rows of {form and form.call()} are the panes of a query: draw scripts for first.then(second)"
        )
    before = taken.table.pop(pick.time % len(taken.table)) if pick.change > 2 and taken.table else None
    after = None if before is not None and pick.change == 5 else row
    taken.table += [] if after is None else [after]
    return as_rows(form.format, before, after)


def _kind(leaf: Leaf, end_us: int, watermark_us: int | None) -> str:
    """Whether a row whose last window has this end is in time, late or too late."""
    if watermark_us is None or watermark_us < end_us:
        return "in time"
    return "late" if watermark_us < end_us + leaf.lateness_us else "too late"


def _merged_us(inputs: Sequence[_Input]) -> int | None:
    """The least watermark; None: an input has none yet."""
    known = [one.watermark_us for one in inputs if one.leaf.is_timed]
    return None if None in known or not known else min(us for us in known if us is not None)


def _as_time(us: int, like: Any) -> Any:
    return instant(us) if isinstance(like, datetime) else _seconds(us)


def _seconds(us: int) -> float:
    """Seconds, as a whole number if they are."""
    return us // 1_000_000 if us % 1_000_000 == 0 else us / 1e6


def _stepped(
    script: TestStream, rows: Sequence[Row], of: str | None, watermark_us: int | None, clock_us: int | None
) -> TestStream:
    """The script with one more step, as the call for what it has; unchanged if it has nothing."""
    watermark, clock = (None if us is None else _seconds(us) for us in (watermark_us, clock_us))
    match (bool(rows), watermark is not None, clock is not None):
        case (False, False, False):
            return script
        case (True, False, False):
            return script.add(rows, input=of)
        case (False, True, False):
            return script.advance_watermark_to(watermark, input=of)  # type: ignore[arg-type]
        case (False, False, True):
            return script.advance_processing_time_to(clock)  # type: ignore[arg-type]
        case _:
            return script.step(rows, watermark=watermark, clock=clock, input=of)

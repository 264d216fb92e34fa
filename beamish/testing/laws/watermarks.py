"""The laws of watermark policies (beamish/watermarks.py), on the arrivals of a source, and their check.

An arrival is a pair of seconds: the clock, and the event time of a row. Each is a step, and moves the watermark in the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from beamish.durations import DurationLike, duration
from beamish.errors import OptionError
from beamish.instants import instant_us
from beamish.testing.laws.report import Law, require, search
from beamish.testing.laws.seen import Seen
from beamish.watermarks import Progress, Watermark, known_us

Arrivals = Sequence[tuple[float, float]]


def check_watermark(
    policy: Watermark,
    *,
    arrivals: st.SearchStrategy[Arrivals] | None = None,
    allowed_lateness: DurationLike = 0,
    examples: int = 200,
    seed: int = 0,
    floor: float = 0.02,
) -> Seen:
    """Check a watermark policy against the disorder of a source.

    The laws: the watermark never goes back; no row of the source arrives behind it by more than the allowed lateness; where it
    follows the clock, an idle source does not stop it.

    Args:
        policy: the policy, such as ``bm.BoundedOutOfOrderness("30 seconds")``.
        arrivals: a strategy of what the source may do: lists of pairs of seconds, the clock and the event time of a row, in order
            of arrival; None: any rows, without the law that they are in time.
        allowed_lateness: of the pipeline.
        examples: the number of examples.
        seed: of the examples; another seed draws others.
        floor: share of the examples in which rows must arrive out of order, if ``arrivals`` are given, and in which each law must
            have something to compare; 0: none.

    Returns:
        what was drawn.

    Raises:
        LawError: a law does not hold, with the fewest rows that break it.
        VacuousError: too few examples had rows out of order.
        OptionError: not a watermark policy, or a negative lateness.

    Example:
        A source that delays rows by up to 5 seconds:

        >>> import beamish as bm
        >>> from hypothesis import strategies as st
        >>> row = st.tuples(st.integers(0, 60), st.integers(0, 5))
        >>> delayed = st.lists(row).map(lambda rows: [(clock, clock - delay) for clock, delay in sorted(rows)])
        >>> check_watermark(bm.BoundedOutOfOrderness(5), arrivals=delayed, examples=20).examples
        20
    """
    if not isinstance(policy, Watermark):
        raise OptionError(
            f"check_watermark({policy!r}): must be a policy, such as bm.BoundedOutOfOrderness('30 seconds')"
        )
    lateness = duration("check_watermark(allowed_lateness)", allowed_lateness).us / 1e6
    seen = Seen()

    def laws_of(drawn: Arrivals) -> Mapping[Law, Sequence[Any]]:
        laws: dict[Law, Sequence[Any]] = {watermark_never_goes_back: (policy, drawn)}
        if arrivals is not None:
            laws[rows_are_in_time] = (policy, drawn, lateness)
        return laws | {clock_moves_idle_source: (policy, drawn)} if policy.needs_clock else laws

    def held(drawn: Arrivals) -> None:
        times = [time for _, time in drawn]
        disordered = sum(time < max(times[:place], default=time) for place, time in enumerate(times))
        seen.add({"rows": len(drawn), "rows out of order": disordered})

    compared = search(_any_arrivals if arrivals is None else arrivals, laws_of, examples=examples, seed=seed, held=held)
    seen.note(compared)
    return seen.check("rows" if arrivals is None else "rows out of order", *compared, floor=floor)


def watermark_never_goes_back(policy: Watermark, arrivals: Arrivals) -> bool:
    """The watermark never goes back.

    It compares two watermarks.
    """
    given = [watermark for watermark in _run(policy, arrivals) if watermark is not None]
    require(watermark_never_goes_back, expected=sorted(given), given=given)
    return len(given) > 1


def rows_are_in_time(policy: Watermark, arrivals: Arrivals, allowed_lateness: float) -> bool:
    """No row arrives behind the watermark by more than the allowed lateness.

    It compares rows that arrive when there is a watermark.
    """
    compared = False
    for watermark, (_, time) in zip(_run(policy, arrivals), arrivals, strict=True):
        if watermark is not None:
            behind = watermark - time
            expected = f"the row of {time} is behind the watermark {watermark} by at most {allowed_lateness} seconds"
            given = expected if behind <= allowed_lateness else f"by {behind} seconds"
            require(rows_are_in_time, expected=expected, given=given)
            compared = True
    return compared


def clock_moves_idle_source(policy: Watermark, arrivals: Arrivals) -> None:
    """Where the watermark follows the clock, it moves on when its source becomes idle."""
    spans = [policy.delay, policy.idle_timeout, policy.lag]
    later = max((max(row) for row in arrivals), default=0) + sum(one.us for one in spans if one is not None) / 1e6
    idle = [(later + 1, None), (2 * later + 2, None), (2 * later + 3, None)]
    *_, before, _, after = _run(policy, [*arrivals, *idle])
    given = "moves on" if before is None or (after is not None and after > before) else f"stays at {before}"
    require(clock_moves_idle_source, expected="moves on", given=given)


def _run(policy: Watermark, arrivals: Sequence[tuple[float, float | None]]) -> list[float | None]:
    """The watermark, in seconds, at which each row arrives; a row of None is a step without rows."""
    progress, latest_us, clock_us, found = Progress(), None, 0, []
    for clock, time in arrivals:
        now_us = max(clock_us, instant_us("arrivals(clock)", clock))
        policy.advance(progress, None if latest_us is None else latest_us - policy.delay.us, now_us, clock_us)
        clock_us, watermark_us = now_us, known_us(progress.watermark_us)
        found.append(None if watermark_us is None else watermark_us / 1e6)
        if time is not None and policy.moved_by_rows and not _is_too_far(policy, time, clock_us):
            latest_us = max(latest_us or -(2**62), instant_us("arrivals(time)", time))
    return found


def _is_too_far(policy: Watermark, time: float, clock_us: int) -> bool:
    return policy.max_future is not None and time * 1e6 > clock_us + policy.max_future.us


_any_arrivals = st.lists(st.tuples(st.integers(0, 600), st.integers(0, 600)), max_size=8).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)

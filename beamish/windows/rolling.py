"""Rolling spans: values over the last hour, or the last day, per key, at boundaries a step apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from beamish.durations import Duration, read_duration, read_not_negative, read_positive
from beamish.errors import OptionError
from beamish.kernels.identity import InOrder
from beamish.windows.option import Bounds, Times, WindowOption

_LONGEST_US = 10_000 * 366 * 86_400_000_000
"""Past all event times."""


def _read_only(only: Any) -> tuple[str, ...] | None:
    if only is None:
        return None
    if isinstance(only, str) or not isinstance(only, Iterable):
        raise OptionError(f"Span(only={only!r}): must be a list of the names of accumulations, such as ['n']")
    names = tuple(only)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise OptionError(f"Span(only={only!r}): must be names of accumulations, each once, such as ['n']")
    return names


_read_only.__annotations__["only"] = "Iterable[str] | None"  # shown by help()


@attrs.frozen
class Span:
    """A span of time before a boundary: at ``T`` it holds the rows with ``T - offset - length <= ts < T - offset``.

    Args:
        length: how long it is, above 0.
        offset: how far before the boundary it ends, at least 0; ``"7 days"``: the same hour of last week.
        only: the names of the accumulations that have a value over it; None: all.

    Raises:
        OptionError: not a duration, or not in range; ``only`` is not a list of names.

    Example:
        >>> import beamish as bm
        >>> bm.Span("1 hour", offset="7 days").describe()
        'the 1 hour that ended 7 days before'
    """

    length: Duration = attrs.field(converter=read_positive)
    offset: Duration = attrs.field(default=Duration(0), converter=read_not_negative, kw_only=True)
    only: tuple[str, ...] | None = attrs.field(default=None, converter=_read_only, kw_only=True)

    def describe(self) -> str:
        """A description of the span."""
        words = f"the {self.length} that ended {self.offset} before" if self.offset else f"the last {self.length}"
        return words if self.only is None else f"{words} ({', '.join(self.only)} only)"

    def __repr__(self) -> str:
        offset = f", offset={self.offset!r}" if self.offset else ""
        only = "" if self.only is None else f", only={list(self.only)!r}"
        return f"Span({self.length!r}{offset}{only})"

    def has(self, accumulation: str) -> bool:
        """Whether an accumulation has a value over it."""
        return self.only is None or accumulation in self.only


@attrs.frozen
class Lifetime:
    """A span without a beginning: at ``T`` it holds the rows of the key with ``ts < T - offset``.

    Stored are the slices within the longest other span and the lateness, and one accumulator per key for all before these:
    for ever, or until ``.forget_after(span)`` drops the key.

    Args:
        offset: how far before the boundary it ends, at least 0.
        only: the names of the accumulations that have a value over it; None: all.

    Raises:
        OptionError: ``offset`` is not a duration, or below 0; ``only`` is not a list of names.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count
        >>> visits = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .key_by("user")
        ...     .window(bm.Rolling({"1m": "1 minute", "ever": bm.Lifetime()}, step="1 minute"))
        ...     .accumulate(n=Count())
        ... )
        >>> rows = [{"ts": 30, "user": "ann"}, {"ts": 150, "user": "ann"}]
        >>> script = bm.testing.TestStream().add(rows).advance_watermark_to(240)
        >>> [(pane.values["time"].minute, pane.values["n_1m"], pane.values["n_ever"]) for pane in visits.run(script)]
        [(1, 1, 1), (2, 0, 1), (3, 1, 2), (4, 0, 2)]
    """

    offset: Duration = attrs.field(default=Duration(0), converter=read_not_negative, kw_only=True)
    only: tuple[str, ...] | None = attrs.field(default=None, converter=_read_only, kw_only=True)

    def describe(self) -> str:
        """A description of the span."""
        words = f"all rows until {self.offset} before" if self.offset else "all rows"
        return words if self.only is None else f"{words} ({', '.join(self.only)} only)"

    def __repr__(self) -> str:
        offset = f"offset={self.offset!r}" if self.offset else ""
        only = "" if self.only is None else f"only={list(self.only)!r}"
        return f"Lifetime({', '.join(filter(None, (offset, only)))})"

    def has(self, accumulation: str) -> bool:
        """Whether an accumulation has a value over it."""
        return self.only is None or accumulation in self.only


def _read_spans(spans: Any) -> InOrder[Span | Lifetime]:
    if not isinstance(spans, Mapping) or not spans:
        raise OptionError(f'Rolling({spans!r}): must be spans by name, such as {{"1h": "1 hour", "24h": "24 hours"}}')
    read: dict[str, Span | Lifetime] = {}
    for name, span in spans.items():
        if not isinstance(name, str) or not name:
            raise OptionError(f"Rolling: span {name!r} must be text, since it is part of the names of columns")
        if span == "forever":
            raise OptionError(
                f"Rolling: span {name!r} is 'forever': a span has a length; for one that holds all rows of a key use bm.Lifetime()"
            )
        try:
            read[name] = span if isinstance(span, Span | Lifetime) else Span(span)
        except OptionError as error:
            raise OptionError(f"Rolling: span {name!r}: {error}") from None
    return InOrder(read)


_read_spans.__annotations__["spans"] = (
    "Mapping[str, Span | Lifetime | Duration | timedelta | str | float]"  # shown by help()
)


@attrs.frozen(repr=False)
class Rolling(WindowOption):
    """Values over the last spans of each key, at boundaries ``step`` apart: a row only where they have changed.

    At a boundary ``T``, a multiple of the step, the value of a span is that of the key's rows with ``T - span <= ts < T``, in the
    column ``<accumulation>_<span>``. A row is emitted when the watermark reaches ``T``, and only if the key's values differ from
    those at the boundary before. See docs/rules/rolling.md.

    Args:
        spans: durations, ``bm.Span`` or ``bm.Lifetime``, by name, each a multiple of the step.
        step: the distance of boundaries, above 0.
        keep: ``"current"``: one row per key, which each new row replaces; ``"history"``: one row per key and boundary, valid from
            ``time`` until the key's next row.
        empty: when a key's last row has left the longest span: ``"emit"``: a last row, with counts of 0; ``"remove"``: only a
            retraction of the current row.
        offset: where boundaries are, counted from 1970-01-01 00:00 UTC; reduced modulo the step.

    Raises:
        OptionError: no spans, one that is not a multiple of the step, or another option that is invalid.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count
        >>> features = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .key_by("user")
        ...     .window(bm.Rolling({"1m": "1 minute", "5m": "5 minutes"}, step="1 minute"))
        ...     .accumulate(n=Count())
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": 30, "user": "ann"}]).advance_watermark_to(180)
        >>> [(pane.values["time"].minute, pane.values["n_1m"], pane.values["n_5m"]) for pane in features.run(script)]
        [(1, 1, 1), (2, 0, 1)]
    """

    spans: Mapping[str, Span | Lifetime] = attrs.field(converter=_read_spans)
    step: Duration = attrs.field(converter=read_positive, kw_only=True)
    keep: Literal["current", "history"] = attrs.field(default="current", kw_only=True)
    empty: Literal["emit", "remove"] = attrs.field(default="emit", kw_only=True)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for name, allowed, fix in (
            ("keep", ("current", "history"), "'current', one row per key, or 'history', one per key and boundary"),
            ("empty", ("emit", "remove"), "'emit', a last row with counts of 0, or 'remove', a retraction alone"),
        ):
            if getattr(self, name) not in allowed:
                raise OptionError(f"Rolling({name}={getattr(self, name)!r}): must be {fix}")
        if self.keep == "history" and self.empty == "remove":
            raise OptionError(
                "Rolling(keep='history', empty='remove'): a row of the history is valid until the key's next row, so its end "
                "needs a row; use empty='emit', whose last row has counts of 0"
            )
        for name, span in self.spans.items():
            length = span.length if isinstance(span, Span) else Duration(0)
            for what, duration in (("span", length), ("offset of span", span.offset)):
                if duration.us % self.step.us:
                    raise OptionError(
                        f"Rolling(step={self.step!r}): {what} {name!r} is {duration!r}, not a multiple of the step; use a "
                        f"step that divides it, or {self._nearest(duration)!r}"
                    )
        if self.reach_us > _LONGEST_US:
            raise OptionError(
                f"Rolling({dict(self.spans)!r}): a span reaches back more than 10,000 years; use a shorter one"
            )

    def _nearest(self, duration: Duration) -> Duration:
        steps = max(1, round(duration.us / self.step.us))
        return Duration(steps * self.step.us)

    def __repr__(self) -> str:
        spans = {
            name: str(span.length) if isinstance(span, Span) and span == Span(span.length) else span
            for name, span in self.spans.items()
        }
        fields = {name: getattr(self, name) for name in ("keep", "empty", "offset")}
        usual = {"keep": "current", "empty": "emit", "offset": Duration(0)}
        other = "".join(f", {name}={value!r}" for name, value in fields.items() if value != usual[name])
        return f"Rolling({spans!r}, step={self.step!r}{other})"

    @property
    def reach_us(self) -> int:
        """How far before a boundary the longest span with a beginning begins, or the others end, microseconds."""
        return max(span.offset.us + (span.length.us if isinstance(span, Span) else 0) for span in self.spans.values())

    @property
    def has_lifetime(self) -> bool:
        """Whether a span has no beginning."""
        return any(isinstance(span, Lifetime) for span in self.spans.values())

    def describe(self) -> str:
        each = "; ".join(f"{name}: {span.describe()}" for name, span in self.spans.items())
        row = "one row per key" if self.keep == "current" else "one row per key and boundary"
        return f"rolling spans, at boundaries {self.step} apart, {row} where values change: {each}"

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def period_us(self) -> int:
        return self.step.us

    # Rows are accumulated in slices, each a step long.

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        start = timestamp_us - (timestamp_us - self.offset.us) % self.step.us
        yield start, start + self.step.us

    def slices(self, timestamps_us: Times) -> Times:
        return timestamps_us - (timestamps_us - self.offset.us % self.step.us) % self.step.us

"""Suppress: buffer a stage's updates and emit fewer of them, later, with the same net effect."""

from __future__ import annotations

from typing import Any, Literal

import attrs
import numpy as np

from beamish.costs import check_span
from beamish.durations import Duration, DurationLike, not_negative, read_not_negative
from beamish.errors import OptionError
from beamish.kernels.buffers import Ints
from beamish.modes import WhenFull

_CLOCKS = ("event", "processing")


class Until:
    """How long an update is buffered: ``UntilWindowCloses`` or ``UntilTimeLimit``."""

    by_clock: bool = False
    """Whether the processing-time clock decides; else the watermark does."""

    @property
    def holds(self) -> bool:
        """Whether anything is buffered at all."""
        return True

    def due_us(self, since_us: Ints, since_clock_us: Ints, closes_us: Ints) -> Ints:
        """When updates are emitted.

        Args:
            since_us: int64, microseconds since the epoch: event time since when each slot is buffered.
            since_clock_us: int64, the same on the processing-time clock.
            closes_us: int64, microseconds since the epoch: the watermark at which its window closes.

        Returns:
            int64, microseconds: the watermark, or the clock, at which each is emitted.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """The wait, in words."""
        raise NotImplementedError


def _read_grace(value: DurationLike | None) -> Duration | None:
    return None if value is None else not_negative("UntilWindowCloses(grace)", value)


@attrs.frozen
class UntilWindowCloses(Until):
    """Buffer a window's updates until it is final: one result per key and window (Kafka Streams' ``suppress``).

    That is until the window has expired (the watermark is its allowed lateness past its end), or its trigger has
    finished.

    Args:
        grace: over ``Pipeline.changes``: how long after a window's end it accepts changes, at least 0. Over other pipelines it is
            omitted: ``allowed_lateness`` applies.

    Raises:
        OptionError: a negative grace.

    Example:
        >>> import beamish as bm
        >>> bm.UntilWindowCloses().describe()
        'until the window closes'
    """

    grace: Duration | None = attrs.field(default=None, converter=_read_grace)

    def due_us(self, since_us: Ints, since_clock_us: Ints, closes_us: Ints) -> Ints:
        return closes_us

    def describe(self) -> str:
        return "until the window closes"


@attrs.frozen
class UntilTimeLimit(Until):
    """Emit a slot's changes at most once per ``wait``, as one net change (Kafka Streams' ``untilTimeLimit``).

    A wait begins with the first update of a (key, window); later ones do not move it.

    Args:
        wait: how long, at least 0; 0 buffers nothing and passes all rows unchanged.
        clock: ``"event"``: the watermark, from the first pane's timestamp on; ``"processing"``: the clock, from the step of the
            first update on. Required: Kafka Streams uses the first, a rate limit means the second.

    Raises:
        OptionError: a negative wait, or no clock.

    Example:
        >>> import beamish as bm
        >>> bm.UntilTimeLimit("5 minutes", clock="processing").describe()
        'until 5 minutes have passed on the clock since the first update'
    """

    wait: Duration = attrs.field(converter=read_not_negative)
    clock: Literal["event", "processing"] = attrs.field(default=None)

    def __attrs_post_init__(self) -> None:
        check_span("UntilTimeLimit(wait)", self.wait, "each change is delayed by this much")

    @clock.validator
    def _check_clock(self, _: Any, value: Any) -> None:
        if value not in _CLOCKS:
            raise OptionError(
                f"UntilTimeLimit(clock={value!r}): must be 'event' (by the watermark, as in Kafka Streams) or 'processing' (by the clock, as for a rate limit)"
            )

    @property
    def by_clock(self) -> bool:  # type: ignore[override]
        return self.clock == "processing"

    @property
    def holds(self) -> bool:
        return bool(self.wait)

    def due_us(self, since_us: Ints, since_clock_us: Ints, closes_us: Ints) -> Ints:
        since = since_clock_us if self.by_clock else since_us
        most = np.iinfo(np.int64).max - self.wait.us
        return np.minimum(since, most) + self.wait.us

    def describe(self) -> str:
        if not self.holds:
            return "not at all: a wait of 0 passes all rows unchanged"
        if self.by_clock:
            return f"until {self.wait} have passed on the clock since the first update"
        return f"until the watermark is {self.wait} past the timestamp of the first pane"


def _check_limit(_: Buffer, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise OptionError(f"Buffer({field.name}={value!r}): must be a whole number of at least 0, or None for no limit")


@attrs.frozen
class Buffer:
    """The buffer size of a shard, and what happens when it is full.

    Args:
        max_records: number of (key, window)s per shard, at least 0; None: unlimited.
        max_bytes: bytes of their keys and values per shard, at least 0; None: unlimited.
        when_full: ``bm.EMIT_EARLY`` (default), ``bm.SHUT_DOWN`` or ``bm.SPILL``; only with a limit.

    Raises:
        OptionError: a limit below 0, or ``when_full`` without a limit.

    Example:
        >>> import beamish as bm
        >>> bm.Buffer(max_records=1_000).strict
        False
    """

    max_records: int | None = attrs.field(default=None, validator=_check_limit)
    max_bytes: int | None = attrs.field(default=None, validator=_check_limit)
    when_full: WhenFull | None = attrs.field(default=None)

    @when_full.validator
    def _check_when_full(self, _: Any, value: Any) -> None:
        if value is not None and not isinstance(value, WhenFull):
            raise OptionError(f"Buffer(when_full={value!r}): must be bm.EMIT_EARLY, bm.SHUT_DOWN or bm.SPILL")
        if value is not None and not self.is_limited:
            raise OptionError(
                f"Buffer(when_full={value!r}): a buffer without limits is never full; add max_records= or max_bytes=, or leave when_full out"
            )

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.max_records is not None or self.max_bytes is not None

    @property
    def policy(self) -> WhenFull:
        """The behavior of a full buffer; without limits SPILL, which is equivalent."""
        if not self.is_limited:
            return WhenFull.SPILL
        return WhenFull.EMIT_EARLY if self.when_full is None else self.when_full

    @property
    def strict(self) -> bool:
        """Whether nothing is emitted early."""
        return self.policy is not WhenFull.EMIT_EARLY


UNLIMITED = Buffer()
"""A buffer without limits."""


def _check_name(_: Any, __: Any, value: Any) -> None:
    if not isinstance(value, str) or not value or "/" in value:
        raise OptionError(f"suppress(name={value!r}): must be a name without '/', such as 'alerts'")


@attrs.frozen
class Suppress:
    """Buffer a stage's updates and emit their net change: a value for ``.then(...)``.

    Args:
        until: ``bm.UntilWindowCloses()`` or ``bm.UntilTimeLimit(wait, clock=...)``.
        buffer: the buffer size; default: unlimited.
        name: its name in the checkpoint; may not change while something is buffered.

    Raises:
        OptionError: an argument is invalid, or ``UntilWindowCloses`` with a buffer that emits early.

    Example:
        >>> import beamish as bm
        >>> bm.Suppress(bm.UntilTimeLimit("1 minute", clock="event"), name="alerts")
        Suppress(until=UntilTimeLimit(wait='1 minute', clock='event'), name='alerts')
    """

    until: UntilWindowCloses | UntilTimeLimit = attrs.field()
    buffer: Buffer = attrs.field(default=UNLIMITED, kw_only=True)
    name: str = attrs.field(default="suppress", validator=_check_name, kw_only=True)

    @until.validator
    def _check_until(self, _: Any, value: Any) -> None:
        if not isinstance(value, (UntilWindowCloses, UntilTimeLimit)):
            raise OptionError(
                f"suppress(until={value!r}): must be bm.UntilWindowCloses() or bm.UntilTimeLimit('1 minute', clock='event')"
            )

    @buffer.validator
    def _check_buffer(self, _: Any, value: Any) -> None:
        if not isinstance(value, Buffer):
            raise OptionError(f"suppress(buffer={value!r}): must be a bm.Buffer, such as bm.Buffer(max_records=10_000)")
        if isinstance(self.until, UntilWindowCloses) and not value.strict:
            raise OptionError(
                f"suppress(buffer={value!r}) with {self.until!r}: early results are not final; use when_full=bm.SPILL (they wait on disk) or bm.SHUT_DOWN"
            )

    @property
    def holds(self) -> bool:
        """Whether anything is buffered at all."""
        return self.until.holds

    def __repr__(self) -> str:
        return f"Suppress({self.arguments})"

    @property
    def arguments(self) -> str:
        """Its arguments, without defaults."""
        said = [f"until={self.until!r}"]
        said += [f"buffer={self.buffer!r}"] if self.buffer != UNLIMITED else []
        said += [f"name={self.name!r}"] if self.name != "suppress" else []
        return ", ".join(said)

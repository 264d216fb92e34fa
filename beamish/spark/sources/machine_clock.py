"""The clock of heartbeats: the machine's, with jumps smoothed (docs/rules/time.md#machine-clock).

A machine's clock can be set, or be briefly wrong; its uptime cannot. So a heartbeat advances by the elapsed uptime, and follows
the clock within bounds: at least at half that pace, and only slightly ahead, unless the clock has stayed ahead for some time.
Both are in the offset, so this holds across restarts of the query, until the machine reboots.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

_LEAD_US = 60_000_000
"""How far a heartbeat may exceed the elapsed uptime, in microseconds; at most by that time again."""
_BELIEVED_US = 600_000_000
"""How long the machine's clock must stay further ahead to be trusted, in microseconds."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@attrs.frozen
class Reading:
    """Readings of the machine's clocks.

    Attributes:
        wall_us: the wall clock, in microseconds since the epoch.
        up_us: the uptime, in microseconds, including suspended time if known.
        boot: identifies the origin of ``up_us``: readings of different boots cannot be compared.
    """

    wall_us: int
    up_us: int
    boot: str

    @classmethod
    def now(cls) -> Reading:
        """Read the clocks."""
        return cls(time.time_ns() // 1000, _up_ns() // 1000, _boot())


@attrs.frozen
class Heartbeat:
    """A heartbeat, as in the query's offset log.

    Attributes:
        tick: its number.
        clock_us: its clock, in microseconds since the epoch.
        up_us, boot: of its reading; None: unknown.
        ahead_since_us: the ``up_us`` since which the machine's clock has been too far ahead; None: it is not.
    """

    tick: int = 0
    clock_us: int = 0
    up_us: int | None = None
    boot: str | None = None
    ahead_since_us: int | None = None

    @property
    def offset(self) -> dict[str, Any]:
        """As JSON."""
        return {name: value for name, value in attrs.asdict(self).items() if value is not None}

    def elapsed_us(self, now: Reading) -> int | None:
        """Its age, in microseconds; None: unknown."""
        if self.up_us is None or self.boot != now.boot or self.up_us > now.up_us:
            return None
        return now.up_us - self.up_us

    def next(self, now: Reading) -> Heartbeat:
        """The next heartbeat; its clock is never behind."""
        elapsed_us = self.elapsed_us(now)
        clock_us, since_us = max(self.clock_us, now.wall_us), None
        if elapsed_us is not None:
            clock_us = max(now.wall_us, self.clock_us + elapsed_us // 2)
            latest_us = self.clock_us + elapsed_us + min(elapsed_us, _LEAD_US)
            if clock_us > latest_us:
                since_us = now.up_us if self.ahead_since_us is None else self.ahead_since_us
                if now.up_us - since_us < _BELIEVED_US:
                    clock_us = latest_us
        return Heartbeat(self.tick + 1, clock_us, now.up_us, now.boot, since_us)

    def jump(self, now: Reading) -> str | None:
        """How the next heartbeat reacts to a changed clock, as text; None: unchanged.

        Differences of up to a minute are not reported.
        """
        elapsed_us = self.elapsed_us(now)
        expected_us = self.clock_us + (elapsed_us or 0)
        off_us = now.wall_us - expected_us
        if abs(off_us) <= _LEAD_US or (elapsed_us is None and off_us > 0):
            return None
        words = "at half the pace until the clock has caught up"
        if off_us > 0:
            words = f"at most twice as fast as time passes, and with the clock when it has been ahead for {_span(_BELIEVED_US)}"
        return (
            f"the clock of this machine is at {_shown(now.wall_us)}, {_span(abs(off_us))} {'ahead of' if off_us > 0 else 'behind'} "
            f"the query's, {_shown(expected_us)}: heartbeats continue {words} (docs/rules/time.md#machine-clock)"
        )


def _up_ns() -> int:
    boot_time: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
    return time.monotonic_ns() if boot_time is None else time.clock_gettime_ns(boot_time)


def _boot() -> str:
    """The boot time of the machine; if unavailable, this process."""
    try:  # not cached: cloudpickle sends a cached function by name, and the source is pickled by value
        return _BOOT.read_text("utf-8").strip()
    except OSError:
        return f"process {os.getpid()}"


def _span(us: int) -> str:
    return str(timedelta(seconds=us // 1_000_000))


def _shown(us: int) -> str:
    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=us // 1_000_000))

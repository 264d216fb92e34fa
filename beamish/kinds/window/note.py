"""Metadata of a shard of windows, stored with its index; and how the pipeline differs from the one that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from beamish.contract.clocks import Clocks
from beamish.kernels.identity import same_identity
from beamish.kinds.window.part import WindowPart
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.spec import same_state
from beamish.tables.notes import FORMAT
from beamish.tables.older import OLDER

_LIES = ("by_key", "forget_after_us")


@attrs.define
class Note:
    """Metadata of a shard.

    Attributes:
        clocks: the current clocks.
        dropped: number of rows dropped so far, by reason.
        span_us: how long a span of ends a segment holds.
        older: what of it an earlier version wrote about the stage, as long as it holds (older.py); None: this one writes that.
        held: of a suppressed stage the name of the suppress, and how many updates it holds; None: there never was one.
    """

    clocks: Clocks
    dropped: dict[str, int]
    span_us: int
    older: Mapping[str, Any] | None = None
    held: dict[str, Any] | None = None

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Note:
        """Read metadata from JSON."""
        clocks = Clocks.of(about["clocks"])
        return cls(clocks, about["dropped"], about["span_us"], about.get(OLDER), about.get("held"))

    def about(self, plan: WindowPlan, parts: Iterable[WindowPart]) -> dict[str, Any]:
        """As JSON; ``parts``: those of the shard."""
        return {
            **({"format": FORMAT, "spec": plan.spec} if self.older is None else self.older),
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
            "span_us": self.span_us,
            **({} if self.held is None else {"held": self.held}),
            **{name: value for part in parts for name, value in (*part.lies.items(), *part.noted().items())},
        }


def lies(plan: WindowPlan) -> dict[str, Any]:
    """The metadata by which windows are cut into segments, or are due, beside the lateness."""
    return {name: value for part in plan.parts for name, value in part.lies.items()}


@attrs.frozen
class Changed:
    """How the pipeline differs from the one that wrote the state.

    Attributes:
        options: whether the trigger or the lateness changed.
        trigger: whether the trigger changed.
        takes: whether types got wider, an accumulation was added, or other panes are emitted; or nothing was stored.
        lies: whether the segmentation of windows (by key or not) or their expiry changed.
    """

    options: bool = False
    trigger: bool = False
    takes: bool = False
    lies: bool = False

    @classmethod
    def since(cls, about: Mapping[str, Any], plan: WindowPlan) -> Changed:
        """The difference from this metadata."""
        then, now = about["spec"]["changeable"], plan.spec["changeable"]
        return cls(
            not same_identity(then, now),
            not same_identity(then.get("trigger"), now.get("trigger")),
            not same_state(about["spec"], plan.spec),
            {name: about[name] for name in _LIES if about.get(name)} != lies(plan),
        )

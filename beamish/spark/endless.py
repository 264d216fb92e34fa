"""Which triggers would never fire in a window that has no end."""

from __future__ import annotations

from beamish.errors import PipelineError
from beamish.options import Options
from beamish.triggers.after_all import AfterAll
from beamish.triggers.after_any import AfterAny
from beamish.triggers.after_each import AfterEach
from beamish.triggers.after_watermark import AfterWatermark
from beamish.triggers.default import Default
from beamish.triggers.never import Never
from beamish.triggers.or_finally import OrFinally
from beamish.triggers.repeatedly import Repeatedly
from beamish.triggers.trigger import Trigger
from beamish.windows.global_window import GlobalWindow


def check_ends(options: Options) -> None:
    """Refuse a global window that would wait for the end of time (RULES.md 28); for streaming DataFrames only.

    Raises:
        PipelineError: nothing would ever come out.
    """
    for one in options.windowings.values():
        check_ends(one)
    if isinstance(options.window, GlobalWindow) and waits_only_for_end(options.trigger):
        raise PipelineError(
            f"GlobalWindow() with {options.trigger!r}: it waits for the end of time, which a stream does not reach, so nothing "
            "would come out; use a trigger that fires before, such as Repeatedly(AfterCount(100)) or "
            "AfterWatermark(early=AfterProcessingTime('1 minute')), or windows that end"
        )


def waits_only_for_end(trigger: Trigger) -> bool:
    """Whether it cannot fire before the end of its window. A trigger of a user's own may."""
    match trigger:
        case Default() | Never():
            return True
        case AfterWatermark():
            return trigger.early is None or waits_only_for_end(trigger.early)
        case AfterEach():
            return waits_only_for_end(trigger.parts[0])
        case AfterAll():
            return any(waits_only_for_end(part) for part in trigger.parts)
        case AfterAny() | OrFinally() | Repeatedly():
            return all(waits_only_for_end(part) for part in trigger.parts)
    return False

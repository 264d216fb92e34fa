"""Triggers: when a window's panes are fired. One file per trigger; `trigger.py` holds the contract."""

from typing import TYPE_CHECKING

from beamish.exports import exported

if TYPE_CHECKING:
    from beamish.triggers.after_count import AfterCount
    from beamish.triggers.after_event_time import AfterEventTime
    from beamish.triggers.after_processing_time import AfterProcessingTime
    from beamish.triggers.after_value import AfterValue
    from beamish.triggers.after_watermark import AfterWatermark
    from beamish.triggers.composite import AfterAll, AfterAny, AfterEach, OrFinally
    from beamish.triggers.default import Always, Default, Never, Repeatedly
    from beamish.triggers.trigger import Trigger, TriggerContext
else:
    __getattr__ = exported(
        __name__,
        {
            "beamish.triggers.after_count": "AfterCount",
            "beamish.triggers.after_event_time": "AfterEventTime",
            "beamish.triggers.after_processing_time": "AfterProcessingTime",
            "beamish.triggers.after_value": "AfterValue",
            "beamish.triggers.after_watermark": "AfterWatermark",
            "beamish.triggers.composite": "AfterAll AfterAny AfterEach OrFinally",
            "beamish.triggers.default": "Always Default Never Repeatedly",
            "beamish.triggers.trigger": "Trigger TriggerContext",
        },
    )

__all__ = [
    "AfterAll",
    "AfterAny",
    "AfterCount",
    "AfterEach",
    "AfterEventTime",
    "AfterProcessingTime",
    "AfterValue",
    "AfterWatermark",
    "Always",
    "Default",
    "Never",
    "OrFinally",
    "Repeatedly",
    "Trigger",
    "TriggerContext",
]


def __dir__() -> list[str]:
    return list(__all__)

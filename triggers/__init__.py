"""Triggers: when a window's panes are fired. One file per trigger; `trigger.py` holds the contract."""

from beamish.triggers.after_all import AfterAll
from beamish.triggers.after_any import AfterAny
from beamish.triggers.after_count import AfterCount
from beamish.triggers.after_each import AfterEach
from beamish.triggers.after_processing_time import AfterProcessingTime
from beamish.triggers.after_value import AfterValue
from beamish.triggers.after_watermark import AfterWatermark
from beamish.triggers.always import Always
from beamish.triggers.default import Default
from beamish.triggers.never import Never
from beamish.triggers.or_finally import OrFinally
from beamish.triggers.repeatedly import Repeatedly
from beamish.triggers.trigger import Trigger, TriggerContext

__all__ = [
    "AfterAll",
    "AfterAny",
    "AfterCount",
    "AfterEach",
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

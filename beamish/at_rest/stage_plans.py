"""The plan of a stage of windows, behind whatever wraps it."""

from __future__ import annotations

from typing import cast

from beamish.contract.operator import Operator
from beamish.kinds.window.operator import WindowOperator
from beamish.kinds.window.plan import WindowPlan


def window_plan(operator: Operator) -> WindowPlan:
    """The plan of a stage of windows, suppressed or not."""
    return cast("WindowOperator", operator.core).plan

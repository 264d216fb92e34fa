"""The plan of a stage of windows, behind whatever wraps it."""

from __future__ import annotations

from beamish.contract.operator import Operator
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.kinds.window.operator import WindowOperator
from beamish.kinds.window.plan import WindowPlan


def window_plan(operator: Operator) -> WindowPlan:
    """The plan of a stage of windows, suppressed or not."""
    inner = operator.inner if isinstance(operator, SuppressOperator) else operator
    assert isinstance(inner, WindowOperator)  # noqa: S101 - it is a stage of windows
    return inner.plan

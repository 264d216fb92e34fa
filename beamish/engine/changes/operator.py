"""The operator of a changes stage."""

from __future__ import annotations

import attrs

from beamish.engine.updates import UpdatingOperator
from beamish.plan.changes_plan import ChangesPlan


@attrs.define(slots=False, eq=False)
class ChangesOperator(UpdatingOperator):
    """A changes stage bound to its data."""

    plan: ChangesPlan

"""Which stored state a pipeline can go on from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from beamish.engine.state.store import Store
from beamish.engine.state.stored_tables import WINDOWINGS
from beamish.errors import StateError
from beamish.kernels.identity import same_identity
from beamish.plan.window_plan import WindowPlan

FORMAT = 3


def check_format(stored: int) -> None:
    """Check that this version can read a state of this format.

    Raises:
        StateError: it cannot.
    """
    if stored != FORMAT:
        raise StateError(
            f"the checkpoint has state format {stored}, this version of beamish writes {FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )


def check_unnamed(store: Store) -> None:
    """Check that a store does not hold several windowings.

    Raises:
        StateError: it does.
    """
    stored = store.get(WINDOWINGS)
    if stored is not None:
        names = ", ".join(map(repr, json.loads(stored)))
        raise StateError(
            f"the checkpoint has the windowings {names}, the pipeline has one without a name: their windows would be "
            "forgotten; keep .window({...}), or start from a new checkpoint"
        )


def check_identity(stored: Mapping[str, Any], plan: WindowPlan) -> None:
    """Check that a plan means what the one meant that the state was written by.

    Raises:
        StateError: it does not.
    """
    for what, now in plan.identity.items():
        then: Any = stored.get(what, {})
        # One accumulation more is safe: it counts from now on. Another meaning under an old name is not.
        kept = {name: now.get(name) for name in then} if what == "accumulations" else now
        if not same_identity(then, kept):
            raise StateError(
                f"the checkpoint was written with {what} {then}, the pipeline now has {now}: keep the old one, or start "
                "from a new checkpoint (a trigger, allowed lateness, behaviors, only_updated_panes, with_dropped and "
                "further accumulations may change)"
            )

"""What may not change of a window stage while a checkpoint is used, and what may but makes the state be read through."""

from __future__ import annotations

from typing import Any

from beamish.kernels.identity import identity
from beamish.plan.window_plan import WindowPlan


def identity_of_plan(plan: WindowPlan) -> dict[str, Any]:
    """What a checkpoint holds fast, in terms of JSON, by what a user calls it."""
    options = plan.options
    mode = "discarding" if options.discards else "retracting" if options.retracts else "accumulating"
    return {
        "shards": plan.shards,
        "inputs": [
            {"name": relation.name, "of": "panes" if relation.is_panes else "rows"}
            | ({"retracts": True} if relation.retracts else {})
            for relation in plan.takes
        ],
        "keys": [f"{field.name}: {field.type}" for field in plan.key_schema],
        "window": identity(plan.window),
        "mode": mode,
        "timestamp combiner": options.combiner.value,
        "accumulations": {
            bound.name: {"is": identity(options.accumulations[bound.name]), "reads": bound.reads}
            for bound in plan.accumulations
        },
    }


def changeable(plan: WindowPlan) -> dict[str, Any]:
    """What may change, but makes the state be read through once."""
    return {"trigger": identity(plan.options.trigger), "lateness": plan.options.allowed_lateness.us}

"""What a stage is, as JSON: kept with its state, so that a checkpoint can be looked into without its pipeline."""

from __future__ import annotations

from typing import Any

from beamish.contract.relation import Relation
from beamish.flow import BoundFlow
from beamish.source import Source

DESCRIPTION = 1
"""The version of what is written; readers ignore what they do not know."""


def descriptions(flow: BoundFlow) -> list[dict[str, Any]]:
    """The description of each stage, in the order of ``flow.flows``.

    Each has ``stage`` and ``stages`` (its number, from 1, and how many there are), ``lines`` (explain's subjects and words),
    ``inputs`` (name, stage, keys, and how its watermark moves: words, and durations in microseconds), ``own`` (what of it is of users'
    own classes, which no reader can make again), and of a stage of windows ``only_updated`` and ``suppress``.
    """
    flows = flow.flows
    number = {id(one): place for place, one in enumerate(flows, 1)}
    return [
        {
            "version": DESCRIPTION,
            "stage": number[id(one)],
            "stages": len(flows),
            "lines": [list(line) for line in one.stage.describe(one.operator.takes, one.operator)],
            "inputs": [
                _input(relation, None if isinstance(taken, Source) else number[id(taken)])
                for relation, taken in zip(one.operator.takes, one.inputs, strict=True)
            ],
            **one.stage.described(),
        }
        for one in flows
    ]


def _input(relation: Relation, stage: int | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": relation.name,
        "stage": stage,
        "keys": [key for key in relation.keys if isinstance(key, str)],
    }
    if stage is not None or not relation.watermarks:
        return described
    policy = relation.policy
    spans = {"delay_us": policy.delay, "idle_us": policy.idle_timeout, "lag_us": policy.lag}
    return described | {
        "watermark": policy.describe(),
        **{name: None if span is None else span.us for name, span in spans.items()},
    }

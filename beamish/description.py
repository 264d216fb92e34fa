"""What a flow is, stage by stage, as JSON: kept with the state, so that a checkpoint can be looked into without its pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.relation import Relation
from beamish.contract.stage import Stage
from beamish.contract.stand_ins import STAND_INS
from beamish.flow import BoundFlow
from beamish.kernels.identity import identity
from beamish.kernels.spec import UnreadableError, read_spec, shown_spec
from beamish.tables.older import described

DESCRIPTION = 2
"""The version of what is written; readers ignore what they do not know."""


def descriptions(flow: BoundFlow) -> list[dict[str, Any]]:
    """The description of each stage, in the order of ``flow.flows``.

    Each has ``stage`` and ``stages`` (its number, from 1, and how many there are), ``spec`` (of the stage), and
    ``inputs`` (the number of the stage, and spec).
    """
    flows = flow.flows
    number = {id(one): place for place, one in enumerate(flows, 1)}
    return [
        {
            "version": DESCRIPTION,
            "stage": number[id(one)],
            "stages": len(flows),
            "spec": identity(one.stage),
            "inputs": [
                {"stage": number.get(id(taken)), "spec": identity(attrs.evolve(relation, schema=None))}
                for relation, taken in zip(one.operator.takes, one.inputs, strict=True)
            ],
        }
        for one in flows
    ]


@attrs.frozen
class InputDescription:
    """What a description says of an input.

    Attributes:
        name: what the stage calls it; None: it is the only one.
        stage: the number of the stage whose panes it is; None: it is a source, or not known.
        keys: its key columns; empty: it has none, or they are not known.
        moves: how its watermark moves, in words; None: it is that of its stage, or not known.
        delay_us, lag_us: by how much it trails its rows, and the clock; None: not at all, or not known.
        spec: its spec; empty: not known.
    """

    name: str | None = None
    stage: int | None = None
    keys: Sequence[str] = ()
    moves: str | None = None
    delay_us: int | None = None
    lag_us: int | None = None
    spec: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of(cls, stage: int | None, spec: Mapping[str, Any], relation: Relation) -> InputDescription:
        """From its entry in a description, and the relation that is read from the spec."""
        if stage is not None or not relation.watermarks:
            return cls(relation.name, stage, relation.keys, spec=spec)
        policy = relation.policy
        lag_us = None if policy.lag is None else policy.lag.us
        return cls(relation.name, None, relation.keys, policy.describe(), policy.delay.us, lag_us, spec)


@attrs.frozen
class Description:
    """The description of a stage, read.

    Attributes:
        number: its number, from 1; 0: not known.
        inputs: what it takes.
        lines: the lines of explain.
        spec: its spec; empty: not known.
        suppress: the name of its suppress; None: it has none.
        only_updated: whether it leaves out panes that change nothing.
    """

    number: int = 0
    inputs: Sequence[InputDescription] = ()
    lines: Mapping[str, str] = attrs.field(factory=dict)
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    suppress: str | None = None
    only_updated: bool = False

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Description:
        """A description as it is stored; empty: there is none."""
        if "spec" not in about:
            older, rest = described(about)
            return cls(inputs=[InputDescription(**one) for one in older], **rest)
        try:
            takes = [read_spec(one["spec"], Relation, STAND_INS) for one in about["inputs"]]
        except UnreadableError:  # of a later version
            return cls(about["stage"])
        inputs = [InputDescription.of(**one, relation=of) for one, of in zip(about["inputs"], takes, strict=True)]
        read = partial(cls, about["stage"], inputs, spec=about["spec"])
        try:
            stage: Stage = read_spec(about["spec"], Stage, STAND_INS)
        except UnreadableError:
            return read({"stage": shown_spec(about["spec"])})
        suppress, only_updated = stage.keeps(takes).get(Keeps.HELD), bool(stage.core.declared("only_updated"))
        return read(dict(stage.describe(takes, None)), suppress=suppress, only_updated=only_updated)

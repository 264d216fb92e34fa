"""The plan of a window stage from its spec, to read its state without the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.accumulations.joins import Join
from beamish.contract.relation import Relation
from beamish.contract.stand_ins import STAND_INS, StandIn, UnknownAccumulation, UnknownTrigger, UnknownWindows
from beamish.kernels.spec import read_spec
from beamish.kinds.window.parts.planning import make_plan
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.plan.spec import Spec, null_keys_of
from beamish.triggers.trigger import Trigger

_NOT_HELD = "no checkpoint holds functions or classes of your own"
_READ = ("window", "trigger", "allowed_lateness", "late_rows", "mode", "accumulations", "key_watermark")
"""The options needed to read state; conditions and deduplication are not."""


@attrs.frozen(eq=False)
class ReadPlan:
    """A stage's plan, as far as its state contains it.

    Attributes:
        plan: without unknown parts, or with stand-ins for them (``contract/stand_ins.py``).
        unknown: the unknown parts, as sentences.
    """

    plan: WindowPlan
    unknown: tuple[str, ...] = ()

    @property
    def trigger(self) -> Trigger | None:
        """The trigger; None: it cannot be read."""
        trigger = self.plan.options.trigger
        return None if isinstance(trigger, UnknownTrigger) else trigger


def windows_at(plan: WindowPlan, start: int) -> list[tuple[int, int]] | None:
    """The windows that contain a time, as the window option assigns them; None: they depend on more than the time."""
    window = plan.window
    if window.columns or window.counts_rows or window.merging or isinstance(window, UnknownWindows):
        return None
    _, starts, ends = window.assign_columns(np.array([start], dtype=np.int64))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def read_plan(
    spec: Spec,
    schemas: Sequence[pa.Schema] | None,
    *,
    only_updated: bool = False,
    keys: Sequence[Sequence[str]] = (),
) -> ReadPlan:
    """The plan of a window stage, under one windowing, from its spec.

    Args:
        spec: from its index.
        schemas: the columns of the stage's inputs; None: the state is too old to have them.
        only_updated: whether it omits unchanged panes.
        keys: the key columns of each input; empty: unknown.
    """
    declared = {name: value for name, value in spec["options"].items() if name in _READ} | spec["changeable"]
    options: WindowOptions = read_spec({"is": "WindowOptions", **declared}, WindowOptions, STAND_INS)
    accumulations = options.accumulations.items()
    named: dict[str, Any] = {"the window ": options.window, "the trigger ": options.trigger}
    named |= {f"the values of {name}=": one for name, one in accumulations}
    unknown = [f"{what}{one!r}: {_NOT_HELD}" for what, one in named.items() if isinstance(one, StandIn)]
    known = {
        name: attrs.evolve(one, null_keys=null_keys_of(spec)) if isinstance(one, Join) else one
        for name, one in accumulations
        if not isinstance(one, UnknownAccumulation)
    }
    options = attrs.evolve(options, only_updated=only_updated, accumulations=known)
    takes = _takes(spec, [_schema(spec)] if schemas is None else schemas, keys)
    plan, error = _plan(options, takes, spec)
    return ReadPlan(plan, (*unknown, *([f"the values: {error}"] if error else [])))


def _plan(options: WindowOptions, takes: Sequence[Relation], spec: Spec) -> tuple[WindowPlan, str]:
    """The plan, without accumulations if they do not fit the known columns; and why."""
    try:
        return make_plan(options, takes, spec["shards"]), ""
    except Exception as error:  # noqa: BLE001 - whatever does not go together, the rest can be shown
        trigger = UnknownTrigger(repr(options.trigger)) if options.trigger.asked_values else options.trigger
        bare = attrs.evolve(options, accumulations={}, trigger=trigger)
        # of other inputs the keys may not be known
        return make_plan(bare, [_with_keys(takes[0], spec)], spec["shards"]), str(error)


def _with_keys(relation: Relation, spec: Spec) -> Relation:
    """A relation with the key types of the spec, which all inputs of a merge share."""
    keys = _schema({**spec, "reads": {}})
    others = [field for field in relation.schema or [] if field.name not in keys.names]
    return attrs.evolve(relation, schema=pa.schema([*keys, *others]))


def _takes(spec: Spec, schemas: Sequence[pa.Schema], keys: Sequence[Sequence[str]]) -> list[Relation]:
    """The inputs of the stage."""
    common = [name for name, _ in spec["keys"]]
    return [
        Relation(
            keys=tuple(of_input or common),
            event_time=None if relation["of"] == "panes" else "",
            retracts=relation["retracts"],
            schema=schema,
            name=relation["name"],
        )
        for relation, of_input, schema in zip(spec["inputs"], keys or [()] * len(schemas), schemas, strict=False)
    ]


def _schema(spec: Spec) -> pa.Schema:
    """The columns of the only input as far as a spec has them: keys, and what accumulations read."""
    columns = [*spec["keys"], *(column for columns in spec["reads"].values() for column in columns)]
    return pa.schema({name: type_ for name, text in columns if name and (type_ := _type(text)) is not None})


def _type(text: str) -> pa.DataType | None:
    try:
        return pa.type_for_alias(text)
    except ValueError:
        return None

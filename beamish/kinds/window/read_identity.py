"""Options again, from what a checkpoint holds of them (``identity.py``): so it can be looked into without its pipeline.

Nothing is unpickled or evaluated: a name of a class of ours and plain values become an option, and what comes out must have
the identity that was read. Functions, classes of users' own and expressions cannot come back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import attrs
import numpy as np
import pyarrow as pa

import beamish.accumulations as all_accumulations
import beamish.triggers as all_triggers
import beamish.windows as all_windows
from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.base.one_input import OfInput
from beamish.contract.relation import Relation
from beamish.durations import Duration
from beamish.kernels.codec import decode
from beamish.kernels.identity import identity, same_identity
from beamish.kinds.window.options import WindowOptions
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.planning import make_plan
from beamish.modes import AccumulationMode
from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Trigger
from beamish.windows.inherited import InheritedWindows
from beamish.windows.option import WindowOption
from beamish.windows.within import WithinInput

_Option = TypeVar("_Option")
_MODES = {
    "discarding": AccumulationMode.DISCARDING,
    "accumulating": AccumulationMode.ACCUMULATING,
    "retracting": AccumulationMode.ACCUMULATING_AND_RETRACTING,
}


@attrs.frozen
class UnknownWindows(WindowOption):
    """Stands for a window option that cannot be read.

    Attributes:
        words: what is known of it.
    """

    words: str

    def describe(self) -> str:
        return f"{self.words}, which cannot be read without the pipeline"


@attrs.frozen
class UnknownTrigger(Trigger):
    """Stands for a trigger that cannot be read.

    Attributes:
        words: what is known of it.
    """

    words: str

    def describe(self) -> str:
        return f"as {self.words} says, which cannot be read without the pipeline"


@attrs.frozen(eq=False)
class ReadPlan:
    """What a stage's state says of its plan.

    Attributes:
        plan: as far as it can be known: what is unknown is left out of it, or stands in it as ``UnknownWindows`` and ``UnknownTrigger``.
        unknown: what cannot be known, as sentences.
    """

    plan: WindowPlan
    unknown: tuple[str, ...] = ()

    @property
    def trigger(self) -> Trigger | None:
        """The trigger; None: it cannot be read."""
        trigger = self.plan.options.trigger
        return None if isinstance(trigger, UnknownTrigger) else trigger


def windows_at(plan: WindowPlan, start: int) -> list[tuple[int, int]] | None:
    """The windows that hold a time, as the window option assigns them to a row; None: it takes more than a time to know."""
    window = plan.window
    if window.columns or plan.window.counts_rows or window.merging or isinstance(window, UnknownWindows):
        return None
    _, starts, ends = window.assign_columns(np.array([start], dtype=np.int64))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def read_plan(
    stored: Mapping[str, Any],
    changeable: Mapping[str, Any],
    schemas: Sequence[pa.Schema] | None,
    about: Mapping[str, Any],
) -> ReadPlan:
    """The plan of a window stage, under one windowing, from its index.

    Args:
        stored: the identity in it.
        changeable: what may change, in it.
        schemas: the columns of what the stage takes; None: the state is too old to have them.
        about: the stage's description (``description.py``); empty: it has none.
    """
    unknown: list[str] = []
    own = about.get("own", ())
    window = None if "window" in own else option_of(stored["window"], WindowOption)
    trigger = None if "trigger" in own else option_of(changeable["trigger"], Trigger)
    for name, option, said in (("window", window, stored["window"]), ("trigger", trigger, changeable["trigger"])):
        if option is None:
            unknown.append(f"the {name} {in_words(said)}: no checkpoint holds functions or classes of your own")
    accumulations = {}
    for name, of in stored["accumulations"].items():
        accumulation = None if f"accumulation {name}" in own else option_of(of["is"], Accumulation)
        if accumulation is None:
            unknown.append(
                f"the values of {name}={in_words(of['is'])}: no checkpoint holds functions or classes of your own"
            )
        else:
            accumulations[name] = accumulation
    options = WindowOptions(
        window or UnknownWindows(in_words(stored["window"])),
        trigger or UnknownTrigger(in_words(changeable["trigger"])),
        mode=_MODES[stored["mode"]],
        only_updated=about.get("only_updated", False),
        accumulations=accumulations,
    )
    lateness = changeable["lateness"]
    late = {"late_rows": lateness} if options.counts_rows else {"allowed_lateness": Duration(lateness)}
    takes = _takes(stored, [_schema_in_words(stored)] if schemas is None else schemas, about)
    plan, error = _plan(attrs.evolve(options, **late), takes, stored)
    return ReadPlan(plan, (*unknown, *([f"the values: {error}"] if error else [])))


def _plan(options: WindowOptions, takes: Sequence[Relation], stored: Mapping[str, Any]) -> tuple[WindowPlan, str]:
    """The plan, without accumulations where they do not go with the columns that are known; and why."""
    try:
        return make_plan(options, takes, stored["shards"]), ""
    except Exception as error:  # noqa: BLE001 - whatever does not go together, the rest can be shown
        trigger = UnknownTrigger(repr(options.trigger)) if options.trigger.asked_values else options.trigger
        bare = attrs.evolve(options, accumulations={}, trigger=trigger)
        # of other inputs the keys may not be known
        return make_plan(bare, [_with_keys(takes[0], stored)], stored["shards"]), str(error)


def _with_keys(relation: Relation, stored: Mapping[str, Any]) -> Relation:
    """A relation with the types that the identity says of its keys: those that all inputs of a merge have together."""
    said = _schema_in_words({**stored, "accumulations": {}})
    others = [field for field in relation.schema or [] if field.name not in said.names]
    return attrs.evolve(relation, schema=pa.schema([*said, *others]))


def option_of(stored: Any, kind: type[_Option]) -> _Option | None:
    """The option that has this identity; None: it cannot be known."""
    try:
        option = _read(stored)
        return option if isinstance(option, kind) and same_identity(stored, identity(option)) else None
    except Exception:  # noqa: BLE001 - whatever does not come back is unknown
        return None


@cache
def _classes() -> Mapping[str, type]:
    """The classes of ours that an identity may name."""
    modules: Sequence[Any] = (all_triggers, all_windows, all_accumulations)
    named = {name: getattr(module, name) for module in modules for name in module.__all__}
    return named | {one.__name__: one for one in (InheritedWindows, WithinInput, OfInput)}


def _read(stored: Any) -> Any:
    if isinstance(stored, list) and len(stored) == 2 and isinstance(stored[0], str):
        composite: Any = _classes().get(stored[0])
        if isinstance(composite, type) and issubclass(composite, Composite):
            return composite(*map(_read, stored[1]))
    if isinstance(stored, list):
        return tuple(map(_read, stored))
    if not isinstance(stored, dict):
        return stored
    if "is" not in stored:
        return decode(json.dumps(stored).encode("ascii"))
    kind: Any = _classes()[stored["is"]]
    if not attrs.has(kind):
        raise TypeError(f"{kind.__name__} has no fields")
    fields = {field.name: field for field in attrs.fields(kind)}
    if "__attrs_init__" in vars(kind):  # such as CountDistinct(*columns)
        return kind(*_read(stored[next(iter(fields))]))
    return kind(**{fields[name].alias: _field(fields[name], own) for name, own in stored.items() if name != "is"})


def _field(field: Any, stored: Any) -> Any:
    kind = str(field.type)
    if isinstance(stored, int) and "Duration" in kind:
        return Duration(stored)
    if "Mapping" in kind and isinstance(stored, list):
        return {key: Duration(item) if "Duration" in kind else _read(item) for key, item in stored}
    return _read(stored)


def _takes(stored: Mapping[str, Any], schemas: Sequence[pa.Schema], about: Mapping[str, Any]) -> list[Relation]:
    """What the stage takes."""
    keys = _key_names(stored, schemas[0])
    described = about.get("inputs") or [{} for _ in schemas]
    return [
        Relation(
            keys=tuple(more.get("keys") or keys),
            event_time=None if relation["of"] == "panes" else "",
            retracts=relation["retracts"],
            schema=schema,
            name=relation["name"],
        )
        for relation, more, schema in zip(stored["inputs"], described, schemas, strict=False)
    ]


def _key_names(stored: Mapping[str, Any], schema: pa.Schema) -> list[str]:
    """The key columns: in an identity they are "name: type"."""
    known = {f"{field.name}: {field.type}": field.name for field in schema}
    return [known.get(text) or text.partition(": ")[0] for text in stored["keys"]]


def _schema_in_words(stored: Mapping[str, Any]) -> pa.Schema:
    """The columns of the only input as far as an identity says them: keys, and what accumulations read."""
    fields: dict[str, pa.DataType] = {}
    reads = [text for of in stored["accumulations"].values() for text in of["reads"]]
    for text, mark in (*((text, ": ") for text in stored["keys"]), *((text, " ") for text in reads)):
        name, _, type_ = text.partition(mark)
        known = _type_in_words(type_)
        if known is not None:
            fields[name] = known
    return pa.schema(list(fields.items()))


def _type_in_words(text: str) -> pa.DataType | None:
    try:
        return pa.type_for_alias(text)
    except ValueError:
        return None


def in_words(identity: Any) -> str:
    """An identity much as one would write what it is of."""
    if isinstance(identity, Mapping) and "is" in identity:
        option = option_of(identity, object)
        fields = (f"{name}={_field_in_words(option, name, own)}" for name, own in identity.items() if name != "is")
        return f"{identity['is']}({', '.join(fields)})"
    if isinstance(identity, list) and len(identity) == 2 and isinstance(identity[1], list):
        return f"{identity[0]}({', '.join(map(in_words, identity[1]))})"
    return str(identity)


def _field_in_words(option: object, name: str, stored: Any) -> str:
    """A field of an option; an identity has durations as numbers of microseconds."""
    own = getattr(option, name, None)
    if isinstance(own, Duration):
        return repr(own)
    return repr(stored) if isinstance(stored, str) else in_words(stored)

"""The spec of a window stage, as JSON: the options and columns that its state depends on (``kernels/spec.py``).

shards              their number
inputs              of each: name, whether it is rows or panes, whether it retracts; the condition of one that does
keys, ids           the key columns, and the id columns: pairs of name and type
reads               by accumulation the columns that it reads, likewise; if it reads whole rows the name is null
keeps_rows          whether rows are stored, so that the removal of a row dropped for an error is recognised
null_keys           "unmatched": in a join they have no match; missing: they pair
options             the ``WindowOptions`` that state depends on, by name; missing ones have their default
changeable          likewise those that may change, which makes the next step read all state
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.joins import Join, NullKeys
from beamish.contract.inputs import where_identity
from beamish.contract.relation import Relation
from beamish.kernels.identity import identity, same_identity
from beamish.kinds.window.plan.options import WindowOptions
from beamish.windows.time_windows import AnchoredWindows

Spec = Mapping[str, Any]
_HELD = (
    "window",
    "mode",
    "combiner",
    "where",
    "deduplication",
    "key_watermark",
    "derived",
    "having",
    "explode",
    "accumulations",
)
_CHANGEABLE = ("trigger", "allowed_lateness", "late_rows", "wait_for")


def spec_of(
    options: WindowOptions, takes: Sequence[Relation], *, null_keys: str | None, **bound: Any
) -> dict[str, Any]:
    """The spec of a bound stage; ``null_keys``: of a join, ``bound``: the other parts that follow from the columns."""
    accumulations = {name: _without_null_keys(one) for name, one in options.accumulations.items()}
    window = None if options.window is None else options.window.in_state
    declared = identity(attrs.evolve(options, window=window, accumulations=accumulations))
    if options.discards:
        declared.pop("mode", None)
    # Rows of anchored windows are stored for the lateness.
    held = (*_HELD, "allowed_lateness") if isinstance(options.window, AnchoredWindows) else _HELD
    return {
        **bound,
        **({"null_keys": null_keys} if null_keys == "unmatched" else {}),
        "inputs": [_input(relation) for relation in takes],
        "options": {name: declared[name] for name in held if name in declared},
        "changeable": {name: declared[name] for name in _CHANGEABLE if name in declared},
    }


def same_state(then: Spec, now: Spec) -> bool:
    """Whether two specs have the same state."""
    apart = ("changeable", "null_keys")
    return null_keys_of(then) == null_keys_of(now) and all(
        same_identity(then[name], now[name]) for name in then if name not in apart
    )


def null_keys_of(spec: Spec) -> NullKeys:
    """The meaning of null keys in a join."""
    return "unmatched" if spec.get("null_keys") == "unmatched" else "pair"


def _without_null_keys(accumulation: Accumulation) -> Accumulation:
    """A join without its ``null_keys``, which the spec has beside it: earlier versions had none, and paired them."""
    return attrs.evolve(accumulation, null_keys="unmatched") if isinstance(accumulation, Join) else accumulation


def columns_of(schema: Iterable[pa.Field]) -> list[list[str]]:
    """Columns as pairs of name and type."""
    return [[field.name, str(field.type)] for field in schema]


def _input(relation: Relation) -> dict[str, Any]:
    where = where_identity(relation)
    return {
        "name": relation.name,
        "of": "panes" if relation.is_panes else "rows",
        "retracts": relation.retracts,
        **({"where": where} if where else {}),
        **({"key sets": [list(one) for one in relation.key_sets]} if relation.key_sets else {}),
    }

"""What may not change of a window stage while a checkpoint is used, and what may but makes the state be read through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from beamish.contract.conditions import where_identity
from beamish.contract.relation import Relation
from beamish.kernels.identity import identity
from beamish.kinds.window.binding import BoundAccumulation
from beamish.kinds.window.options import WindowOptions


def identity_of(
    options: WindowOptions,
    takes: Sequence[Relation],
    keys: pa.Schema,
    accumulations: Sequence[BoundAccumulation],
    *,
    shards: int,
    ids: Sequence[pa.Field],
    keeps_rows: bool,
) -> dict[str, Any]:
    """What a checkpoint holds fast, in terms of JSON, by what a user calls it."""
    mode = "discarding" if options.discards else "retracting" if options.retracts else "accumulating"
    return {
        "shards": shards,
        "inputs": [_input(relation) for relation in takes],
        "keys": [f"{field.name}: {field.type}" for field in keys],
        "window": identity(options.window),
        "mode": mode,
        "timestamp combiner": options.combiner.value,
        "conditions and computed columns": _formulas(options),
        "deduplication": _known_by(options, ids),
        "accumulations": {
            bound.name: {"is": identity(options.accumulations[bound.name]), "reads": bound.reads}
            for bound in accumulations
        },
        # Older checkpoints say nothing of it, which is read as {}.
        "rows that are kept for on_error('drop')": "all" if keeps_rows else {},
    }


def _input(relation: Relation) -> dict[str, Any]:
    where = where_identity(relation)
    return {
        "name": relation.name,
        "of": "panes" if relation.is_panes else "rows",
        "retracts": relation.retracts,
        **({"where": where} if where else {}),
    }


def _known_by(options: WindowOptions, ids: Sequence[pa.Field]) -> str | None:
    """How rows are known again: what is remembered is of these columns."""
    if options.deduplication is None:
        return None
    return f"{options.deduplication.call} of {', '.join(f'{field.name} {field.type}' for field in ids)}"


def _formulas(options: WindowOptions) -> dict[str, Any]:
    """What decides which rows are taken and which panes come out; what was kept before cannot be known anew.

    The two of panes may change all the same where panes are not taken back (``kinds/window/compatibility.py``).
    """
    own = {"where": options.where, "having": options.having, "with_columns": dict(options.derived)}
    return {name: identity(formula) for name, formula in own.items() if formula}


def changeable_of(options: WindowOptions) -> dict[str, Any]:
    """What may change, but makes the state be read through once."""
    return {"trigger": identity(options.trigger), "lateness": options.lateness}

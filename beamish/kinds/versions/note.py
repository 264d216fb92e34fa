"""The metadata of a shard with a versioned table: an entry of its store, as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import attrs

from beamish.contract.clocks import Clocks
from beamish.contract.store import Store
from beamish.durations import Duration
from beamish.errors import StateError
from beamish.kernels.identity import same_identity
from beamish.kinds.versions.changes import cells_schema
from beamish.kinds.versions.plan import TablePlan
from beamish.tables.notes import NOTE_FORMAT, kind_entry, read_json

ENTRY = kind_entry("table", "a versioned table or a join with one")


@attrs.define
class Note:
    """The metadata.

    Attributes:
        clocks: the current clocks.
        dropped: number of rows dropped so far, by reason.
        steps: number of steps with changes.
    """

    clocks: Clocks
    dropped: dict[str, int] = attrs.Factory(dict)
    steps: int = 0

    def write(self, store: Store, identity: Mapping[str, Any], table: TablePlan) -> None:
        """Write it, with the stage's identity."""
        about = {
            "format": NOTE_FORMAT,
            "identity": identity,
            "name": table.takes.name,
            "spans": table.spans,
            "cells": base64.b64encode(cells_schema(table).serialize().to_pybytes()).decode(),
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
            "steps": self.steps,
        }
        store.put(ENTRY, json.dumps(about).encode())


def read_note(store: Store, identity: Mapping[str, Any], table: TablePlan, inputs: int) -> Note:
    """The metadata of a shard; initialized for a new shard.

    Args:
        store: the shard's.
        identity: of the stage.
        table: the plan of its table.
        inputs: number of inputs whose watermark counts.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """
    about = read_json(store, ENTRY, holds="a versioned table")
    if about is None:
        return Note(Clocks.new(inputs))
    for what, now in identity.items():
        then = about["identity"].get(what)
        if not same_identity(then, now):
            raise StateError(
                f"the checkpoint was written with {_said(what, then)}, the pipeline now has {_said(what, now)}: keep the old one, or start from a "
                "new checkpoint (grace and with_dropped may change, history and allowed_lateness may shrink)"
            )
    for what, now_us in table.spans.items():
        then_us = about["spans"][what]
        if now_us > then_us:
            raise StateError(
                f"the checkpoint was written with {what} '{Duration(then_us)}', the pipeline now has '{Duration(now_us)}': it may only shrink, since older changes were dropped; keep the old one, or start from a new checkpoint"
            )
    return Note(Clocks.of(about["clocks"]), about["dropped"], about["steps"])


def _said(what: str, value: Any) -> str:
    """An option, in source form."""
    return f"{what} {str(Duration(value))!r}" if what == "tolerance" and value is not None else f"{what} {value}"

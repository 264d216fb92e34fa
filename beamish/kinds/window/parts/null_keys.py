"""Rows with a null in their key, which have no match in a join (docs/rules/stages.md#null-keys).

They are dropped unless their side emits unmatched rows. Where both sides do, they are marked, so that they do not pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from beamish.accumulations.base.pairs_once import PairsOnce
from beamish.accumulations.joins import NullKeys
from beamish.contract.drops import NULL_KEY
from beamish.contract.keys import any_null
from beamish.contract.stored import Store
from beamish.errors import StateError
from beamish.kernels.buffers import NO_ENTRY, Flags, list_lengths, numbers
from beamish.kernels.column_names import INPUT
from beamish.kinds.window.plan.part import Assign, WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.plan.spec import null_keys_of
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_rows
from beamish.kinds.window.step.entries import Entries, into_own_windows
from beamish.kinds.window.step.step import Step


class NullKeysPart(WindowPart):
    """Drops rows that can have no match.

    Args:
        drops: the numbers of the inputs whose unmatched rows are not emitted.
        marks: whether rows that never have a match are marked.
        then: the meaning of null keys that stored windows must not depend on; None: they do not.
    """

    def __init__(self, drops: Sequence[int], *, marks: bool, then: NullKeys | None = None) -> None:
        self._drops, self._marks, self._then = drops, marks, then

    @classmethod
    def of(cls, plan: WindowPlan) -> NullKeysPart | None:
        join = plan.declared_join
        if plan.null_keys is None or join is None:
            return None
        names = [relation.name for relation in plan.takes]
        sides = zip(join.names_of_inputs, join.gives_alone, strict=True)
        drops = [names.index(name) for name, alone in sides if not alone and plan.null_keys == "unmatched"]
        return cls(drops, marks=isinstance(plan.exploding, PairsOnce) and plan.exploding.apart)

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> NullKeysPart:
        then = null_keys_of(about["spec"]) if about and plan.retracts_null_keys else None
        return NullKeysPart(self._drops, marks=self._marks, then=None if then == plan.null_keys else then)

    def receive(self, step: Step, payloads: Sequence[bytes]) -> Sequence[bytes]:
        """Check windows that were stored under another meaning (StateError: what one emitted cannot be retracted)."""
        if self._then is not None:
            _check_stored(step, self._then)
            self._then = None
        return payloads

    def prepare(self, step: Step, bundle: Bundle) -> None:
        if self._marks:
            bundle.apart = _null_key(bundle) if bundle.apart is None else bundle.apart | _null_key(bundle)

    def assigning(self, assign: Assign) -> Assign:
        """In a full interval join, put rows of a null key into their own windows only."""

        def assigned(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
            entries: Entries = assign(step, bundle, windowed)
            unmatched = step.plan.null_keys == "unmatched"
            return into_own_windows(step, bundle, entries, _null_key(bundle)) if unmatched else entries

        return assigned

    def admit_keys(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        if not self._drops:
            return rows
        gone = rows & _null_key(bundle)
        gone &= np.isin(numbers(bundle.table[INPUT].combine_chunks()), self._drops)
        drop_rows(step, bundle, gone, NULL_KEY)
        return rows & ~gone


def _check_stored(step: Step, then: NullKeys) -> None:
    step.load(np.ones(len(step.state.index["segment"]), dtype=bool))
    table, (bound,) = step.table, step.plan.accumulations
    at = np.flatnonzero(~table["closed"] & ~table["gone"] & (table["state_at"] != NO_ENTRY))
    at = at[any_null(table.keys.take(table["key_at"][at]).columns, len(at))]
    sides = bound.values(table.state.take(table["state_at"][at])).flatten()
    held = at[np.logical_and.reduce([list_lengths(side) > 0 for side in sides])]
    for key in table.keys.take(table["key_at"][held]).to_pylist()[:1]:
        raise StateError(
            f"{len(held)} stored windows of null keys, the first of key {key!r}, emitted joined rows under null_keys={then!r}, which "
            f"cannot be retracted under null_keys={step.plan.null_keys!r}: set null_keys={then!r} until they have expired, or start from a "
            "new checkpoint"
        )


def _null_key(bundle: Bundle) -> Flags:
    return any_null(bundle.keys.columns, len(bundle.time_us))

"""Conditions that a row of a join must fulfil to have a match (docs/rules/joins.md#match-conditions).

A row that does not is marked where its side emits unmatched rows; otherwise it is left out, as by a condition of its input.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import MergedInput
from beamish.contract.inputs import merged_inputs
from beamish.kernels.buffers import Flags, numbers
from beamish.kernels.column_names import INPUT
from beamish.kernels.expressions import NO_OTHER, Formula
from beamish.kinds.window.plan.part import Assign, WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.entries import Entries, into_own_windows
from beamish.kinds.window.step.step import Step


class MatchConditionsPart(WindowPart):
    """Tells rows without a match by their values.

    Args:
        conditions: by input, its condition and whether its unmatched rows are emitted.
        inputs: of the merge, by name.
        keys: the key columns of the merge.
    """

    def __init__(
        self,
        conditions: Mapping[str, tuple[Formula, bool]],
        inputs: Mapping[str, MergedInput],
        keys: tuple[str, ...],
    ) -> None:
        self._conditions, self._inputs, self._keys = conditions, inputs, keys
        self._left_out: Flags | None = None

    @classmethod
    def of(cls, plan: WindowPlan) -> MatchConditionsPart | None:
        join = plan.declared_join
        if join is None or not join.match_if:
            return None
        alone = dict(zip(join.names_of_inputs, join.gives_alone, strict=True))
        conditions = {name: (formula, alone[name]) for name, formula in join.match_if.items()}
        return cls(conditions, merged_inputs(plan.takes, plan.schema), plan.keys)

    def prepare(self, step: Step, bundle: Bundle) -> None:
        which = numbers(bundle.table[INPUT].combine_chunks())
        apart = np.zeros(len(which), dtype=bool)
        left_out = apart.copy()
        for name, (formula, alone) in self._conditions.items():
            own = np.flatnonzero(which == self._inputs[name].number)
            if not len(own):  # the columns of an input without rows may be unknown
                continue
            rows = self._rows_of(bundle.table.take(pa.array(own)), self._inputs[name])
            holds = formula.computed(f"match_if of {name}: {formula!r}", rows, way_out=NO_OTHER).cast(pa.bool_())
            fails = own[~numbers(holds.fill_null(False)).astype(bool)]  # noqa: FBT003
            (apart if alone else left_out)[fails] = True
        bundle.apart = apart
        self._left_out = left_out

    def admit_keys(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        return rows if self._left_out is None else rows & ~self._left_out

    def assigning(self, assign: Assign) -> Assign:
        """In a full interval join, put rows without a match into their own windows only."""

        def assigned(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
            entries: Entries = assign(step, bundle, windowed)
            return entries if bundle.apart is None else into_own_windows(step, bundle, entries, bundle.apart)

        return assigned

    def _rows_of(self, rows: pa.Table, input_: MergedInput) -> pa.Table:
        """Rows of an input under its own names."""
        keys = dict(zip(input_.keys, self._keys, strict=True))
        names = [keys.get(name, input_.merged_name(name)) for name in input_.columns]
        return rows.select(names).rename_columns(list(input_.columns))

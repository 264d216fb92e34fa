"""Rows with a null in their key, which have no match in a join (docs/rules/stages.md#null-keys).

They are dropped unless their side emits unmatched rows. Where both sides do, they are marked, so that they do not pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beamish.accumulations.base.pairs_once import PairsOnce
from beamish.contract.drops import NULL_KEY
from beamish.contract.keys import any_null
from beamish.kernels.buffers import Flags, flags, numbers
from beamish.kernels.column_names import APART, INPUT
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_rows
from beamish.kinds.window.step.step import Step


class NullKeysPart(WindowPart):
    """Drops rows that can have no match.

    Args:
        drops: the numbers of the inputs whose unmatched rows are not emitted.
        marks: whether rows that never have a match are marked.
    """

    def __init__(self, drops: Sequence[int], *, marks: bool) -> None:
        self._drops, self._marks = drops, marks

    @classmethod
    def of(cls, plan: WindowPlan) -> NullKeysPart | None:
        join = plan.declared_join
        if plan.null_keys != "unmatched" or join is None:
            return None
        names = [relation.name for relation in plan.takes]
        sides = zip(join.names_of_inputs, join.gives_alone, strict=True)
        marks = isinstance(plan.join, PairsOnce) and plan.join.apart
        return cls([names.index(name) for name, alone in sides if not alone], marks=marks)

    def prepare(self, step: Step, bundle: Bundle) -> None:
        if self._marks:
            bundle.table = bundle.table.append_column(APART, flags(_null_key(bundle)))

    def admit_keys(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        if not self._drops:
            return rows
        gone = rows & _null_key(bundle)
        gone &= np.isin(numbers(bundle.table[INPUT].combine_chunks()), self._drops)
        drop_rows(step, bundle, gone, NULL_KEY)
        return rows & ~gone


def _null_key(bundle: Bundle) -> Flags:
    return any_null(bundle.keys.columns, len(bundle.time_us))

"""``having`` and ``with_columns``: columns computed from a stage's output, which a condition filters.

Refined output of a stage: computed columns, and only the panes that satisfy a condition.

It is stateless: a retraction has the values of the pane that it retracts, so it is left out if that pane was.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.chain import Chain
from beamish.contract.operator import Chained, Operator
from beamish.contract.relation import Relation
from beamish.errors import ColumnError
from beamish.kernels.buffers import Flags
from beamish.kernels.expressions import ANOTHER, NO_OTHER, Formula, check_condition
from beamish.pane import PaneChange, PaneKind


@attrs.define(slots=False, eq=False)
class Refinement(Chained):
    """Computed columns and a condition, chained to an operator (see ``contract/chain.py``).

    Attributes:
        of: the output of the stage.
        derived: computed columns, by name.
        having: the condition on panes; None: all.
        gives: the refined output.

    Raises:
        ColumnError: a formula names a missing column, or has the wrong type.
    """

    of: Relation
    derived: Mapping[str, Formula]
    having: Formula | None
    gives: Relation = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        schema = self.of.schema
        assert schema is not None  # noqa: S101 - a bound stage knows it
        for name, formula in self.derived.items():
            type_ = formula.type_in(f"with_columns({name}={formula!r})", schema)
            if pa.types.is_null(type_) or pa.types.is_unsigned_integer(type_):
                raise ColumnError(f"with_columns({name}={formula!r}): is {type_}; cast it: .cast(pa.int64())")
            schema = schema.insert(schema.get_field_index("pane"), pa.field(name, type_))
        if self.having is not None:
            check_condition(f"having({self.having!r})", self.having, schema)
        self.gives = attrs.evolve(self.of, schema=schema)

    def rows(self, rows: pa.Table) -> pa.Table:
        """Output rows of the stage, refined; dropped rows pass unchanged."""
        panes = rows
        if not panes.num_rows:
            return self.gives.schema.empty_table()  # type: ignore[union-attr]
        way_out = NO_OTHER if self.gives.retracts else ANOTHER
        is_dropped = pc.equal(panes["pane"].combine_chunks().field("kind"), str(PaneKind.DROPPED))
        for name, formula in self.derived.items():
            values = formula.computed(f"with_columns({name}={formula!r})", panes, way_out=way_out)
            values = pc.if_else(is_dropped, pa.scalar(None, values.type), values)
            panes = panes.add_column(panes.schema.get_field_index("pane"), pa.field(name, values.type), values)
        if self.having is not None:
            kept = self.having.computed(f"having({self.having!r})", panes, way_out=way_out)
            kept = pc.fill_null(pc.or_kleene(is_dropped, kept.cast(pa.bool_())), False)  # noqa: FBT003 - it is Arrow's
            panes = _apart(panes, np.asarray(kept)).filter(kept)
        return panes


def refined(operator: Operator, derived: Mapping[str, Formula], having: Formula | None) -> Operator:
    """An operator with computed columns and a condition, if there are any (ColumnError: as ``Refinement``)."""
    if not derived and having is None:
        return operator
    return Chain(operator, [Refinement(operator.gives, derived, having)])


def _apart(panes: pa.Table, kept: Flags) -> pa.Table:
    """If ``having`` drops only one of a retraction and its replacement, mark the other as a plain delete or insert."""
    column = panes["pane"].combine_chunks()
    change = column.field("change")
    before = np.asarray(pc.fill_null(pc.equal(change, str(PaneChange.UPDATE_BEFORE)), False))  # noqa: FBT003
    pairs = np.flatnonzero(before)  # the pane comes right after
    alone = pairs[kept[pairs] != kept[pairs + 1]]
    if not len(alone):
        return panes
    words = np.asarray(change.to_pylist(), dtype=object)
    words[alone], words[alone + 1] = str(PaneChange.DELETE), str(PaneChange.INSERT)
    at = column.type.get_field_index("change")
    fields = column.flatten()
    fields[at] = pa.array(words, pa.string())
    shown = pa.StructArray.from_arrays(fields, fields=list(column.type))
    return panes.set_column(panes.schema.get_field_index("pane"), "pane", shown)

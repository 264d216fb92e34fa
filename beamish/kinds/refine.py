"""``having``, ``with_columns`` and ``explode``: columns computed from a stage's output, which a condition filters; an array as rows.

Refined output of a stage: computed columns, only the panes that satisfy a condition, and a row for each item of a column.

It is stateless: a retraction has the values of the pane that it retracts, so it is left out if that pane was, and becomes the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.chain import Chain
from beamish.contract.inputs import find_column
from beamish.contract.operator import Chained, Operator
from beamish.contract.relation import Relation
from beamish.errors import ColumnError, OptionError
from beamish.kernels.buffers import NO_ENTRY, Flags, list_lengths, pick, plain, plain_type
from beamish.kernels.expressions import ANOTHER, NO_OTHER, Formula, check_condition
from beamish.pane import PaneChange, PaneKind


@attrs.define(slots=False, eq=False)
class Refinement(Chained):
    """Computed columns and a condition, chained to an operator (see ``contract/chain.py``).

    Attributes:
        of: the output of the stage.
        derived: computed columns, by name.
        having: the condition on panes; None: all.
        explode: the column with an array, whose items become rows; None: each pane is one row.
        gives: the refined output.

    Raises:
        ColumnError: a formula names a missing column, or has the wrong type.
    """

    of: Relation
    derived: Mapping[str, Formula]
    having: Formula | None
    explode: str | None = None
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
        if self.explode is not None:
            schema = _with_items(schema, attrs.evolve(self.of, schema=schema), self.explode)
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
            panes, is_dropped = _apart(panes, np.asarray(kept)).filter(kept), is_dropped.filter(kept)
        return panes if self.explode is None else _exploded(panes, self.explode, np.asarray(is_dropped, dtype=bool))


def refined(
    operator: Operator, derived: Mapping[str, Formula], having: Formula | None, explode: str | None = None
) -> Operator:
    """An operator with computed columns, a condition and an array as rows, if there are any (ColumnError: as ``Refinement``)."""
    if not derived and having is None and explode is None:
        return operator
    return Chain(operator, [Refinement(operator.gives, derived, having, explode)])


def read_explode(column: Any) -> str:
    """Read the argument of a call (OptionError: not the name of a column)."""
    if not isinstance(column, str) or not column:
        raise OptionError(f"explode({column!r}): must be the name of a column")
    return column


def describe_explode(name: str) -> str:
    """The rows of an array, for explain."""
    return f"a row for each item of {name}; none if it is empty or null"


def _with_items(schema: pa.Schema, of: Relation, name: str) -> pa.Schema:
    """The columns with the items of one (ColumnError: it is missing, or not an array)."""
    call = f"explode({name!r})"
    type_ = plain_type(find_column(of.columns, call, name).type)
    if not pa.types.is_list(type_):
        raise ColumnError(f"{call}: is {type_}; it must be an array, such as that of Collect(...)")
    return schema.set(schema.get_field_index(name), pa.field(name, type_.value_type))


def _exploded(panes: pa.Table, name: str, is_dropped: Flags) -> pa.Table:
    """A row for each item of an array; none for an empty or null one. Dropped rows pass."""
    column = plain(panes[name])
    times = np.where(is_dropped, 1, list_lengths(column))
    at = np.repeat(np.arange(panes.num_rows), times)
    has_item = ~is_dropped[at]
    item = np.where(has_item, np.cumsum(has_item) - 1, NO_ENTRY)
    rows, items = panes.take(pa.array(at)), pick(column.flatten(), item)
    rows = rows.set_column(rows.schema.get_field_index(name), pa.field(name, items.type), items)
    pane = rows["pane"].combine_chunks()
    change = pane.field("change").to_pylist()
    return _with_changes(rows, pane, [one and str(PaneChange(one).alone) for one in change])


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
    return _with_changes(panes, column, words)


def _with_changes(panes: pa.Table, column: pa.Array, words: Any) -> pa.Table:
    """Panes with other changes."""
    at = column.type.get_field_index("change")
    fields = column.flatten()
    fields[at] = pa.array(words, pa.string())
    shown = pa.StructArray.from_arrays(fields, fields=list(column.type))
    return panes.set_column(panes.schema.get_field_index("pane"), "pane", shown)

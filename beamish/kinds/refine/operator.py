"""What a stage gives, with columns computed from it and without the panes that a condition leaves out.

It is worked out in the stage's shards, after their step, and holds no state: a retraction has the values of the pane that it
takes back, so it is left out where that pane was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.counts import Counts
from beamish.contract.operator import Operator, Shard
from beamish.contract.relation import Relation
from beamish.contract.store import Store
from beamish.errors import ColumnError
from beamish.kernels.arrays import Flags
from beamish.kernels.formulas import ANOTHER, NO_OTHER, Formula, check_condition
from beamish.pane import PaneChange, PaneKind


@attrs.define(slots=False, eq=False)
class RefinedOperator(Operator):
    """An operator whose output is refined (see ``contract/operator.py``).

    Attributes:
        inner: the stage's own operator.
        derived: columns that are computed, by name.
        having: which panes come out; None: all.
        gives: what comes out.
    """

    inner: Operator
    derived: Mapping[str, Formula]
    having: Formula | None
    gives: Relation = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        inner = self.inner
        self.takes, self.shards, self.identity, self.cadence = inner.takes, inner.shards, inner.identity, inner.cadence
        self.needs_clock, self.holds_watermark = inner.needs_clock, inner.holds_watermark
        schema = inner.gives.schema
        assert schema is not None  # noqa: S101 - a bound stage knows it
        for name, formula in self.derived.items():
            type_ = formula.type_in(f"with_columns({name}={formula!r})", schema)
            if pa.types.is_null(type_) or pa.types.is_unsigned_integer(type_):
                raise ColumnError(f"with_columns({name}={formula!r}): is {type_}; cast it: .cast(pa.int64())")
            schema = schema.insert(schema.get_field_index("pane"), pa.field(name, type_))
        if self.having is not None:
            check_condition(f"having({self.having!r})", self.having, schema)
        self.gives = attrs.evolve(inner.gives, schema=schema)

    def reads(self, number: int) -> Sequence[str]:
        return self.inner.reads(number)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return self.inner.pack(number, rows)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        return self.inner.pack_pieces(number, pieces)

    def open(self, store: Store) -> Shard:
        return RefinedShard(self, self.inner.open(store))

    def refine(self, panes: pa.Table) -> pa.Table:
        """The output of the stage as it comes out; dropped rows as they are."""
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

    def refined_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same of output that is there already; for ``mapInArrow``."""
        for batch in batches:
            yield from self.refine(pa.Table.from_batches([batch])).combine_chunks().to_batches()


def _apart(panes: pa.Table, kept: Flags) -> pa.Table:
    """Of a retraction and the pane that replaces it one may be left out: then the other stands alone, and says so."""
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


class RefinedShard(Shard):
    """A shard whose output is refined."""

    def __init__(self, operator: RefinedOperator, inner: Shard) -> None:
        self._operator, self._inner, self.clocks = operator, inner, inner.clocks

    @property
    def next_due_us(self) -> int | None:
        return self._inner.next_due_us

    @property
    def dropped(self) -> Mapping[str, int]:
        return self._inner.dropped

    @property
    def counts(self) -> Counts:
        return self._inner.counts

    def begin(self, payloads: Sequence[bytes]) -> None:
        self._inner.begin(payloads)

    def step(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        return self._operator.refine(self._inner.step(sources_us, clock_us, payloads))


@overload
def bare(operator: Operator) -> Operator: ...
@overload
def bare(operator: Operator | None) -> Operator | None: ...
def bare(operator: Operator | None) -> Operator | None:
    """The stage's own operator, without what is refined of it."""
    return operator.inner if isinstance(operator, RefinedOperator) else operator

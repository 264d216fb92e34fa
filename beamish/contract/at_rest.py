"""Stored state as rows: queries of ``Pipeline.state`` and ``bm.inspect`` to a stage (docs/rules/running.md#kept-windows).

A stage declares what it ``keeps`` (``contract/stage.py``). Bound to the stored schema, it answers queries; an answer reads the
store of one shard at a time, so scripts and checkpoints work alike, and on Spark the executors read.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Store
from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.kernels.buffers import Flags
from beamish.kernels.codes import factorize_rows, normalise

UNLESS_EXTENDED = ", unless rows extend it"
"""After the end of a merging window, which is not fixed."""
EVER = (-END_OF_TIME_US, END_OF_TIME_US)


class Keeps(enum.StrEnum):
    """Kinds of stored rows, one per call of ``state()``."""

    WINDOWS = "windows"
    ROWS = "rows"
    HELD = "held"
    VERSIONS = "versions"
    KEYS = "keys"


class Waits(enum.StrEnum):
    """Conditions that stored windows wait for.

    A window waits for the watermark before its end if its trigger fires there, and for the expiry (the end and the allowed lateness) if
    no pane is outstanding: it is closed, or it has ended and has no new rows. Other windows wait for their trigger: rows, the
    clock, values.
    """

    WATERMARK = "watermark"
    TRIGGER = "trigger"
    EXPIRY = "expiry"


class Order(enum.StrEnum):
    """Orders of stored windows: by the end (those that only wait for their expiry last), by the end from the last one, by the number of new rows, of panes."""

    NEXT = "next"
    LAST = "last"
    ROWS = "rows"
    PANES = "panes"


@attrs.frozen
class First:
    """The first stored windows of each shard, in an order.

    Attributes:
        count: how many.
        order: the order.
        waits: only those that wait for this; None: all.
    """

    count: int
    order: Order = Order.NEXT
    waits: Waits | None = None


@attrs.frozen
class Asked:
    """A query for stored rows.

    Attributes:
        what: the kind of rows.
        key: values of some key columns; or the value of the only one; None: any.
        span: half-open, microseconds since the epoch or row numbers: windows that overlap it, rows in it.
        of: the name of the table or windowing; None: the only one.
        as_of: versions valid at this time, as given; None: all within exact reads.
        as_of_us: the same in microseconds.

    Raises:
        OptionError: ``as_of`` is not a time.
    """

    what: Keeps
    key: Any = None
    span: tuple[int, int] = EVER
    of: str | None = None
    as_of: Any = None
    as_of_us: int | None = attrs.field(init=False)

    @as_of_us.default
    def _as_of_us(self) -> int | None:
        return None if self.as_of is None else instant_us("versions(as_of)", self.as_of)


class Answer(Protocol):
    """The selected rows, read shard by shard; picklable.

    Attributes:
        schema: of the rows.
        keys: the names of its key columns.
        shard: the only shard that may have such rows; None: any.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    shard: int | None = None

    def needs(self, notes: Store) -> Iterable[str] | None:
        """Additional entries of a shard to read; a name that ends in ``/`` is a prefix. None: all entries."""
        return None

    def read(self, store: Store) -> pa.Table:
        """The selected rows of a shard, whose store has at least the metadata and the ``needs`` (StateError: the state cannot be read)."""
        ...


class AtRest(Protocol):
    """A stage bound to the schema stored by its shards."""

    def answer(self, asked: Asked) -> Answer:
        """The answer to a query for something that the stage ``keeps``.

        Raises:
            OptionError, PipelineError: no such key column, or such rows are not stored.
        """
        ...


@attrs.frozen
class Compared:
    """A difference between a stage and the one that wrote its state, for ``bm.check_upgrade``.

    Attributes:
        what: as in ``explain()`` or the pipeline.
        then, now: the old and the new value, in words; empty: absent.
        means: the effect on the state; for an incompatible change the cause and the fix.
        refused: whether its shards refuse the state.
    """

    what: str
    then: str
    now: str
    means: str
    refused: bool = False


def read_key(call: str, key: Any, schema: pa.Schema) -> dict[str, Any]:
    """Cast the values of key columns to their types.

    Args:
        call: the call, for messages.
        key: as ``Asked.key``.
        schema: the key columns.

    Raises:
        OptionError: no such column, or a value of another type.
    """
    if key is None:
        return {}
    if not isinstance(key, Mapping):
        if len(schema.names) != 1:
            raise OptionError(
                f"{call}(key={key!r}): the key columns are {schema.names}; give a dict of theirs, such as "
                f"key={{{(schema.names or ['name'])[0]!r}: ...}}"
            )
        key = {schema.names[0]: key}
    for name in key:
        if name not in schema.names:
            raise OptionError(f"{call}(key={dict(key)!r}): {name!r} is not a key column; they are {schema.names}")
    return {name: _value(f"{call}(key={dict(key)!r})", value, schema.field(name)) for name, value in key.items()}


def _value(where: str, value: Any, field: pa.Field) -> Any:
    try:
        return pa.scalar(value, field.type).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise OptionError(f"{where}: key column {field.name!r} is {field.type}; give a value of this type") from None


def of_key(keys: pa.Table, key: Mapping[str, Any]) -> Flags:
    """Select rows by values of key columns: bool, one per row. Null equals null, NaN equals NaN."""
    wanted = [pa.array([value], keys.schema.field(name).type) for name, value in key.items()]
    there = [keys[name].combine_chunks() for name in key]
    both = [normalise(pa.concat_arrays([one, column])) for one, column in zip(wanted, there, strict=True)]
    of = factorize_rows(both, keys.num_rows + 1).of
    same: Flags = of[1:] == of[0]
    return same if key else np.ones(keys.num_rows, dtype=bool)

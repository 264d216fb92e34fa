"""A table of panes, of a running query or stored, and the roles of its columns."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.relation import Ledger, SlotSemantics
from beamish.errors import ColumnError, OptionError
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.spark.rows.columns import column, plain_texts


@attrs.frozen
class PaneTable:
    """The rows of a table of panes, without dropped ones.

    Attributes:
        call: the call, for messages.
        rows: the rows.
        ledger: their relational meaning.
        is_known: whether that comes from metadata; otherwise it is derived from the columns.
    """

    call: str
    rows: DataFrame
    ledger: Ledger
    is_known: bool

    @classmethod
    def read(cls, call: str, panes: DataFrame, keys: Sequence[str] | None) -> PaneTable:
        """Determine the roles of the columns.

        Args:
            call: the call, for messages.
            panes: the rows.
            keys: the columns that, with the window, identify a row; None: from the metadata.

        Raises:
            ColumnError: not panes, or panes of a version without ``pane.sequence``; or no such column.
            OptionError: ``keys`` are not names.
        """
        schema = panes.schema
        _check_panes(call, schema)
        known = Ledger.read(schema["pane"].metadata)
        before = schema.names[: schema.names.index("window")]
        ledger = known or Ledger(tuple(before), _slot(before), SlotSemantics.RETRACTING, windowed=True, merging=False)
        if keys is not None:
            slot = _checked_keys(call, keys, schema.names)
            ledger = attrs.evolve(ledger, slot=slot, keys=slot if known is None else ledger.keys)
        rows = plain_texts(panes, schema).where("pane.change is not null")
        return cls(call, rows, ledger, known is not None)

    @property
    def latest(self) -> PaneTable:
        """Without UPDATE_BEFORE rows: each row sets or deletes its slot (ColumnError: rows have no identity)."""
        _ = self.slot
        return attrs.evolve(self, rows=self.rows.where("pane.change <> 'UPDATE_BEFORE'"))

    @property
    def slot(self) -> list[Column]:
        """The columns that identify a row, by name; the window as two columns (ColumnError: rows have no identity)."""
        if self.ledger.slot is None:
            raise ColumnError(
                f"{self.call}: rows have no identity: joined rows may share key and window, and the keys of versions are unknown in a table without beamish's metadata; pass keys=['order_id'], the columns that identify a row"
            )
        return [*map(self._key, self.ledger.slot), *self.bounds]

    def _key(self, name: str) -> Column:
        """A column of the slot; -0.0 as 0.0, which are the same key in Spark's GROUP BY."""
        type_ = self.rows.schema[name].dataType
        if not isinstance(type_, t.FloatType | t.DoubleType):
            return column(name)
        return (column(name) + F.lit(0.0).cast(type_)).alias(name)

    @property
    def bounds(self) -> list[Column]:
        """The window as two columns; empty if it has no bounds."""
        if not self.ledger.windowed:
            return []
        return [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]

    def data(self, fields: Sequence[str], *, flat: bool = False) -> list[Column]:
        """The columns of a row: keys, window, values, and the requested fields of its pane."""
        names = [name for name in self.rows.columns if name not in ("pane", "timestamp", "dropped")]
        columns: list[Column] = []
        for name in names:
            if name != "window":
                columns.append(column(name))
            elif flat or not self.ledger.windowed:
                columns += self.bounds
            else:
                columns.append(column(name))
        columns += [F.col(f"pane.{name}").alias(f"pane_{name}") for name in fields if name != "timestamp"]
        if "timestamp" in fields or (self.ledger.slot is None and not self.ledger.windowed):
            columns.append(column("timestamp"))
        return columns

    def with_data(
        self, *added: Column, fields: Sequence[str], flat: bool = False, last: Sequence[Column] = ()
    ) -> DataFrame:
        """Combine columns (ColumnError: a name is repeated)."""
        out = self.rows.select(*added, *self.data(fields, flat=flat), *last)
        seen: dict[str, str] = {}
        for name in out.columns:
            if name.lower() in seen:
                raise ColumnError(
                    f"{self.call}: the changelog has a column {name!r} of its own; rename yours: "
                    f"panes.withColumnRenamed({name!r}, 'my_{name}')"
                )
            seen[name.lower()] = name
        return out


def _check_panes(call: str, schema: t.StructType) -> None:
    missing = [name for name in ("window", "pane", "timestamp") if name not in schema.names]
    if missing:
        raise ColumnError(
            f"{call}: there is no column {missing[0]!r}, so these are not panes; pass the output of pipeline.apply, or a table of it"
        )
    for name in ("change", "sequence"):
        check_field(call, schema, name)


def check_field(call: str, schema: t.StructType, name: str) -> None:
    """Check that the column ``pane`` has a field (else ColumnError)."""
    pane = schema["pane"].dataType
    if name not in (pane.names if isinstance(pane, t.StructType) else []):
        raise ColumnError(
            f"{call}: the column 'pane' has no field {name!r}: the panes were written by a version of beamish without it; write them again"
        )


def _slot(before: Sequence[str]) -> tuple[str, ...] | None:
    """The identity of rows if only their columns are known; the keys of versions are then unknown."""
    return None if {VALID_FROM, VALID_TO} <= set(before) else tuple(before)


def _checked_keys(call: str, keys: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        raise OptionError(f"{call}: keys={keys!r} must be a list of column names, such as keys=['order_id']")
    for key in keys:
        if key not in names:
            raise ColumnError(f"{call}: keys={keys!r}: there is no column {key!r}; the columns are {list(names)}")
    return tuple(keys)

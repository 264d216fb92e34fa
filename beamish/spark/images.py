"""A batch of panes as rows of a table: the last image of each key and window, flat."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.errors import ColumnError
from beamish.kernels.image_columns import DELETED, SEQUENCE
from beamish.kernels.quoting import quoted
from beamish.spark.rows.columns import column
from beamish.spark.rows.types import arrow_type

_BOUNDS = {"window_start": "start", "window_end": "end"}
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


@attrs.frozen
class Images:
    """Rows of a table, each the last image of its identity in some step.

    Attributes:
        df: identity, data, ``_sequence``, ``_deleted``.
        identity: the columns that tell rows apart.
        nested: columns that were structs, arrays or maps, and are JSON.
    """

    df: DataFrame
    identity: tuple[str, ...]
    nested: frozenset[str]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.df.columns

    def collect(self) -> pa.Table:
        """The rows, on the driver."""
        types = [(field.name, arrow_type(field.dataType)) for field in self.df.schema]
        return self.df.toArrow().cast(pa.schema(types))


def images(df: DataFrame, where: str, *, pane: Sequence[str], identity: Sequence[str], as_json: bool = True) -> Images:
    """The last images in panes: what UPDATE_BEFORE takes back is left out, and so are dropped rows.

    Args:
        df: panes.
        where: what asks, for messages.
        pane: fields of ``pane`` to keep.
        identity: the columns that tell rows apart; none: the key columns and the window's bounds.
        as_json: make structs, arrays and maps JSON, as text.

    Raises:
        ColumnError: they are no panes, or have not what is asked for.
    """
    schema = df.schema
    fields = _pane_fields(schema, where)
    names = [name for name in schema.names if name not in ("window", "pane", "timestamp", "dropped")]
    data: dict[str, Column] = {name: column(name) for name in names}
    bounds = {name: F.col(f"window.{bound}") for name, bound in _BOUNDS.items()}
    if identity:
        for name in identity:
            if name not in data:
                raise ColumnError(f"{where}: identity: there is no column {name!r}; there are {', '.join(data)}")
        chosen = {**data}
        own = tuple(identity)
    else:
        keys = names[: schema.names.index("window")]
        _check_free(where, names, bounds)
        chosen = {**{name: data[name] for name in keys}, **bounds, **{name: data[name] for name in names[len(keys) :]}}
        own = (*keys, *bounds)
    added = {f"pane_{field}": F.col(f"pane.{quoted(field)}") for field in pane}
    for field in pane:
        if field not in fields:
            raise ColumnError(
                f"{where}: pane={list(pane)!r}: there is no field {field!r}; there are {', '.join(fields)}"
            )
    added |= {SEQUENCE: F.col("pane.sequence"), DELETED: F.col("pane.change") == "DELETE"}
    _check_free(where, chosen, added)
    flat = df.where("pane.change IN ('INSERT', 'UPDATE_AFTER', 'DELETE')")
    flat = flat.select(*(made.alias(name) for name, made in {**chosen, **added}.items()))
    return _with_json(flat, own) if as_json else Images(flat, own, frozenset())


def _with_json(flat: DataFrame, identity: tuple[str, ...]) -> Images:
    nested = [field.name for field in flat.schema if isinstance(field.dataType, (t.StructType, t.ArrayType, t.MapType))]
    for name in nested:
        flat = flat.withColumn(name, F.to_json(column(name), _JSON))
    return Images(flat, identity, frozenset(nested))


def _pane_fields(schema: t.StructType, where: str) -> list[str]:
    for name in ("window", "pane"):
        if name not in schema.names:
            raise ColumnError(
                f"{where}: there is no column {name!r}, so these are no panes; give it what pipeline.apply gave, as it is"
            )
    fields = schema["pane"].dataType
    assert isinstance(fields, t.StructType)  # noqa: S101 - what a pipeline gave
    for name in ("change", "sequence"):
        if name not in fields.names:
            raise ColumnError(
                f"{where}: pane.{name} is not there, so what is newer cannot be told: the panes were written by an earlier beamish; "
                "write them anew by a query of this one"
            )
    return fields.names


def _check_free(where: str, taken: Sequence[str] | dict[str, Column], added: dict[str, Column]) -> None:
    lower = {name.lower(): name for name in taken}
    for name in added:
        if name in lower:
            raise ColumnError(
                f"{where}: column {lower[name]!r}: the table has a column {name!r} of the sink's; rename yours"
            )


def query_id(df: DataFrame) -> str:
    """The id of the query whose batch it is, as its checkpoint holds it; empty: Spark does not tell it."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return ""
    return df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""

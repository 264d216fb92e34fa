"""Source schemas, read from Spark or declared by the user.

In a query function of a declarative pipeline Spark allows no calls. There the user declares schema, number of shards, and whether
it is a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from beamish.errors import OptionError
from beamish.kernels.type_names import arrow_type
from beamish.spark.rows.types import spark_type


@attrs.frozen
class Given:
    """The rows of a source.

    Attributes:
        df: the rows.
        schema: their columns.
        streaming: whether they are a stream.
        case_matters: whether names are case-sensitive.
        told: whether all this was declared, so that no Spark call may be made.
    """

    df: DataFrame
    schema: t.StructType
    streaming: bool
    case_matters: bool
    told: bool = False

    @classmethod
    def asked(cls, df: DataFrame) -> Given:
        """Read from Spark."""
        case_matters = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
        return cls(df, df.schema, df.isStreaming, case_matters)

    def renamed(self, names: Mapping[str, str]) -> Given:
        """The same rows with renamed columns: the new name by the old one."""
        if not names:
            return self
        fields = [
            t.StructField(names.get(one.name, one.name), one.dataType, one.nullable, one.metadata)
            for one in self.schema
        ]
        return attrs.evolve(self, df=self.df.withColumnsRenamed(dict(names)), schema=t.StructType(fields))

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return self.schema.names

    def alike(self, name: str) -> list[str]:
        """The columns that Spark resolves this name to."""
        if self.case_matters:
            return [other for other in self.columns if other == name]
        return [other for other in self.columns if other.lower() == name.lower()]


@attrs.frozen
class Told:
    """Declared schemas, in place of Spark calls.

    Attributes:
        schemas: the columns of each source, by its name.
        streaming: whether they are streams.
    """

    schemas: Mapping[str | None, t.StructType]
    streaming: bool

    @classmethod
    def read(cls, schema: Any, shards: Any, streaming: Any) -> Told | None:
        """Read the declaration; None: nothing declared, so Spark is called.

        Raises:
            OptionError: it is incomplete, or a schema is invalid.
        """
        if schema is None:
            if streaming is not None:
                raise OptionError(
                    f"apply(streaming={streaming!r}): without schema=... it is read from Spark; leave it out"
                )
            return None
        if not isinstance(streaming, bool) or shards is None:
            raise OptionError(
                f"apply(schema=..., shards={shards!r}, streaming={streaming!r}): without Spark calls all three are required, such as apply(df, schema='ts timestamp, team string', shards=8, streaming=True)"
            )
        named = schema if isinstance(schema, Mapping) else {None: schema}
        return cls({name: _read(one) for name, one in named.items()}, streaming)

    def of(self, name: str | None, df: DataFrame) -> Given:
        """The declaration for a source.

        Raises:
            OptionError: it is missing.
        """
        if name not in self.schemas:
            raise OptionError(
                f"apply(schema=...): the schema of input {name!r} is missing; give each its own: schema={{{name!r}: 'ts timestamp, "
                "...', ...}"
            )
        return Given(df, self.schemas[name], self.streaming, case_matters=False, told=True)


def _read(schema: Any) -> t.StructType:
    if isinstance(schema, t.StructType):
        return schema
    if not isinstance(schema, str):
        raise OptionError(
            f"apply(schema={schema!r}): must be a text such as 'ts timestamp, team string', or a StructType"
        )
    read = spark_type(arrow_type("apply(schema)", f"struct<{schema}>"))
    assert isinstance(read, t.StructType)  # noqa: S101 - a struct's
    return read

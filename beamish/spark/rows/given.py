"""The rows of a source as they are given: what Spark says of them, or what the user does.

Inside a query function of a declarative pipeline Spark answers nothing about a DataFrame and takes no command. There the user
says schema, number of shards, and whether it is a stream.
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
        case_matters: whether names that differ in case only are different.
        told: whether all this was told, so that Spark must not be asked.
    """

    df: DataFrame
    schema: t.StructType
    streaming: bool
    case_matters: bool
    told: bool = False

    @classmethod
    def asked(cls, df: DataFrame) -> Given:
        """What Spark says of them."""
        case_matters = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
        return cls(df, df.schema, df.isStreaming, case_matters)

    def renamed(self, names: Mapping[str, str]) -> Given:
        """The same rows, some columns called otherwise: the new name by the old one."""
        if not names:
            return self
        fields = [
            t.StructField(names.get(one.name, one.name), one.dataType, one.nullable, one.metadata)
            for one in self.schema
        ]
        return attrs.evolve(self, df=self.df.withColumnsRenamed(dict(names)), schema=t.StructType(fields))

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return self.schema.names

    def alike(self, name: str) -> list[str]:
        """The columns that Spark takes for the one of this name."""
        if self.case_matters:
            return [other for other in self.columns if other == name]
        return [other for other in self.columns if other.lower() == name.lower()]


@attrs.frozen
class Told:
    """What the user says of the rows, in the place of Spark.

    Attributes:
        schemas: the columns of each source, by its name.
        streaming: whether they are streams.
    """

    schemas: Mapping[str | None, t.StructType]
    streaming: bool

    @classmethod
    def read(cls, schema: Any, shards: Any, streaming: Any) -> Told | None:
        """Read what was said; None: nothing, so Spark is asked.

        Raises:
            OptionError: only some of it was said, or a schema cannot be read.
        """
        if schema is None:
            if streaming is not None:
                raise OptionError(f"apply(streaming={streaming!r}): without schema=... Spark is asked; leave it out")
            return None
        if not isinstance(streaming, bool) or shards is None:
            raise OptionError(
                f"apply(schema=..., shards={shards!r}, streaming={streaming!r}): where Spark is not asked, all three must be said, "
                "such as apply(df, schema='ts timestamp, team string', shards=8, streaming=True)"
            )
        named = schema if isinstance(schema, Mapping) else {None: schema}
        return cls({name: _read(one) for name, one in named.items()}, streaming)

    def of(self, name: str | None, df: DataFrame) -> Given:
        """What was said of a source.

        Raises:
            OptionError: nothing was.
        """
        if name not in self.schemas:
            raise OptionError(
                f"apply(schema=...): nothing is said of the input {name!r}; give each its own: schema={{{name!r}: 'ts timestamp, "
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

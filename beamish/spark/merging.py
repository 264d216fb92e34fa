"""A batch of panes as rows of a table, the last version of each; and merged into a table of Spark's, by SQL in the batch's own session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import attrs
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.addresses import printable, printable_text, without_secrets
from beamish.contract.relation import SlotSemantics
from beamish.errors import PipelineError, SinkError
from beamish.kernels.column_names import quoted
from beamish.kernels.upserts import DELETED, SEQUENCE, Mark, Marked, MergeInto
from beamish.spark.changelog.formats import JSON, check_merging
from beamish.spark.changelog.pane_table import PaneTable
from beamish.spark.checkpoint.stored_query import entry_digest, last_entry
from beamish.spark.rows.columns import column
from beamish.spark.rows.schemas import arrow_type, ddl
from beamish.spark.runtime.session import connector_errors

_NESTED = (t.StructType, t.ArrayType, t.MapType)


@attrs.frozen
class Images:
    """Rows of a table, each the last version of its identity in the batch.

    Attributes:
        df: identity, data, ``_sequence``, ``_deleted``.
        identity: the columns that identify a row.
        nested: structs, arrays and maps converted to JSON.
    """

    df: DataFrame
    identity: tuple[str, ...]
    nested: frozenset[str]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.df.columns

    def collect(self) -> pa.Table:
        """Collect the rows on the driver."""
        types = [(field.name, arrow_type(field.dataType)) for field in self.df.schema]
        return self.df.toArrow().cast(pa.schema(types))


def images(
    df: DataFrame, where: str, fields: Sequence[str], keys: Sequence[str] | None, *, as_json: bool = True
) -> Images:
    """The last version of each row in panes, as in ``bm.changelog(panes, "upsert")``.

    Args:
        df: panes.
        where: the call, for messages.
        fields: fields of the pane to store.
        keys: the columns that, with the window, identify a row; None: from the panes.
        as_json: convert structs, arrays and maps to JSON text.

    Raises:
        ColumnError: not panes, a missing field, or rows without identity.
        PipelineError: they do not determine the current rows.
    """
    table = PaneTable.read(where, df, keys)
    check_merging(table)
    if table.ledger.follows is SlotSemantics.ADDING:
        raise PipelineError(
            f"{where}: the pipeline is discarding: its panes are increments, and the second one of a window would replace the first; use .accumulating() or .accumulating_and_retracting()"
        )
    if not table.slot:  # a global window without keys: bounds, though null, identify the row
        table = attrs.evolve(table, ledger=attrs.evolve(table.ledger, windowed=True))
    own = tuple(table.rows.select(*table.slot).columns)
    last = [F.col("pane.sequence").alias(SEQUENCE), (F.col("pane.change") == "DELETE").alias(DELETED)]
    flat = table.latest.with_data(fields=fields, flat=True, last=last)
    return _with_json(flat, own) if as_json else Images(flat, own, frozenset())


def _with_json(flat: DataFrame, identity: tuple[str, ...]) -> Images:
    nested = [field.name for field in flat.schema if isinstance(field.dataType, _NESTED)]
    for name in nested:
        flat = flat.withColumn(name, F.to_json(column(name), JSON))
    return Images(flat, identity, frozenset(nested))


def query_id(df: DataFrame) -> str:
    """The id of the query of a batch, as in its checkpoint; empty: Spark does not report it."""
    return _local(df, "sql.streaming.queryId")


def batch_entry(df: DataFrame, batch_id: int) -> str:
    """A digest of the batch's entry in the offset log; empty: Spark Connect, or not a batch of a query.

    A replayed batch has the same entry. One planned again, from a checkpoint restored to an earlier batch, has another.
    """
    query = query_id(df)
    if not query or _local(df, "streaming.sql.batchId") != str(batch_id):
        return ""
    # The session of a batch is a clone, whose ``streams`` lacks the query.
    spark: Any = df.sparkSession
    uuid = spark._jvm.java.util.UUID.fromString(query)  # noqa: SLF001
    running = spark._jsparkSession.sharedState().activeStreamingQueries().get(uuid)  # noqa: SLF001
    return "" if running is None else entry_digest(df.sparkSession, running.resolvedCheckpointRoot(), batch_id)


def _local(df: DataFrame, name: str) -> str:
    """A property that Spark sets while a batch runs; empty: not set, or unavailable (Spark Connect)."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return ""
    return df.sparkSession.sparkContext.getLocalProperty(name) or ""


_OWNER = "beamish.query"
"""The table property with the table's owner."""
_MARK = "beamish"
_WRITES_MARKS = ("spark.databricks.delta.commitInfo.userMetadata", f"spark.sql.iceberg.snapshot-property.{_MARK}")
"""Session settings whose value Delta and Iceberg store with each commit, so that the mark needs no commit of its own."""
_HISTORY = 100
"""How many recent commits are searched for a mark."""


class Merged(Protocol):
    """The options of the sink."""

    @property
    def table(self) -> str: ...
    @property
    def keep_deleted(self) -> bool: ...
    @property
    def create(self) -> str | None: ...
    @property
    def fields(self) -> Sequence[str]: ...
    @property
    def keys(self) -> Sequence[str] | None: ...


def merge_batch(sink: Merged, batch_df: DataFrame, batch_id: int) -> None:
    """Merge a batch into the table (see ``bm.sinks.merge``)."""
    taken = _taken(sink, batch_df)
    mark = Mark(query_id(batch_df), batch_id, batch_entry(batch_df, batch_id))
    target = _Target.read(batch_df.sparkSession, sink)
    target.check_takes(mark)
    target.prepare(taken, mark)
    target.merge(taken, mark, MergeInto.update)


def rebuild(sink: Merged, panes: DataFrame, checkpoint: str) -> None:
    """Rebuild the table from all panes of a query (see ``MergeSink.rebuild``)."""
    taken = _taken(sink, panes)
    mark = Mark(*last_entry(panes.sparkSession, checkpoint))
    target = _Target.read(panes.sparkSession, sink)
    target.prepare(taken, mark)
    target.merge(taken, mark, MergeInto.replace)


def _taken(sink: Merged, panes: DataFrame) -> Images:
    return images(panes, f"sinks.merge({printable(sink.table)})", sink.fields, sink.keys, as_json=False)


def net_of(taken: Images) -> DataFrame:
    """The row with the greatest sequence per identity."""
    newest = F.max_by(F.struct(*map(column, taken.names)), column(SEQUENCE)).alias("newest")
    return taken.df.groupBy(*map(column, taken.identity)).agg(newest).select("newest.*")


@attrs.frozen(eq=False)
class _Target:
    """The table.

    Attributes:
        spark: the session of the batch.
        sink: the options.
        schema: its columns; None: no such table. properties: its table properties.
    """

    spark: SparkSession
    sink: Merged
    schema: t.StructType | None
    properties: dict[str, str]

    @classmethod
    def read(cls, spark: SparkSession, sink: Merged) -> _Target:
        try:
            schema = spark.table(sink.table).schema
        except AnalysisException as error:
            if sink.create is None:
                raise SinkError(
                    f"table {printable_text(sink.table)}: it does not exist, and create is None; create it, or use create='delta' or 'iceberg' ({without_secrets(str(error).partition(chr(10))[0], sink.table)})"
                ) from None
            return cls(spark, sink, None, {})
        rows = spark.sql(f"SHOW TBLPROPERTIES {sink.table}").collect()
        return cls(spark, sink, schema, {row["key"]: row["value"] for row in rows})

    def check_takes(self, mark: Mark) -> None:
        """Check that a batch may follow the last one (SinkError: see ``Marked.check_takes``)."""
        last, exists = self._last(), self.schema is not None
        if last is None and exists and not mark.query:
            return  # Spark Connect: an earlier version stored no mark
        has_rows = exists and last is None and not self.spark.table(self.sink.table).isEmpty()
        by_path = "/" in self.sink.table  # such as delta.`/folder/hourly`, whose files DROP TABLE keeps
        shown = printable_text(self.sink.table)
        drop = f"{'rm -r, of the folder of' if by_path else 'DROP TABLE IF EXISTS'} {shown}"
        Marked(shown, last, exists, has_rows, drop).check_takes(mark)

    def _last(self) -> Mark | None:
        """The mark of the last batch; without one, as in an earlier version's table, the owner before its first batch."""
        history = None
        if any(name.startswith("delta.") for name in self.properties):
            history = self.spark.sql(f"DESCRIBE HISTORY {self.sink.table} LIMIT {_HISTORY}")
            history = history.select(F.col("version").alias("order"), F.col("userMetadata").alias("mark"))
        elif self.properties.get("format", "").startswith("iceberg"):
            history = self.spark.table(f"{self.sink.table}.snapshots").select(
                F.col("committed_at").alias("order"), F.col("summary")[_MARK].alias("mark")
            )
        if history is not None:
            marks = history.where(F.get_json_object("mark", f"$.{_MARK}").isNotNull())
            for row in marks.orderBy(F.desc("order")).limit(1).collect():
                return Mark(**json.loads(row["mark"])[_MARK])
        owner = self.properties.get(_OWNER)
        return None if owner is None else Mark(owner, -1)

    def prepare(self, taken: Images, mark: Mark) -> None:
        """Create the table if needed, check its columns, and record its owner (SinkError: a column is missing, or would alter values)."""
        columns = [name for name in taken.names if name != DELETED or self.sink.keep_deleted]
        wanted = taken.df.select(*map(column, columns)).schema
        if self.schema is None:
            types = ", ".join(f"{quoted(field.name)} {ddl(field.dataType)}" for field in wanted)
            with connector_errors(self.spark, f"sinks.merge({printable(self.sink.table)})"):
                self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.sink.table} ({types}) USING {self.sink.create}")
        check_fits(printable_text(self.sink.table), self.spark.table(self.sink.table).schema, wanted, taken.identity)
        if mark.query and self.properties.get(_OWNER) != mark.query:
            self.spark.sql(f"ALTER TABLE {self.sink.table} SET TBLPROPERTIES ('{_OWNER}' = '{mark.query}')")

    def merge(self, taken: Images, mark: Mark, statement: Callable[[MergeInto], str]) -> None:
        """Merge the net change into the table, in one commit with the mark."""
        net = net_of(taken).persist()  # a merge reads its source more than once, and would run the query's plan again
        view = f"_beamish_batch_{mark.batch}"
        net.createOrReplaceTempView(view)
        data = [name for name in taken.names if name != DELETED]
        into = MergeInto(self.sink.table, quoted(view), data, taken.identity, quoted, "<=>", self.sink.keep_deleted)
        try:
            with _marking(self.spark, mark):
                self.spark.sql(statement(into))
        finally:
            self.spark.catalog.dropTempView(view)
            net.unpersist()


@contextmanager
def _marking(spark: SparkSession, mark: Mark) -> Iterator[None]:
    """Store the mark with the commits in this block, unless the user stores a value of their own."""
    free = [name for name in _WRITES_MARKS if spark.conf.get(name, None) is None]
    for name in free:
        spark.conf.set(name, json.dumps({_MARK: attrs.asdict(mark)}))
    try:
        yield
    finally:
        for name in free:
            spark.conf.unset(name)


def check_fits(table: str, there: t.StructType, wanted: t.StructType, identity: Sequence[str]) -> None:
    """Check that a table stores the values of columns unchanged, and distinguishes identities (else SinkError)."""
    found = {field.name.lower(): field for field in there}
    for field in wanted:
        own = found.get(field.name.lower())
        if own is None:
            raise SinkError(
                f"table {table}: it has no column {field.name!r} (it has {', '.join(there.names)}); add it: ALTER TABLE {table} ADD "
                f"COLUMN {quoted(field.name)} {ddl(field.dataType)}, which is null in rows that do not change again unless "
                "sink.rebuild(panes, checkpoint=...) fills the table from all panes; or choose another table"
            )
        declared = own.metadata.get(_CHAR_TYPE, own.dataType.simpleString())
        if not _holds(own.dataType, field.dataType) or _CHAR_TYPE in own.metadata:
            raise SinkError(
                f"table {table}: column {field.name!r} is {declared}, the panes need {field.dataType.simpleString()}; change its type, "
                "or choose another table"
            )
        if field.name in identity and _has_collation(own.dataType):
            raise SinkError(
                f"table {table}: key column {field.name!r} is {declared}, in whose collation different texts are equal; declare it "
                "STRING, in a new table"
            )
    if DELETED in found and DELETED not in wanted.names:
        raise SinkError(
            f"table {table}: it has a column {DELETED!r}, so it has deleted rows, which this sink would treat as live; use keep_deleted=True, or choose another table"
        )


_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata with which Spark marks a column as CHAR, which is padded, or VARCHAR, whose trailing blanks are trimmed."""
_DIGITS: dict[type[t.DataType], int] = {t.ByteType: 3, t.ShortType: 5, t.IntegerType: 10, t.LongType: 19}


def _holds(declared: t.DataType, wanted: t.DataType) -> bool:
    """Whether a column holds all values of a type; nested types are checked by Spark."""
    if isinstance(declared, t.DecimalType):
        digits, scale = (_DIGITS.get(type(wanted), 99), 0)
        if isinstance(wanted, t.DecimalType):
            digits, scale = wanted.precision, wanted.scale
        return declared.scale >= scale and declared.precision - declared.scale >= digits - scale
    if type(wanted) in _DIGITS and type(declared) in _DIGITS:
        return _DIGITS[type(declared)] >= _DIGITS[type(wanted)]
    wider = isinstance(declared, t.DoubleType) and isinstance(wanted, t.FloatType)
    return wider or type(declared) is type(wanted)


def _has_collation(type_: t.DataType) -> bool:
    return isinstance(type_, t.StringType) and getattr(type_, "collation", "UTF8_BINARY") != "UTF8_BINARY"

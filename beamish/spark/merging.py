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
from beamish.kernels.upserts import DELETED, REBUILT, SEQUENCE, Mark, Marked, MergeInto
from beamish.spark.changelog.formats import check_merging
from beamish.spark.changelog.pane_table import PaneTable
from beamish.spark.checkpoint.hadoop_path import HadoopPath
from beamish.spark.checkpoint.stored_query import digest_of, last_before_migration, last_entry
from beamish.spark.rows.columns import column
from beamish.spark.rows.json_text import to_json
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
    nested = {field.name: field.dataType for field in flat.schema if isinstance(field.dataType, _NESTED)}
    for name, type_ in nested.items():
        flat = flat.withColumn(name, to_json(column(name), type_))
    return Images(flat, identity, frozenset(nested))


def mark_of(df: DataFrame, batch_id: int) -> Mark:
    """The mark of a batch, before its rows are known; under Spark Connect, or outside of a query, only its number.

    A replayed batch has the same entry in the offset log. One planned again, from a checkpoint restored to an earlier batch, has another.
    """
    query = _local(df, "sql.streaming.queryId")
    if not query or _local(df, "streaming.sql.batchId") != str(batch_id):
        return Mark(query, batch_id)
    # The session of a batch is a clone, whose ``streams`` lacks the query.
    spark: Any = df.sparkSession
    uuid = spark._jvm.java.util.UUID.fromString(query)  # noqa: SLF001
    running = spark._jsparkSession.sharedState().activeStreamingQueries().get(uuid)  # noqa: SLF001
    if running is None:
        return Mark(query, batch_id)
    offsets = HadoopPath.of(spark, running.resolvedCheckpointRoot()) / "offsets"
    entry = digest_of((offsets / str(batch_id)).read_text())
    before = offsets / str(batch_id - 1)
    return Mark(query, batch_id, entry, previous=last_before_migration(before.read_text()) if before.exists() else None)


def _local(df: DataFrame, name: str) -> str:
    """A property that Spark sets while a batch runs; empty: not set, or unavailable (Spark Connect)."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return ""
    return df.sparkSession.sparkContext.getLocalProperty(name) or ""


_OWNER = "beamish.query"
"""The table property with the table's owner."""
_MARK = "beamish"
_ACCEPTED = "beamish.accepted"
"""The table property with the version or snapshot after which the user accepts the table, though rows were removed."""
_BATCH = "beamish.batch"
"""The table property with the last batch that changed nothing."""
_DELTA, _ICEBERG = (
    "spark.databricks.delta.commitInfo.userMetadata",
    f"spark.sql.iceberg.snapshot-property.{_MARK}",
)
"""Session settings whose value Delta and Iceberg store with each commit, so that the mark needs no commit of its own."""
_HISTORY = 100
"""How many recent commits are read first; all of them if none has a mark, as after many compactions between two batches."""


def written(mark: Mark) -> str:
    """A mark as it is stored with a commit."""
    return json.dumps({_MARK: {name: getattr(mark, name) for name in _STORED}})


_STORED = ("query", "batch", "entry", "rows")


def read_mark(stored: str | None) -> Mark | None:
    """The mark that is stored with a commit; None: without a mark."""
    try:
        found = json.loads(stored or "null")
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get(_MARK), dict):
        return None
    return Mark(**{name: value for name, value in found[_MARK].items() if name in _STORED})


@attrs.frozen
class Commit:
    """A commit that led to the current rows of a table.

    Attributes:
        place: its version, or its snapshot's id.
        mark: the batch that it is of; None: another writer's.
        what: how it removed rows, such as "DELETE"; empty: it did not.
    """

    place: str
    mark: Mark | None
    what: str = ""


@attrs.frozen
class History:
    """The commits that led to the current rows of a table, without those that were undone.

    Attributes:
        commits: from the newest on.
        has_marks: whether any commit, also one that was undone, has a mark.
        is_cut: whether there may be older commits.
    """

    commits: Sequence[Commit]
    has_marks: bool
    is_cut: bool = False

    def since_mark(self) -> History:
        """From the newest mark on."""
        marked = next((place for place, one in enumerate(self.commits) if one.mark), len(self.commits) - 1)
        return attrs.evolve(self, commits=self.commits[: marked + 1])

    @property
    def last(self) -> Mark | None:
        """The newest mark, after ``since_mark``."""
        return self.commits[-1].mark if self.commits else None

    def lost(self, accepted: str | None) -> Commit | None:
        """The newest commit of another writer that removed rows, after one that the user accepted."""
        for one in self.commits:
            if one.place == accepted:
                return None
            if one.what and one.mark is None:
                return one
        return None

    def is_last(self, mark: Mark) -> bool:
        """Whether the newest commit has a mark."""
        found = self.commits[0].mark if self.commits else None
        return found is not None and written(found) == written(mark)


def delta_history(spark: SparkSession, table: str, limit: int | None) -> History:
    """The history of a Delta table, of its newest commits or (None) all: RESTORE continues that of an earlier version."""
    found = spark.sql(f"DESCRIBE HISTORY {table}{f' LIMIT {limit}' if limit else ''}").select(
        "version",
        "timestamp",
        "operation",
        "operationParameters",
        "operationMetrics",
        "userMetadata",
        F.col("operationParameters")["timestamp"].try_cast("timestamp").alias("restored"),
    )
    rows = sorted(found.collect(), key=lambda row: row["version"], reverse=True)
    commits, until = [], None
    for row in rows:
        if until is not None and row["version"] > until:
            continue
        if row["operation"] == "RESTORE":
            until = _restored(row, rows)
            continue
        commits.append(Commit(str(row["version"]), read_mark(row["userMetadata"]), _removing(row)))
        if "REPLACE TABLE" in row["operation"]:
            break
    return History(commits, any(read_mark(row["userMetadata"]) for row in rows), is_cut=len(rows) == limit)


def _restored(row: Any, rows: Sequence[Any]) -> int:
    """The version that a RESTORE continues."""
    version = row["operationParameters"].get("version")
    if version is not None:
        return int(version)
    at = row["restored"]
    return max((one["version"] for one in rows if at and one["timestamp"] <= at), default=-1)


def _removing(row: Any) -> str:
    operation, metrics = row["operation"], row["operationMetrics"] or {}
    removed = {
        "DELETE": metrics.get("numDeletedRows") != "0",
        "TRUNCATE": True,
        "WRITE": row["operationParameters"].get("mode") == "Overwrite",
        "MERGE": metrics.get("numTargetRowsDeleted", "0") != "0",
    }
    return operation if removed.get(operation, "REPLACE TABLE" in operation) else ""


def iceberg_history(spark: SparkSession, table: str, limit: int | None) -> History:
    """The history of an Iceberg table, of its newest snapshots or (None) all: the ancestors of the current snapshot."""
    snapshots = spark.table(f"{table}.snapshots")
    current = spark.table(f"{table}.history").where("is_current_ancestor").select("snapshot_id").distinct()
    newest = snapshots.join(current, "snapshot_id").orderBy(F.desc("committed_at"))
    rows = (newest.limit(limit) if limit else newest).collect()
    commits = []
    for row in rows:
        summary = row["summary"]
        names = ("deleted-records", "added-position-deletes", "added-equality-deletes")
        removed = sum(int(summary.get(name, 0)) for name in names) > int(summary.get("added-records", 0))
        replaced = summary.get("replace-partitions") == "true"
        removes = row["operation"] != "replace" and (removed or replaced)
        commits.append(
            Commit(str(row["snapshot_id"]), read_mark(summary.get(_MARK)), row["operation"] if removes else "")
        )
    marks = any(one.mark for one in commits) or not snapshots.where(F.col("summary")[_MARK].isNotNull()).isEmpty()
    return History(commits, marks, is_cut=len(rows) == limit)


def _to_a_mark(history: Callable[[SparkSession, str, int | None], History], spark: SparkSession, table: str) -> History:
    """The history of a table, as far back as its newest mark."""
    newest = history(spark, table, _HISTORY)
    return history(spark, table, None) if newest.is_cut and not any(one.mark for one in newest.commits) else newest


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
    target = _Target.read(batch_df.sparkSession, sink)
    with _net(taken) as net:
        mark = attrs.evolve(mark_of(batch_df, batch_id), rows=digest(net, taken.identity))
        before = target.marked(mark)
        before.check_takes(mark)
        target.prepare(taken, mark)
        target.merge(net, taken, mark, MergeInto.repeat if before.is_replay(mark) else MergeInto.update)


def rebuild(sink: Merged, panes: DataFrame, checkpoint: str) -> None:
    """Rebuild the table from all panes of a query (see ``MergeSink.rebuild``)."""
    taken = _taken(sink, panes)
    mark = Mark(*last_entry(panes.sparkSession, checkpoint), REBUILT)
    target = _Target.read(panes.sparkSession, sink)
    target.prepare(taken, mark)
    with _net(taken) as net:
        target.merge(net, taken, mark, MergeInto.replace)


@contextmanager
def _net(taken: Images) -> Iterator[DataFrame]:
    net = net_of(taken).persist()  # it is read more than once, and would run the query's plan again
    try:
        yield net
    finally:
        net.unpersist()


def digest(net: DataFrame, identity: Sequence[str]) -> str:
    """An order-independent digest of the changed identities, and whether each is deleted, as ``Batch.digest``."""
    parts = [part for name in identity for part in (column(name), column(name).isNull())]
    hashed = F.xxhash64(*parts, column(DELETED))
    ((either, rows),) = net.agg(F.bit_xor(hashed), F.count("*")).collect()
    return f"rows {(either or 0) & (2**64 - 1):016x} {rows}"


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
        schema: its columns; None: no such table.
        properties: its table properties.
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

    def marked(self, mark: Mark) -> Marked:
        """The table and the mark of its last batch, for another one."""
        exists, found = self.schema is not None, self._history().since_mark()
        last, lost = found.last, found.last and found.lost(self.properties.get(_ACCEPTED))
        if last is None and not found.has_marks:  # a table of an earlier version
            owner = self.properties.get(_OWNER, None if mark.query or not exists else "")
            last = None if owner is None else Mark(owner, -1)
        has_rows = exists and last is None and not self.spark.table(self.sink.table).isEmpty()
        by_path = "/" in self.sink.table  # such as delta.`/folder/hourly`, whose files DROP TABLE keeps
        shown = printable_text(self.sink.table)
        drop = f"{'delete the folder of' if by_path else 'run DROP TABLE IF EXISTS'} {shown}"
        return Marked(
            shown,
            last,
            exists,
            has_rows,
            drop,
            lost=f"{lost.what} ({lost.place}) removed rows from it" if lost else "",
            accept=f"ALTER TABLE {shown} SET TBLPROPERTIES ('{_ACCEPTED}' = '{lost.place}')" if lost else "",
        )

    def _history(self) -> History:
        """The commits with their marks; empty where the user stores a value of their own instead."""
        if self._is_delta and self.spark.conf.get(_DELTA, None) is None:
            return _to_a_mark(delta_history, self.spark, self.sink.table)
        if self.properties.get("format", "").startswith("iceberg") and self.spark.conf.get(_ICEBERG, None) is None:
            return _to_a_mark(iceberg_history, self.spark, self.sink.table)
        return History([], has_marks=False)

    @property
    def _is_delta(self) -> bool:
        return any(name.startswith("delta.") for name in self.properties)

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

    def merge(self, net: DataFrame, taken: Images, mark: Mark, statement: Callable[[MergeInto], str]) -> None:
        """Merge the net change into the table, in one commit with the mark."""
        view = f"_beamish_batch_{mark.batch}"
        net.createOrReplaceTempView(view)
        data = [name for name in taken.names if name != DELETED]
        into = MergeInto(self.sink.table, quoted(view), data, taken.identity, quoted, "<=>", self.sink.keep_deleted)
        try:
            with _marking(self.spark, mark) as writes:
                self.spark.sql(statement(into))
                if (
                    _DELTA in writes
                    and self._is_delta
                    and not delta_history(self.spark, self.sink.table, 1).is_last(mark)
                ):
                    # A merge that changes nothing makes none, but the next batch must find the mark.
                    self.spark.sql(f"ALTER TABLE {self.sink.table} SET TBLPROPERTIES ('{_BATCH}' = '{mark.batch}')")
        finally:
            self.spark.catalog.dropTempView(view)


@contextmanager
def _marking(spark: SparkSession, mark: Mark) -> Iterator[Sequence[str]]:
    """Store the mark with the commits in this block, unless the user stores a value of their own; yields the settings that do so."""
    free = [name for name in (_DELTA, _ICEBERG) if spark.conf.get(name, None) is None]
    for name in free:
        spark.conf.set(name, written(mark))
    try:
        yield free
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

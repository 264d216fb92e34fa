"""Panes in other formats: a function per format (docs/rules/changelogs.md#changelogs).

Each returns a lazy DataFrame, by column expressions only, except Debezium's, which has both images in one row.

That is one row per change, with the row before and after it. A step emits an UPDATE_BEFORE right before its UPDATE_AFTER. In a stream they are
still adjacent in a task, so they are paired without a shuffle. In a stored table they may be anywhere: there the row before is that of the
key with the next smaller ``sequence``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.relation import FIELDS, SlotSemantics
from beamish.errors import OptionError, PipelineError
from beamish.kernels.column_names import PREFIX
from beamish.kernels.upserts import DELETED, SEQUENCE
from beamish.spark.changelog.pane_table import PaneTable, check_field
from beamish.spark.rows.columns import column
from beamish.spark.rows.json_text import to_json
from beamish.spark.runtime.workers import AcknowledgedFunction

_KEY = PREFIX + "key"


def with_images(table: PaneTable, fields: Sequence[str]) -> DataFrame:
    """Rows of ``change``, ``before`` and ``after``, without UPDATE_BEFORE rows, which are in the rows that follow them."""
    rows = table.rows.select(
        F.col("pane.change").alias("change"),
        F.struct(*table.data(fields)).alias("data"),
        F.col("pane.sequence").alias("sequence"),
        F.struct(F.lit(0), *map(column, table.ledger.keys)).alias(_KEY),
    )
    if table.rows.isStreaming:
        data = rows.schema["data"].dataType
        out = t.StructType([t.StructField("change", t.StringType()), *(t.StructField(name, data) for name in _IMAGES)])
        return rows.select("change", "data").mapInArrow(AcknowledgedFunction(neighbours(table.call)), out)
    ordered = Window.partitionBy(_KEY).orderBy("sequence")
    earlier = F.lag("change").over(ordered), F.lag("data").over(ordered)
    deletes, updates = F.col("change") == "DELETE", F.col("change") == "UPDATE_AFTER"
    before = F.when(deletes, F.col("data")).when(updates & (earlier[0] == "UPDATE_BEFORE"), earlier[1])
    if table.ledger.follows is SlotSemantics.RETRACTING:
        missing = F.raise_error(_NOT_FOUND.format(call=table.call)).cast(rows.schema["data"].dataType)
        before = before.when(updates, missing)
    before = before.alias("before")
    after = F.when(~deletes, F.col("data")).alias("after")
    return rows.select("change", before, after).where("change <> 'UPDATE_BEFORE'")


_IMAGES = ("before", "after")
_NOT_FOUND = "{call}: an UPDATE_AFTER without an UPDATE_BEFORE right before it in its key: rows are missing from the table; or its keys are unknown, since it does not keep column metadata: pass keys=[...], its key columns"


def neighbours(call: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: rows of ``change`` and ``data`` to rows of ``change``, ``before`` and ``after``."""

    def join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = None
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            rows = rows if held is None else pa.concat_tables([held, rows])
            if not rows.num_rows:
                continue
            last = rows["change"][-1].as_py()
            held = rows.slice(rows.num_rows - 1) if last == "UPDATE_BEFORE" else None
            rows = rows if held is None else rows.slice(0, rows.num_rows - 1)
            yield from _joined(call, rows.combine_chunks()).to_batches()
        if held is not None:
            raise _parted(call)

    return join


def _joined(call: str, rows: pa.Table) -> pa.Table:
    """Rows up to the last one that is not an UPDATE_BEFORE."""
    is_before, is_update, deletes = (
        np.asarray(pa.compute.equal(rows["change"], name)) for name in ("UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
    )
    if (is_before[:-1] & ~is_update[1:]).any():
        raise _parted(call)
    at = np.flatnonzero(~is_before)
    follows = np.append(False, is_before[:-1])[at]
    of_before = pa.array(np.where(deletes[at], at, at - 1), mask=~(deletes[at] | follows))
    of_after = pa.array(at, mask=deletes[at])
    data = rows["data"].combine_chunks()
    return pa.table(
        [rows["change"].take(pa.array(at)), data.take(of_before), data.take(of_after)], ["change", *_IMAGES]
    )


def _parted(call: str) -> PipelineError:
    return PipelineError(
        f"{call}: an UPDATE_BEFORE without an UPDATE_AFTER right after it: the rows of this stream are not in the pipeline's order. Call it right after the pipeline; for a stored table or shuffled rows call it in foreachBatch, where rows are matched by pane.sequence"
    )


_CHANGE = "pane.change"
_SPARK = {
    "INSERT": "insert",
    "UPDATE_BEFORE": "update_preimage",
    "UPDATE_AFTER": "update_postimage",
    "DELETE": "delete",
}
_SHORT = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}
_DEBEZIUM = {"INSERT": "c", "UPDATE_AFTER": "u", "DELETE": "d"}


@attrs.frozen
class Changelog:
    """The options of a changelog.

    Attributes:
        table: the panes.
        codes: of Flink's row kinds: long or short.
        fields: additional fields of the pane.
        key_format, value_format: serialization of a Kafka record's structs.
    """

    table: PaneTable
    codes: str
    fields: Sequence[str]
    key_format: Any
    value_format: Any

    @property
    def change(self) -> Column:
        """The change of a row."""
        return F.col(_CHANGE)


def changelog(  # noqa: PLR0917 - as bm.changelog, whose arguments have names
    panes: DataFrame,
    format: str,  # noqa: A002 - as Spark calls it
    codes: str,
    fields: Sequence[str],
    keys: Sequence[str] | None,
    key_format: Any,
    value_format: Any,
) -> DataFrame:
    """Panes as a changelog; see ``bm.changelog``.

    Raises:
        OptionError, ColumnError, PipelineError: invalid options or unsuitable panes.
    """
    call = f"changelog(panes, format={format!r})"
    _check_options(call, format, codes, fields, key_format, value_format)
    table = PaneTable.read(call, panes, keys)
    _check_follows(table, format)
    return _FORMATS[format](Changelog(table, codes, fields, key_format, value_format))


def _spark(asked: Changelog) -> DataFrame:
    return asked.table.with_data(_named(asked.change, _SPARK).alias("_change_type"), fields=asked.fields)


def _flink(asked: Changelog) -> DataFrame:
    op = _named(asked.change, _SHORT) if asked.codes == "short" else asked.change
    return asked.table.with_data(op.alias("op"), fields=asked.fields)


def _diff(asked: Changelog) -> DataFrame:
    sign = F.when(F.col("pane.kind") == "PANE", 1).otherwise(-1)
    return asked.table.with_data(fields=asked.fields, last=[sign.alias("_diff")])


def _debezium(asked: Changelog) -> DataFrame:
    op = _named(F.col("change"), _DEBEZIUM).alias("op")
    now = F.unix_millis(F.current_timestamp()).alias("ts_ms")
    return with_images(asked.table, asked.fields).select(op, "before", "after", now)


def _upsert(asked: Changelog) -> DataFrame:
    table = asked.table.latest
    last = [F.col("pane.sequence").alias(SEQUENCE), (asked.change == "DELETE").alias(DELETED)]
    return table.with_data(fields=asked.fields, flat=True, last=last)


def _kafka(asked: Changelog) -> DataFrame:
    _upsert(asked)  # whose columns are in the records
    table = asked.table.latest
    data = [*table.data(asked.fields, flat=True), F.col("pane.sequence").alias(SEQUENCE)]
    value = _written(table.rows, F.struct(*data), asked.value_format)
    key = _written(table.rows, F.struct(*table.slot), asked.key_format).alias("key")
    return table.rows.select(key, F.when(asked.change != "DELETE", value).alias("value"))


_FORMATS: dict[str, Callable[[Changelog], DataFrame]] = {
    "spark": _spark,
    "delta-cdf": _spark,
    "flink": _flink,
    "debezium": _debezium,
    "upsert": _upsert,
    "kafka": _kafka,
    "diff": _diff,
}


def _named(change: Column, names: dict[str, str]) -> Column:
    """The change of a row, in the format's codes."""
    return F.create_map(*(F.lit(word) for pair in names.items() for word in pair))[change]


def _written(rows: DataFrame, struct: Column, format_: Any) -> Column:
    if format_ != "json":
        return format_(struct)  # type: ignore[no-any-return] # the user's
    return to_json(struct, rows.select(struct.alias("struct")).schema["struct"].dataType)


def _check_options(  # noqa: PLR0917
    call: str, format_: str, codes: str, fields: Sequence[str], key_format: Any, value_format: Any
) -> None:
    if format_ not in _FORMATS:
        raise OptionError(f"{call}: must be one of {', '.join(map(repr, _FORMATS))}")
    if codes not in ("long", "short"):
        raise OptionError(f"{call}: codes={codes!r} must be 'long' (INSERT) or 'short' (+I)")
    if codes != "long" and format_ != "flink":
        raise OptionError(f"{call}: codes={codes!r} is for format='flink'; leave it out")
    for name, value in (("key_format", key_format), ("value_format", value_format)):
        if value != "json" and not callable(value):
            raise OptionError(
                f"{call}: {name}={value!r} must be 'json', or a function of a struct column, such as "
                "lambda struct: to_avro(struct, schema)"
            )
        if value != "json" and format_ != "kafka":
            raise OptionError(f"{call}: {name} is for format='kafka'; leave it out")
    if isinstance(fields, str) or any(name not in FIELDS for name in fields):
        raise OptionError(f"{call}: fields={fields!r} must be a list, of {', '.join(map(repr, FIELDS))}")


def _check_follows(table: PaneTable, format_: str) -> None:
    """Check that the format can represent the panes (else PipelineError)."""
    ledger, call = table.ledger, table.call
    check_merging(table)
    if ledger.follows is SlotSemantics.ADDING and format_ in ("upsert", "kafka"):
        raise PipelineError(
            f"{call} of a pipeline that is discarding: its panes are increments, and the second one of a window would replace the first; use .accumulating() or .accumulating_and_retracting(), or format='diff', whose rows add up"
        )
    if ledger.follows is SlotSemantics.REPLACING and format_ == "diff":
        raise PipelineError(
            f"{call} of a pipeline that is accumulating: a replaced pane is not retracted, so sums would count it twice; use .accumulating_and_retracting()"
        )
    if ledger.follows is SlotSemantics.SETTING and format_ in ("diff", "debezium"):
        raise PipelineError(
            f"{call} of changes(): the replaced row is unknown; use format='upsert' or format='kafka', or 'flink', where "
            "an UPDATE_AFTER need not have an UPDATE_BEFORE"
        )


def check_merging(table: PaneTable) -> None:
    """Check that deleted rows are retracted (PipelineError: windows merge, and their panes are not retracted)."""
    if table.ledger.follows is SlotSemantics.REPLACING and table.ledger.merging:
        raise PipelineError(
            f"{table.call} of a pipeline that is accumulating, over windows that merge: the panes of merged-away sessions would "
            "stay in the table, because nothing retracts them; use .accumulating_and_retracting()"
        )


_ROW, _NET, _LAST = PREFIX + "row", PREFIX + "net", PREFIX + "last"


def live(panes: DataFrame, keys: Sequence[str] | None, as_of_us: int | None) -> DataFrame:
    """The live panes of a batch DataFrame, at the end or as of a watermark, microseconds; see ``bm.live``.

    Raises:
        OptionError, ColumnError, PipelineError: unsuitable panes or invalid keys.
    """
    call = "live(panes)"
    table = PaneTable.read(call, panes, keys)
    if panes.isStreaming:
        raise PipelineError(
            f"{call} of a stream: live panes are defined over all rows so far; write them to a table and call it on that, or maintain a table by changelog(panes, format='upsert')"
        )
    check_merging(table)
    rows = table.rows.drop("dropped")
    if as_of_us is not None:
        check_field(call, rows.schema, "watermark")
        by = F.col("pane.watermark")
        rows = rows.where(by.isNull() | (by <= F.timestamp_micros(F.lit(as_of_us))))
    table = PaneTable(call, rows, table.ledger, table.is_known)
    found = _found(table, checked=not table.is_known and keys is None)
    return (
        found.withMetadata("pane", attrs.evolve(table.ledger, follows=SlotSemantics.ONCE).metadata)
        if table.is_known
        else found
    )


def _found(table: PaneTable, *, checked: bool) -> DataFrame:
    ledger = table.ledger
    if ledger.follows is SlotSemantics.ADDING:
        return table.rows.where("pane.kind = 'PANE'")
    if ledger.slot is not None:
        return _latest(table, checked=checked)
    if ledger.follows is SlotSemantics.REPLACING:
        return _last_of_bags(table)
    return _left_over(table)


def _latest(table: PaneTable, *, checked: bool) -> DataFrame:
    """The row with the greatest sequence of each slot, if it is a pane.

    ``checked``: the rows have no metadata, so uniqueness per slot must be verified.
    """
    columns = table.rows.columns
    row = F.max_by(F.struct(*map(column, columns)), F.col("pane.sequence")).alias(_ROW)
    by = F.when(F.col("pane.change") == "INSERT", 1).when(F.col("pane.change") == "DELETE", -1)
    found = table.rows.groupBy(*table.slot).agg(row, F.sum(by).alias(_NET))
    is_live = F.col(f"{_ROW}.pane.kind") == "PANE"
    if checked:
        error = F.raise_error(
            f"{table.call}: a key and window has several live panes, as from a discarding pipeline, a join or an as-of join; which is unknown, since the table does not keep column metadata: pass keys=[...], the columns that identify a row"
        )
        is_live = F.when(F.col(_NET) > 1, error.cast("boolean")).otherwise(is_live)
    return found.where(is_live).select(f"{_ROW}.*")


def _left_over(table: PaneTable) -> DataFrame:
    """Live rows of a bag, each as often as it was emitted and not retracted, with its latest numbers."""
    data = [name for name in table.rows.columns if name not in ("pane", "dropped")]
    sign = F.when(F.col("pane.kind") == "PANE", 1).otherwise(-1)
    # A retraction repeats the numbers of its pane, except its kind and watermark.
    numbers = [f"pane.{name}" for name in ("timing", "index", "on_time_index", "is_first", "is_last")]
    equal = [*map(column, data), *(F.col(name).alias(PREFIX + name.replace(".", "_")) for name in numbers)]
    pane = F.max_by(F.col("pane"), F.when(F.col("pane.kind") == "PANE", F.col("pane.sequence"))).alias("pane")
    found = table.rows.groupBy(*equal).agg(pane, F.sum(sign).alias(_NET)).where(F.col(_NET) > 0)
    names = [column(name) for name in table.rows.columns]
    return found.withColumn(_NET, F.explode(F.sequence(F.lit(1), F.col(_NET)))).select(*names)


def _last_of_bags(table: PaneTable) -> DataFrame:
    """The rows of the last pane of each key and window."""
    window = Window.partitionBy(*map(column, table.ledger.keys), *table.bounds)
    last = F.max("pane.index").over(window)
    return table.rows.withColumn(_LAST, last).where(F.col(_LAST) == F.col("pane.index")).drop(_LAST)

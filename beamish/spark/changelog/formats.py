"""Panes in other formats: a function per format (docs/rules/changelogs.md#changelogs).

Each returns a lazy DataFrame, by column expressions only, except Debezium's, which has both images in one row (before_and_after.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.contract.pane_identity import FIELDS
from beamish.contract.relation import Follows
from beamish.errors import OptionError, PipelineError
from beamish.kernels.image_columns import DELETED, SEQUENCE
from beamish.spark.changelog.before_and_after import with_images
from beamish.spark.changelog.pane_table import PaneTable

_CHANGE = "pane.change"
_SPARK = {
    "INSERT": "insert",
    "UPDATE_BEFORE": "update_preimage",
    "UPDATE_AFTER": "update_postimage",
    "DELETE": "delete",
}
_SHORT = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}
_DEBEZIUM = {"INSERT": "c", "UPDATE_AFTER": "u", "DELETE": "d"}
JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


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
    value = _written(F.struct(*data), asked.value_format)
    key = _written(F.struct(*table.slot), asked.key_format).alias("key")
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


def _written(struct: Column, format_: Any) -> Column:
    return F.to_json(struct, JSON) if format_ == "json" else format_(struct)


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
    """Check that the format can represent the panes.

    Raises:
        PipelineError: it cannot.
    """
    ledger, call = table.ledger, table.call
    check_merging(table)
    if ledger.follows is Follows.ADDING and format_ in ("upsert", "kafka"):
        raise PipelineError(
            f"{call} of a pipeline that is discarding: its panes are increments, and the second one of a window would replace the first; use .accumulating() or .accumulating_and_retracting(), or format='diff', whose rows add up"
        )
    if ledger.follows is Follows.REPLACING and format_ == "diff":
        raise PipelineError(
            f"{call} of a pipeline that is accumulating: a replaced pane is not retracted, so sums would count it twice; use .accumulating_and_retracting()"
        )
    if ledger.follows is Follows.SETTING and format_ in ("diff", "debezium"):
        raise PipelineError(
            f"{call} of changes(): the replaced row is unknown; use format='upsert' or format='kafka', or 'flink', where "
            "an UPDATE_AFTER need not have an UPDATE_BEFORE"
        )


def check_merging(table: PaneTable) -> None:
    """Check that deleted rows are retracted.

    Raises:
        PipelineError: windows merge, and their panes are not retracted.
    """
    if table.ledger.follows is Follows.REPLACING and table.ledger.merging:
        raise PipelineError(
            f"{table.call} of a pipeline that is accumulating, over windows that merge: the panes of merged-away sessions would "
            "stay in the table, because nothing retracts them; use .accumulating_and_retracting()"
        )

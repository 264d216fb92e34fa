"""Input forms in columns: a DataFrame's rows as rows of data, each with its sign (``forms/form.py``)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.pane_identity import Ledger
from beamish.contract.relation import Follows
from beamish.errors import ColumnError, PipelineError
from beamish.forms import FromChangelog, FromPanes, InputForm
from beamish.forms.changelog import BEFORE_AND_AFTER, NO_ROWS, WORDS
from beamish.kernels.quoting import quoted
from beamish.kernels.reserved import PREFIX, SIGN
from beamish.spark.runtime.observation import count_skipped

_IMAGE = PREFIX + "image"


def unfolded(form: InputForm | None, df: DataFrame) -> DataFrame:
    """Data rows with ``SIGN``; unchanged without a form.

    Raises:
        ColumnError: a column is missing, or of the wrong type.
        PipelineError: panes that replace each other without retractions.
    """
    if isinstance(form, FromPanes):
        return _panes(form, df)
    if not isinstance(form, FromChangelog):
        return df
    form.check_columns(df.columns)
    if form.format == "debezium":
        return _images(form, df)
    if form.format == "diff":
        return _diffs(form, df)
    said, words = WORDS[form.format]
    sign = F.coalesce(_lookup(F.col(said), words), _error(form, said))
    return df.withColumn(SIGN, sign.cast("tinyint")).drop(said)


def _lookup(names: Column, words: Mapping[str, int]) -> Column:
    return F.create_map(*(F.lit(one) for pair in words.items() for one in pair))[names]


def _error(form: FromChangelog, name: str, type_: str = "int") -> Column:
    """Raise an error instead of returning a value, for unknown values of this column."""
    before, is_shown, after = form.wrong(name, "").partition("''")
    shown = F.coalesce(F.col(name).cast("string"), F.lit("null")) if is_shown else F.lit("")
    return F.raise_error(F.concat(F.lit(before), shown, F.lit(after))).cast(type_)


def _diffs(form: FromChangelog, df: DataFrame) -> DataFrame:
    type_ = df.schema["_diff"].dataType
    if not isinstance(type_, t.IntegralType):
        raise ColumnError(f"{form.call()[1:]}: '_diff' is {type_.simpleString()}; it must be a whole number: cast it")
    times = F.coalesce(F.col("_diff"), _error(form, "_diff")).cast("int")
    signs = F.array_repeat(F.signum(times).cast("tinyint"), F.abs(times))
    return df.withColumn(SIGN, F.explode(signs)).drop("_diff")


def _images(form: FromChangelog, df: DataFrame) -> DataFrame:
    before, after = (df.schema[name].dataType for name in ("before", "after"))
    if not isinstance(after, t.StructType) or not isinstance(before, t.StructType) or before.names != after.names:
        raise ColumnError(
            f"{form.call()[1:]}: 'before' is {before.simpleString()}, 'after' is {after.simpleString()}; they must be structs of "
            "the same columns, such as F.from_json gives"
        )
    tombstone = F.col("op").isNull() & F.col("before").isNull() & F.col("after").isNull()
    op = F.when(F.col("op").isin(list(BEFORE_AND_AFTER)) | tombstone, F.col("op"))
    for word in NO_ROWS:
        op = op.when(F.col("op") == word, F.raise_error(F.lit(form.wrong("op", word))).cast("string"))
    op = op.otherwise(_error(form, "op", "string"))
    images = []
    for place, (name, sign) in enumerate((("before", -1), ("after", 1))):
        needed = op.isin([word for word, needs in BEFORE_AND_AFTER.items() if needs[place]])
        missing = F.raise_error(form.no_image).cast(after)
        image = F.when(F.col(name).isNull(), missing).otherwise(F.col(name).cast(after))
        images.append(F.when(needed, F.struct(F.lit(sign).cast("tinyint").alias(SIGN), image.alias("data"))))
    rows = count_skipped(df, tombstone).select(F.explode(F.array_compact(F.array(*images))).alias(_IMAGE))
    return rows.select(f"{_IMAGE}.data.*", f"{_IMAGE}.{SIGN}")


def _panes(form: FromPanes, df: DataFrame) -> DataFrame:
    form.check_columns(df.columns)
    known = Ledger.read(df.schema["pane"].metadata)
    if known is not None and known.follows is Follows.REPLACING:
        raise PipelineError(
            "from_panes() of panes of a pipeline that is accumulating: each has all rows so far and none is retracted, so totals over them would count rows again; store those of an .accumulating_and_retracting() pipeline, or use the live panes of a batch: bm.live(df)"
        )
    sign = F.when(F.col("pane.kind") == "RETRACTION", -1).otherwise(1).cast("tinyint")
    bounds = {"window": [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]}
    names = [name for name in df.columns if name not in ("pane", "dropped")]
    columns = [one for name in names for one in bounds.get(name, [F.col(quoted(name))])]
    return df.where("pane.kind <> 'DROPPED'").select(*columns, sign.alias(SIGN))

"""Merging streams: several inputs, each with its own event time, key and watermark, windowed together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import attrs

from beamish.errors import PipelineError
from beamish.kernels.reserved import PREFIX, is_reserved
from beamish.options import Input, Options
from beamish.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@attrs.frozen(repr=False)
class MergedPipeline(Pipeline):
    """How the rows of several inputs become panes; made by ``bm.merge``, and used like a ``Pipeline``."""

    def event_time(self, column: Any, watermark: Any) -> NoReturn:
        """Not of a merge: each input has its own.

        Raises:
            PipelineError: always.
        """
        raise PipelineError(
            f"event_time({column!r}, ...) of a merge: each input has its own; say it in bm.merge(orders=bm.Pipeline().event_time(...))"
        )

    def key_by(self, *columns: Any) -> NoReturn:
        """Not of a merge: each input has its own.

        Raises:
            PipelineError: always.
        """
        raise PipelineError(
            f"key_by{columns!r} of a merge: each input has its own; say it in bm.merge(orders=bm.Pipeline()...key_by(...))"
        )

    def apply(self, *, shards: int | None = None, **inputs: DataFrame) -> DataFrame:  # type: ignore[override]
        """Apply it to DataFrames, one an input, all streaming or all batch; lazy, output mode append.

        Args:
            shards: into how many parts the keys' state is cut; default ``spark.sql.shuffle.partitions``. It is
                fixed with the checkpoint.
            inputs: a DataFrame for each input, by its name.

        Returns:
            the key columns by the first input's names, and the rest as ``Pipeline.apply`` says. A dropped row is a
            struct of a struct for each input, of which only the row's own is not null.

        Raises:
            PipelineError, ColumnError, SparkSetupError: the pipeline, its columns or the session is wrong, or an input
                has no DataFrame.
        """
        from beamish.spark import apply_merge

        return apply_merge(self.options, inputs, shards)

    __call__ = apply  # type: ignore[assignment]

    def explain(self, **inputs: DataFrame) -> str:  # type: ignore[override]
        """What will happen, in words; of the watermark, which input can hold it back.

        Args:
            inputs: the DataFrames it would be applied to, for their column types; optional.
        """
        from beamish.explain import explain_merge

        return explain_merge(self.options, inputs)

    def __repr__(self) -> str:
        inputs = (f"{one.name}={_pipeline(one)!r}" for one in self.options.inputs)
        own = Pipeline(attrs.evolve(self.options, inputs=(), keys=()))
        return f"merge({', '.join(inputs)}){repr(own).removeprefix('Pipeline()')}"


def _pipeline(one: Input) -> Pipeline:
    return Pipeline(Options(event_time=one.event_time, watermark=one.watermark, keys=one.keys))


def merge(**inputs: Pipeline) -> MergedPipeline:
    """Window the rows of several streams together, each with its own event time, key and watermark.

    The merged watermark is the least of the inputs', and none until each has one: an input without data holds it
    back, and one that falls quiet does so unless its watermark has an ``idle_timeout`` (RULES.md 3, for each input by
    itself). Sessions merge across inputs, and triggers count the rows of all (Beam guide, "CoGroupByKey").

    Args:
        inputs: two or more, each a pipeline that says its event time and what it is keyed by, and nothing else. Keys
            must agree in number and type; the output calls them as the first input does.

    Returns:
        a pipeline to go on with: windows, trigger, and accumulations that say whose rows they take
        (``Sum("amount").of("orders")``, ``LeftOuterJoin("orders", "clicks")``; ``Count()`` counts the rows of all).

    Raises:
        PipelineError: fewer than two inputs, or one that says too little or too much, or the keys do not agree.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count, Sum
        >>> both = (
        ...     bm.merge(
        ...         orders=bm.Pipeline().event_time("ordered_at", bm.BoundedOutOfOrderness(5)).key_by("user"),
        ...         clicks=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("uid"),
        ...     )
        ...     .window(bm.FixedWindows(60))
        ...     .accumulate(spent=Sum("amount").of("orders"), clicks=Count().of("clicks"))
        ... )
        >>> script = (
        ...     bm.testing.TestStream()
        ...     .add([{"ordered_at": 3, "user": "ann", "amount": 10}], input="orders")
        ...     .add([{"ts": 2, "uid": "ann"}, {"ts": 4, "uid": "ann"}], input="clicks")
        ...     .advance_watermark_to(60, input="clicks")
        ...     .advance_watermark_to(61, input="orders")
        ... )
        >>> [pane.values for pane in both.run(script)]
        [{'spent': 10, 'clicks': 2}]
    """
    if len(inputs) < 2:
        raise PipelineError(
            f"merge({', '.join(inputs)}): needs two inputs or more, such as merge(orders=..., clicks=...)"
        )
    said = [_input(name, pipeline) for name, pipeline in inputs.items()]
    first = said[0]
    for one in said[1:]:
        if len(one.keys) != len(first.keys):
            raise PipelineError(
                f"merge: {first.name} is keyed by {first.keys!r}, {one.name} by {one.keys!r}; key all inputs by as many "
                "columns, in the same order"
            )
    return MergedPipeline(Options(keys=first.keys, inputs=tuple(said)))


def _input(name: str, pipeline: object) -> Input:
    if not isinstance(pipeline, Pipeline):
        raise PipelineError(
            f"merge({name}={pipeline!r}): must be a pipeline, such as bm.Pipeline().event_time('ts', "
            "bm.BoundedOutOfOrderness('30 seconds')).key_by('user')"
        )
    options = pipeline.options
    if is_reserved(name) or not name.isidentifier():
        raise PipelineError(
            f"merge({name}=...): must be a plain name that does not begin with {PREFIX!r}; choose another"
        )
    if options.event_time is None or options.watermark is None:
        raise PipelineError(
            f"merge({name}={pipeline!r}): no event time: say .event_time(column, bm.BoundedOutOfOrderness('30 seconds'))"
        )
    if attrs.evolve(options, event_time=None, watermark=None, keys=()) != Options():
        raise PipelineError(
            f"merge({name}={pipeline!r}): an input says its event_time and key_by only; say the rest of the merge: "
            "bm.merge(...).window(...).accumulate(...)"
        )
    return Input(name, options.event_time, options.watermark, options.keys)

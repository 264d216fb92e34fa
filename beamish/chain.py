"""Chained stages: a pipeline over the panes of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from beamish.errors import PipelineError
from beamish.pane import Pane
from beamish.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from beamish.testing import TestStream


@attrs.frozen(repr=False)
class Chain:
    """Stages of which each takes the panes of the one before as rows; made by ``first.then(second)``.

    A stage without a window of its own keeps the panes' windows, one with a window puts each pane where its
    timestamp falls. Panes of a stage that retracts take their predecessors back in the next, so that totals
    downstream are right after every bundle. Late panes are judged by the stage's own allowed lateness.
    """

    stages: tuple[Pipeline, ...]

    def __attrs_post_init__(self) -> None:
        for number, stage in enumerate(self.stages[:-1], 1):
            if stage.options.with_dropped:
                raise PipelineError(
                    f"with_dropped() in stage {number} of {len(self.stages)}: only panes go on to the next stage; say it "
                    "in the last stage, or apply the stages one by one and split the first one's output by bm.dropped"
                )

    def then(self, stage: Pipeline) -> Chain:
        """One stage more."""
        return Chain((*self.stages, stage))

    def run(self, test_stream: TestStream) -> list[Pane]:
        """Run a script in process; gives the last stage's panes (see ``Pipeline.run``)."""
        from beamish.local import run

        return run([stage.options for stage in self.stages], test_stream.events)

    def apply(self, df: DataFrame | None = None, *, shards: int | None = None, **inputs: DataFrame) -> DataFrame:
        """Apply all stages in one query; gives the last stage's panes (see ``Pipeline.apply``).

        Args:
            df: the rows of the first stage.
            shards: into how many parts the keys' state of each stage is cut.
            inputs: in place of ``df`` where the first stage is a merge: a DataFrame for each input, by its name.

        Raises:
            PipelineError, ColumnError, SparkSetupError: a stage, its columns or the session is wrong.
        """
        if self.stages[0].options.inputs:
            from beamish.spark import apply_merged_chain

            if df is not None:
                raise PipelineError(
                    "apply(df): the first stage is a merge; name its inputs: apply(orders=..., clicks=...)"
                )
            return apply_merged_chain([stage.options for stage in self.stages], inputs, shards)
        if df is None or inputs:
            raise PipelineError(f"apply({', '.join(inputs)}): the first stage has one input without a name: apply(df)")
        from beamish.spark import apply_chain

        return apply_chain([stage.options for stage in self.stages], df, shards)

    __call__ = apply

    def explain(self, df: DataFrame | None = None, **inputs: DataFrame) -> str:
        """What will happen, in words, stage by stage.

        Args:
            df: the rows of the first stage, for their types; optional.
            inputs: in place of ``df`` where the first stage is a merge.
        """
        from beamish.explain import explain_chain

        return explain_chain(self.stages, df, inputs)

    def __repr__(self) -> str:
        first, *rest = map(repr, self.stages)
        return first + "".join(f".then({stage})" for stage in rest)

"""Where the facts of a page are read: a checkpoint, the tables of its output, and the metrics of its listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pyarrow as pa

from beamish.addresses import printable_text
from beamish.checkpoint.inspection import Inspection, opened
from beamish.checkpoint.question import Question
from beamish.dashboard.metrics import Metrics, read_metrics
from beamish.errors import OptionError
from beamish.flow import Flow

if TYPE_CHECKING:
    from beamish.spark.checkpoint.inspected import Batch


class Source(Protocol):
    """A watched query.

    Attributes:
        name: the folder of the checkpoint, without secrets.
        has_panes, has_dropped: whether a table with panes, or with dropped rows, is named.
    """

    @property
    def name(self) -> str: ...
    @property
    def has_panes(self) -> bool: ...
    @property
    def has_dropped(self) -> bool: ...

    def batches(self) -> Sequence[Batch]:
        """The batches in the log (StateError: it cannot be read, or has no committed batch)."""
        ...

    def opened(self, batches: Sequence[Batch]) -> Inspection:
        """The contents after the last committed one of these batches (StateError: they cannot be read)."""
        ...

    def metrics(self) -> Metrics | None:
        """The metrics of its listener; None: not named."""
        ...

    def panes(self, question: Question, most: int) -> tuple[pa.Table, str | None]:
        """The panes of a key around a window, and the column with the time of writing (OptionError: no such table)."""
        ...

    def dropped(self, most: int) -> pa.Table:
        """The last dropped rows (OptionError: no such table)."""
        ...


@attrs.frozen(eq=False)
class SparkSource:
    """A checkpoint and tables that a session reads.

    Attributes:
        spark: the session.
        checkpoint: the folder.
        flow: of the pipeline, if given.
        panes_table, dropped_table: tables, or folders of Parquet files; None: not named.
        metrics_at: a URL or file; None: not named.
    """

    spark: Any
    checkpoint: str
    flow: Flow | None = None
    panes_table: str | None = None
    dropped_table: str | None = None
    metrics_at: str | None = None

    @property
    def name(self) -> str:
        return printable_text(self.checkpoint)

    @property
    def has_panes(self) -> bool:
        return self.panes_table is not None

    @property
    def has_dropped(self) -> bool:
        return self.dropped_table is not None

    def batches(self) -> Sequence[Batch]:
        from beamish.spark.checkpoint.inspected import read_batches

        return read_batches(self.spark, self.checkpoint)

    def opened(self, batches: Sequence[Batch]) -> Inspection:
        return opened(self.spark, self.checkpoint, self.flow, batches)

    def metrics(self) -> Metrics | None:
        return None if self.metrics_at is None else read_metrics(self.metrics_at)

    def panes(self, question: Question, most: int) -> tuple[pa.Table, str | None]:
        from beamish.spark.stored_output import panes_of

        if self.panes_table is None:
            raise OptionError("watch: no table of panes is named; start it with --panes TABLE")
        return panes_of(self.spark, self.panes_table, question.key, (question.start, question.end), most)

    def dropped(self, most: int) -> pa.Table:
        from beamish.spark.stored_output import last_dropped

        if self.dropped_table is None:
            raise OptionError("watch: no table of dropped rows is named; start it with --dropped TABLE")
        return last_dropped(self.spark, self.dropped_table, most)

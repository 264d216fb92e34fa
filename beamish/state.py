"""Questions to what a pipeline keeps between two steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from beamish.errors import PipelineError
from beamish.flow import Flow
from beamish.kernels.named import Named
from beamish.local import held_after
from beamish.pane import PaneKind, Window
from beamish.script.events import Event
from beamish.script.panes import windows_of
from beamish.stages.suppressed import Suppressed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@attrs.frozen
class Held:
    """An update that a suppress holds.

    Attributes:
        name: the suppress.
        key: the key columns.
        window: the window; None for a change without one.
        kind: PANE: what it brings; RETRACTION: what it takes back, or (of changes) deletes.
        values: the values.
        timestamp: the pane's timestamp.
        since: since when its (key, window) is held, on the clock that is waited for; None: it waits for a pane.
        due: when it leaves, on that clock; None: not by itself.
    """

    name: str
    key: Named[Any]
    window: Window | None
    kind: PaneKind
    values: Named[Any]
    timestamp: datetime | None
    since: datetime | None
    due: datetime | None


@attrs.frozen
class ScriptState:
    """What a pipeline keeps after a test script.

    Attributes:
        flow: the pipeline's.
        events: the script's.
    """

    flow: Flow
    events: Sequence[Event]

    def held(self) -> list[Held]:
        """What its suppresses hold: a value per row that would come out.

        Raises:
            PipelineError: it has none.
        """
        check_suppressed(self.flow)
        found = []
        for relation, table in held_after(self.flow, self.events):
            values = [name for name in relation.values if name in table.schema.names]
            found += [
                Held(
                    name=row["suppress"],
                    key=Named({name: row[name] for name in relation.keys}),
                    window=window,
                    kind=PaneKind(row["kind"]),
                    values=Named({name: row[name] for name in values}),
                    timestamp=row["timestamp"],
                    since=row["since"],
                    due=row["due"],
                )
                for row, window in zip(table.drop_columns(["window"]).to_pylist(), windows_of(table), strict=True)
            ]
        return found


@attrs.frozen
class CheckpointState:
    """What a query keeps, as of a batch of its checkpoint.

    Attributes:
        flow: the pipeline's.
        spark: the session that reads it.
        checkpoint: the query's checkpoint folder.
        batch: the number of the batch after which it is read; None: the last one.
    """

    flow: Flow
    spark: SparkSession
    checkpoint: str | Path
    batch: int | None = None

    def held(self, name: str | None = None) -> DataFrame:
        """What a suppress holds: a row per row that would come out.

        Args:
            name: which suppress, where there are several.

        Returns:
            ``suppress``, the key columns, ``window``, the value columns, ``kind``, ``timestamp``, ``since``, ``due``; the last
            two on the clock that is waited for.

        Raises:
            PipelineError: there is no such suppress, or several.
            StateError: the checkpoint is another pipeline's, or holds nothing of it.
        """
        from beamish.spark.held import held_in_checkpoint

        names = check_suppressed(self.flow)
        if (name is None and len(names) > 1) or (name is not None and name not in names):
            raise PipelineError(
                f"held({name!r}): the pipeline's suppresses are {', '.join(map(repr, names))}; name one"
            )
        folder = str(self.checkpoint)
        return held_in_checkpoint(self.flow, self.spark, folder, batch=self.batch, name=name or names[0])


def check_suppressed(flow: Flow) -> list[str]:
    """The names of a flow's suppresses.

    Raises:
        PipelineError: it has none.
    """
    names = [below.stage.suppress.name for below in flow.flows if isinstance(below.stage, Suppressed)]
    if not names:
        raise PipelineError("held(): the pipeline has no suppress, so nothing is held; say .suppress(...)")
    return names

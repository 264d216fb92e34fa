"""Why a window of a script did not fire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from beamish.at_rest.stage_facts import StageFacts, stage_facts
from beamish.at_rest.stage_plans import window_plan
from beamish.checkpoint.question import read_question
from beamish.checkpoint.rows import is_meant, rows_of
from beamish.checkpoint.words import why
from beamish.description import descriptions
from beamish.errors import PipelineError
from beamish.flow import Flow
from beamish.kinds.suppress.stage import unsuppressed
from beamish.kinds.window.stage import WindowStage
from beamish.local import stages_after
from beamish.script.events import Event


def why_after(flow: Flow, events: Sequence[Event], initial: Any, *, key: Any, window: Any, stage: int | None) -> str:
    """Why windows have not fired after a script, in a paragraph for each.

    Args:
        flow: the pipeline's.
        events: the script's.
        initial: rows that its tables began with.
        key, window: which are meant, as ``read_question`` reads them.
        stage: the number of the stage, where several have windows.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong, or no stage is meant.
        OptionError: there is no such key column, or the window is none.
    """
    stages = list(stages_after(flow, events, initial))
    if not stages:
        return "No row came, so there is no window."
    with_windows = [isinstance(unsuppressed(bound.stage), WindowStage) for bound, _ in stages]
    number = stage_meant("why", stage, with_windows)
    bound, stores = stages[number - 1]
    about = descriptions(stages[-1][0])[number - 1]
    facts = stage_facts(dict(enumerate(stores)), about, window_plan(bound.operator))
    question = read_question(facts, "why", key, window)
    table = pa.concat_tables([facts.reader.read(store) for store in stores])
    return why(facts, question, [row for row in rows_of(table) if is_meant(row, question)])


def stage_meant(call: str, stage: int | None, with_windows: Sequence[bool]) -> int:
    """The number of the stage that is asked about.

    Args:
        call: for messages.
        stage: its number, as it was given; None: the only one with windows.
        with_windows: of each stage whether it has windows.

    Raises:
        PipelineError: there is none, or several and none is named.
    """
    numbers = [number for number, has in enumerate(with_windows, 1) if has]
    if not numbers:
        raise PipelineError(f"{call}(): no stage has windows to look into")
    if stage is None and len(numbers) == 1:
        return numbers[0]
    if stage not in numbers or isinstance(stage, bool):
        raise PipelineError(
            f"{call}(stage={stage!r}): stages with windows are {', '.join(map(str, numbers))}; name one: {call}(stage={numbers[0]})"
        )
    return stage


def place_of(stages: Sequence[StageFacts], call: str, stage: int | None) -> int:
    """The place of the stage that is asked about among those of a checkpoint.

    Raises:
        PipelineError: there is none, or several and none is named.
    """
    return stage_meant(call, stage, [one.plan is not None for one in stages]) - 1

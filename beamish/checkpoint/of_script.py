"""The state of the stages after a script, and why a window did not fire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.checkpoint.question import check_no_window, read_question, stage_meant
from beamish.checkpoint.stored_keys import why_of_keys
from beamish.checkpoint.words import rows_of, why
from beamish.contract.at_rest import Answer, Asked, Keeps, read_key
from beamish.contract.stored import DictStore
from beamish.flow import BoundFlow, Flow, descriptions
from beamish.local import stages_after
from beamish.script import Event
from beamish.stage_facts import stage_facts


@attrs.frozen
class ScriptStages:
    """The stages of a pipeline after a script.

    Attributes:
        stages: each, bound to the script's columns, and the stores of its shards; empty: no rows.
    """

    stages: Sequence[tuple[BoundFlow, Sequence[DictStore]]]

    @classmethod
    def after(cls, flow: Flow, events: Sequence[Event], initial: Any) -> ScriptStages:
        """Run a script; ``initial``: initial rows of its tables.

        Raises:
            PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
        """
        return cls(list(stages_after(flow, events, initial)))

    def answer(self, stage: int, asked: Asked) -> tuple[Answer, pa.Table] | None:
        """The answer of a stage, by its number, and the rows; None: no rows.

        Raises:
            OptionError, PipelineError: see ``AtRest.answer``.
        """
        if not self.stages:
            return None
        bound, stores = self.stages[stage - 1]
        operator = bound.operator
        answer = bound.stage.at_rest(operator.takes, stores, asked.what, shards=operator.shards).answer(asked)
        return answer, _read(answer, stores)

    def why(self, *, key: Any, window: Any, stage: int | None) -> str:
        """Why windows have not fired, a paragraph for each.

        Args:
            key, window: the selection, as for ``read_question``.
            stage: the number of the stage, if several have windows.

        Raises:
            PipelineError: no such stage.
            OptionError: no such key column, or an invalid window.
        """
        if not self.stages:
            return "No row arrived, so there is no window, and no state."
        each = enumerate((bound for bound, _ in self.stages), 1)
        keeping = {number: of.stage.keeps(of.operator.takes) for number, of in each}
        number = stage_meant("why", stage, keeping, Keeps.WINDOWS, Keeps.KEYS)
        bound, stores = self.stages[number - 1]
        notes, about = dict(enumerate(stores)), descriptions(self.stages[-1][0])[number - 1]
        if Keeps.WINDOWS not in keeping[number]:
            check_no_window("why", number, window)
            asked = read_key("why", key, bound.operator.stored_keys)
            rows = _read(bound.operator.answer(Asked(Keeps.KEYS, asked)), stores).to_pylist()
            return why_of_keys(stage_facts(notes, about), asked, bound.operator.stored_keys.names, rows)
        facts = stage_facts(notes, about, bound.operator)
        question = read_question(facts, "why", key, window)
        return why(facts, question, rows_of(_read(facts.asked(question.asked), stores)))


def _read(answer: Answer, stores: Sequence[DictStore]) -> pa.Table:
    return pa.concat_tables([answer.read(store) for store in stores])

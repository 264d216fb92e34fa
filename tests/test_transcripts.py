"""Every transcript says what the slow twin and the engine do, line by line; and they do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

import beamish as bm
from beamish import Pane
from beamish.testing import TestStream
from tests.lines import line
from tests.transcripts.cases import CASES, by_key
from tests.transcripts.reading import Transcript
from tests.twin.run import trace

Runner = Callable[[bm.Pipeline, TestStream], Sequence[Sequence[Pane]]]
"""The panes of each event."""

RUNNERS: dict[str, Runner] = {
    "twin": lambda pipeline, script: trace(pipeline, script.events),
    "engine": lambda pipeline, script: [panes for _, panes in script.trace(pipeline)],
}


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.title}")
def test_transcripts_hold(case: Transcript, runner: str):
    run = RUNNERS[runner]
    if case.refused:
        _, error, *words = case.refused.split()
        with pytest.raises(getattr(bm, error), match=re.escape(" ".join(words))):
            _check_and_run(case, run)
        return
    traced = _check_and_run(case, run)
    for step, panes in zip(case.steps, traced, strict=True):
        assert by_key([line(pane) for pane in panes]) == by_key(step.gives), step.line


def _check_and_run(case: Transcript, run: Runner) -> Sequence[Sequence[Pane]]:
    pipeline = case.build()
    pipeline.flow.completed.check()
    return run(pipeline, case.script())


def test_every_transcript_file_has_cases():
    assert len(CASES) > 50
    assert len({(case.file, case.title) for case in CASES}) == len(CASES)

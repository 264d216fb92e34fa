"""Every transcript says what the slow twin and the engine do, line by line; and they do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

import beamish as bm
from beamish import Pane, PaneKind
from beamish.testing import TestStream
from tests.lines import line
from tests.transcripts.reading import Transcript, transcripts
from tests.twin.run import trace

Runner = Callable[[bm.Pipeline, TestStream], Sequence[Sequence[Pane]]]
"""The panes of each event."""

RUNNERS: dict[str, Runner] = {
    "twin": lambda pipeline, script: trace(pipeline, script.events),
    "engine": lambda pipeline, script: [panes for _, panes in script.trace(pipeline)],
}
CASES = transcripts()


def by_key(lines: Sequence[str]) -> list[str]:
    """Between keys no order is promised (rules/output.md#order-of-output), nor among dropped rows."""

    def place(text: str) -> tuple[str, bool, str]:
        dropped = text.startswith(PaneKind.DROPPED)
        key = re.match(r"\w+ (.*?)(\[|global|no window)", text)
        return key[1] if key else "", not dropped, text if dropped else ""

    return sorted(lines, key=place)


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

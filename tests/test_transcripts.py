"""Every transcript says what the slow twin and the engine do; and they do it.

On the twin and on the engine a script is run line by line, so that each pane comes with the line that gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

import beamish as bm
from beamish import Pane, PaneKind
from beamish.chain import Chain
from beamish.testing import TestStream
from tests.lines import line
from tests.transcripts.reading import Transcript, transcripts
from tests.twin.chain import run_chain

Runner = Callable[[bm.Pipeline | Chain, TestStream], Sequence[Pane]]

RUNNERS: dict[str, Runner] = {
    "twin": lambda pipeline, script: run_chain([stage.options for stage in pipeline.stages], script.events),
    "engine": lambda pipeline, script: pipeline.run(script),
}
CASES = transcripts()


def by_key(lines: Sequence[str]) -> list[str]:
    """Between keys no order is promised (RULES 18), nor among dropped rows."""

    def place(text: str) -> tuple[str, bool, str]:
        dropped = text.startswith(PaneKind.DROPPED)
        key = re.match(r"\w+ (.*?)(\[|global|no window)", text)
        return key[1] if key else "", not dropped, text if dropped else ""

    return sorted(lines, key=place)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.title}")
def test_a_transcript_is_what_happens(case: Transcript, runner: str):
    run = RUNNERS[runner]
    if case.refused:
        _, error, *words = case.refused.split()
        with pytest.raises(getattr(bm, error), match=re.escape(" ".join(words))):
            _check_and_run(case, run)
        return
    pipeline = case.build()
    pipeline.stages[0].options.check()
    came: list[str] = []
    for n, step in enumerate(case.steps, 1):
        now = [line(pane) for pane in run(pipeline, case.script(n))]
        assert by_key(now[: len(came)]) == by_key(came), step.line
        assert by_key(now[len(came) :]) == by_key(step.gives), step.line
        came = now


def _check_and_run(case: Transcript, run: Runner) -> None:
    pipeline = case.build()
    pipeline.stages[0].options.check()
    run(pipeline, case.script())


def test_every_transcript_file_has_cases():
    assert len(CASES) > 50
    assert len({(case.file, case.title) for case in CASES}) == len(CASES)

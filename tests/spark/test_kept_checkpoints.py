"""Queries continue from the Spark checkpoints of a release (docs/rules/running.md#state-format)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import attrs
import pytest

from tests.agreement import differences
from tests.checkpoints.cases import CASES
from tests.checkpoints.write import ROOT, move

FILES = sorted((Path(__file__).parents[1] / "checkpoints").glob("format*/spark-*.zip"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_stored_query_continues_as_if_it_had_never_stopped(spark, tmp_path, path):
    case = CASES[path.stem.removeprefix("spark-")]
    with zipfile.ZipFile(path) as kept:
        kept.extractall(tmp_path)
    move(tmp_path, ROOT, str(tmp_path))
    on_spark = case.script.trace_on_spark(spark, case.pipeline, checkpoint=tmp_path)
    new = False
    for (event, panes), (_, expected) in zip(on_spark, case.script.trace(case.pipeline), strict=True):
        new |= any(pane.change for pane in panes)  # what was written before rows said what they do does not say it
        known = expected if new else [attrs.evolve(pane, change=None) for pane in expected]
        found = differences(panes, known, case.pipeline)
        assert not found, "\n".join([repr(event), *found])
    assert new
    assert 0 in {pane.sequence for _, panes in on_spark for pane in panes if pane.change}, "a state without a counter"


def test_there_are_kept_queries():
    assert len(FILES) >= 2

"""What a release wrote, every later version reads (docs/rules/running.md#state-format): the files in tests/checkpoints."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from beamish.local import Variation, run
from beamish.tables.notes import FORMAT
from tests.agreement import differences
from tests.checkpoints.cases import CASES

FOLDER = Path(__file__).parents[1] / "checkpoints"
FILES = sorted(FOLDER.glob("format*/*.json"))


class Resumed:
    """Shards that begin with what was kept, in the order in which they are opened."""

    def __init__(self, stores):
        self.stores = stores

    def resume(self, operator):
        opened = operator.open

        def opening(store):
            store.update({name: b64decode(value) for name, value in self.stores.pop(0).items()})
            return opened(store)

        operator.open = opening
        return operator


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_kept_checkpoint_goes_on_as_if_it_had_never_stopped(path):
    case = CASES[path.stem]
    resumed = Resumed(json.loads(path.read_text("utf-8")))
    went_on = run(case.pipeline.flow, case.after.events, Variation(shards=2, adapt=resumed.resume))
    assert not resumed.stores
    whole = [pane for _, panes in case.script.trace(case.pipeline)[len(case.before.events) :] for pane in panes]
    assert went_on
    found = differences(went_on, whole, case.pipeline)
    assert not found, "\n".join(found)


def test_every_case_is_kept_in_the_format_of_this_version():
    assert {path.stem for path in FILES if path.parent.name == f"format{FORMAT}"} == set(CASES)

"""Every later version reads the checkpoints of a release (docs/rules/running.md#state-format): the files in tests/checkpoints."""

from __future__ import annotations

import json
from base64 import b64decode
from functools import cache
from pathlib import Path

import attrs
import pytest

from beamish.contract.stored import DictStore
from beamish.kernels.buffers import from_bytes
from beamish.local import Variation, run
from beamish.tables.notes import FORMAT
from beamish.tables.older import upgraded
from beamish.triggers import Always
from tests.agreement import differences
from tests.checkpoints.cases import CASES
from tests.declared_options import evolve, said

FOLDER = Path(__file__).parents[1] / "checkpoints"
FILES = sorted(FOLDER.glob("format*/*.json"))


class Resumed:
    """Shards that begin with what was kept, in the order in which they are opened."""

    def __init__(self, stores):
        self.stores = stores
        self.opened = []

    def resume(self, operator):
        opened = operator.open

        def opening(store):
            store.update(of_text(self.stores.pop(0)))
            self.opened.append(store)
            return opened(store)

        operator.open = opening
        return operator


def of_text(store):
    return DictStore({name: b64decode(value) for name, value in store.items()})


def notes_of(store):
    """The metadata of windows, by the entry of the index that it is in."""
    entries = [name for name in store if name == "index" or (name.endswith("/index") and name.count("/") == 1)]
    tables = {name: from_bytes(store[name]) for name in entries}
    abouts = {name: json.loads(table.schema.metadata[b"beamish"]) for name, table in tables.items()}
    return {name: about for name, about in abouts.items() if "clocks" in about}


@cache
def uninterrupted(name):
    """The panes after the checkpoint, of a run that was not interrupted."""
    case = CASES[name]
    return [pane for _, panes in case.script.trace(case.pipeline)[len(case.before.events) :] for pane in panes]


JOINS = ("merge", "pairs_kept", "pairs_once")
OLDER = [
    path
    for path in FILES
    if path.parent.name == "format3" and any(map(notes_of, map(of_text, json.loads(path.read_text("utf-8")))))
]
"""Those of stages with windows."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_stored_checkpoint_continues_like_an_uninterrupted_run(path):
    case = CASES[path.stem]
    resumed = Resumed(json.loads(path.read_text("utf-8")))
    went_on = run(case.pipeline.flow, case.after.events, Variation(shards=2, adapt=resumed.resume, fuse=case.fuse))
    assert not resumed.stores
    assert went_on
    found = differences(went_on, uninterrupted(path.stem), case.pipeline)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_a_shard_of_format_3_keeps_its_entry_until_something_changes(path):
    case, stored = CASES[path.stem], json.loads(path.read_text("utf-8"))
    then = [notes_of(of_text(store)) for store in stored]
    resumed = Resumed(stored)
    run(case.pipeline.flow, case.after.events, Variation(shards=2, adapt=resumed.resume))
    now = [notes_of(store) for store in resumed.opened]
    for was, is_ in zip(then, now, strict=True):
        for entry, about in was.items():
            for name in ("format", "identity", "changeable"):
                assert is_[entry][name] == about[name]


def test_another_trigger_writes_the_format_of_this_version():
    case = CASES["fixed"]
    resumed = Resumed(json.loads((FOLDER / "format3" / "fixed.json").read_text("utf-8")))
    run(case.pipeline.trigger(Always()).flow, case.after.events, Variation(shards=2, adapt=resumed.resume))
    for store in resumed.opened:
        (about,) = notes_of(store).values()
        assert about["format"] == FORMAT
        assert not about.keys() & {"identity", "changeable", "older"}


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_what_format_3_says_of_a_stage_is_the_spec_that_this_version_writes(path):
    then, now = (json.loads((FOLDER / name / path.name).read_text("utf-8")) for name in ("format3", f"format{FORMAT}"))
    for was, is_ in zip(map(of_text, then), map(of_text, now), strict=True):
        for (entry, older), about in zip(notes_of(was).items(), notes_of(is_).values(), strict=True):
            assert upgraded(older)["spec"] == about["spec"], entry


def test_every_case_is_kept_in_the_format_of_this_version():
    assert {path.stem for path in FILES if path.parent.name == f"format{FORMAT}"} == set(CASES)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem in JOINS], ids=lambda path: f"{path.parent.name} {path.stem}"
)
def test_a_join_of_before_null_keys_continues_and_its_note_has_their_meaning(path):
    case = CASES[path.stem]
    (join,) = (attrs.evolve(one, null_keys="unmatched") for one in said(case.pipeline).accumulations.values())
    now = evolve(case.pipeline, accumulations={"pair": join})
    resumed = Resumed(json.loads(path.read_text("utf-8")))
    went_on = run(now.flow, case.after.events, Variation(shards=2, adapt=resumed.resume))
    then = Resumed(json.loads(path.read_text("utf-8")))
    assert not differences(
        went_on, run(case.pipeline.flow, case.after.events, Variation(shards=2, adapt=then.resume)), now
    )
    specs = [about.get("spec", {}) for store in resumed.opened for about in notes_of(store).values()]
    assert "unmatched" in [spec.get("null_keys") for spec in specs]

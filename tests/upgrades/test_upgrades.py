"""Every change between two runs is either applied correctly or refused, with both values and the fix (docs/upgrading.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.checkpoint.comparison import StoredStage, changes_of
from beamish.contract.stored import DictStore
from beamish.flow import descriptions
from beamish.script import script_rows
from beamish.triggers import Always
from tests.checkpoints.cases import CASES
from tests.upgrades import carried as carrying
from tests.upgrades.carried import carried, differences_after, in_two_runs, line
from tests.upgrades.rows import PLAIN, ROWS
from tests.upgrades.table import OF_SPARK, table

pytestmark = pytest.mark.dear

GOES_ON = [row for row in ROWS if row.goes_on]
REFUSED = [row for row in ROWS if not row.goes_on]
OF_RUNNER = ("stages", "inputs", "clock", "shards")
"""Refused by the runner or by Spark, not by the engine."""


@pytest.mark.parametrize("row", GOES_ON, ids=lambda row: row.change.partition(": ")[0])
def test_compatible_changes_continue(row):
    _, second = in_two_runs(row.then, row.now, row.script, row.first, row.types)
    assert tuple(sorted(map(line, second))) == tuple(sorted(row.after))
    found = differences_after(row.then, row.now, row.script, row.first, row.types)
    assert not [one for one in found if one.refused]
    assert bool(found) is (row.then.flow != row.now.flow or row.types[0] != row.types[1])
    assert all(one.means and one.then != one.now for one in found)


def described_in_lines(flow):
    """The descriptions that state of format 3 has."""
    for about, one in zip(descriptions(flow), flow.flows, strict=True):
        inputs = [
            {
                "name": relation.name,
                "stage": of["stage"],
                "keys": list(relation.keys),
                "delay_us": 0,
                "idle_us": None,
                "lag_us": None,
            }
            for of, relation in zip(about["inputs"], one.operator.takes, strict=True)
        ]
        lines = [
            ["closing" if subject == "expiry" else subject, words.replace("reaches its end", "passes its end")]
            for subject, words in one.stage.describe(one.operator.takes, one.operator)
        ]
        numbers = {"stage": about["stage"], "stages": about["stages"]}
        yield {
            "version": 1,
            **numbers,
            "lines": lines,
            "inputs": inputs,
            "own": [],
            "only_updated": False,
            "suppress": None,
        }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.change.partition(": ")[0])
def test_a_description_in_lines_tells_the_same_changes(row, monkeypatch):
    of_row = row.then, row.now, row.script, row.first, row.types, row.shards
    now = {(one.stage, one.what, one.then, one.now, one.refused) for one in differences_after(*of_row)}
    monkeypatch.setattr(carrying, "descriptions", described_in_lines)
    then = {(one.stage, one.what, one.then, one.now, one.refused) for one in differences_after(*of_row)}
    lost = now - then
    assert {one[1] for one in lost} <= {
        "expiry",
        "a pane holds",
        "dropped",
        "held",
        "timestamp",
        "windows",
        "watermark",
        "rows",
    }
    assert not any(one[-1] for one in lost), "refused changes follow from the metadata of the shards"
    assert not {one for one in then - now if one[-1]}


OLDER = json.loads((Path(__file__).parent / "descriptions_format3.json").read_text("utf-8"))
"""The descriptions that the last version of state format 3 wrote of the pipelines of tests/checkpoints, in its wording."""


@pytest.mark.parametrize("name", OLDER)
def test_an_unchanged_pipeline_differs_in_nothing_from_a_description_in_other_words(name, monkeypatch):
    case = CASES[name]
    monkeypatch.setattr(carrying, "descriptions", lambda _: OLDER[name])
    assert differences_after(case.pipeline, case.pipeline, case.script, len(case.before.events)) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (lambda of: of.trigger(Always()), "panes"),
        (lambda of: of.allowed_lateness("90 seconds"), "late"),
        (lambda of: of.retain(windows=3), "retained"),
        (lambda of: of.having(pc.field("n") > 1), "having"),
    ],
)
def test_a_change_is_reported_beside_a_description_in_other_words(changed, what, monkeypatch):
    case = CASES["sessions"]
    now = changed(case.pipeline.accumulating())
    then = case.pipeline.accumulating()
    monkeypatch.setattr(carrying, "descriptions", lambda _: OLDER["sessions"])
    found = differences_after(then, now, case.script, len(case.before.events))
    assert what in {one.what for one in found}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.change.partition(": ")[0])
def test_incompatible_changes_are_rejected_with_both_values_and_the_fix(row):
    every = differences_after(row.then, row.now, row.script, row.first, row.types, row.shards)
    found = [one for one in every if one.refused]
    assert row.refused in {one.what for one in found}
    assert not {(one.stage, one.what) for one in found} & {(one.stage, one.what) for one in every if not one.refused}
    said = next(one for one in found if one.what == row.refused)
    assert row.says in f"{said.now} {said.means}"
    assert "keep" in said.means
    assert said.then != said.now or said.what == "state"
    if row.refused not in OF_RUNNER:
        with pytest.raises(bm.StateError):
            in_two_runs(row.then, row.now, row.script, row.first, row.types)


@pytest.mark.parametrize(
    "row", [row for row in REFUSED if row.refused not in ("stages", "inputs")], ids=lambda row: row.change
)
def test_migration_follows_the_table(row):
    if row.migrated is None:
        with pytest.raises(bm.StateError):
            carried(row.then, row.now, row.script, row.first, (2, 3), types=row.types)
    else:
        _, second = carried(row.then, row.now, row.script, row.first, (2, 3), types=row.types)
        assert tuple(sorted(map(line, second))) == tuple(sorted(row.migrated))


@pytest.mark.parametrize("row", GOES_ON, ids=lambda row: row.change.partition(": ")[0])
def test_compatible_changes_are_allowed_in_a_migration(row):
    _, second = carried(row.then, row.now, row.script, row.first, (2, 3), types=row.types)
    assert tuple(sorted(map(line, second))) == tuple(sorted(row.after))


def test_the_lines_that_are_of_spark_have_their_test_there(root):
    assert f"def {OF_SPARK}(" in (root / "tests" / "spark" / "test_upgrades.py").read_text("utf-8")


def test_the_page_has_the_table(root):
    assert table() in (root / "docs" / "upgrading.md").read_text("utf-8"), "python -m tests.upgrades.table"


class Session:
    """As far as it is looked at before anything is read."""

    read = createDataFrame = None  # noqa: N815 - as Spark calls it


class ClassicSession(Session):
    """One of the driver."""

    sparkContext = _jsparkSession = None  # noqa: N815 - as Spark calls it


def migrate_to_new(spark, checkpoint, pipeline):
    bm.migrate(spark, checkpoint, "new", pipeline)


@pytest.mark.parametrize("call", [bm.check_upgrade, migrate_to_new])
@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ((None, "folder", PLAIN), bm.OptionError, "must be a SparkSession"),
        ((Session(), "", PLAIN), bm.OptionError, "must be the folder of a checkpoint"),
        ((Session(), 3, PLAIN), bm.OptionError, "must be the folder of a checkpoint"),
        ((Session(), "folder", "pipeline"), bm.PipelineError, "must be the pipeline that will continue"),
    ],
)
def test_arguments_are_checked_first(call, given, error, says):
    with pytest.raises(error, match=says):
        call(*given)


def test_a_session_without_a_driver_is_refused(tmp_path):
    with pytest.raises(bm.OptionError, match="Spark Connect does not give access to files"):
        bm.migrate(Session(), "folder", tmp_path / "new", PLAIN)


def test_a_location_is_a_uri(tmp_path):
    with pytest.raises(bm.OptionError, match=r"location='/there'.: must be the URI"):
        bm.migrate(ClassicSession(), tmp_path / "old", tmp_path / "new", PLAIN, location="/there")


def test_an_upgrade_has_a_text_and_a_table():
    found = differences_after(PLAIN, PLAIN.discarding().allowed_lateness(30), ROWS[0].script, 3)
    upgrade = bm.Upgrade("folder", 7, found)
    assert not upgrade.ok
    assert [one.what for one in upgrade.refused] == ["mode"]
    first, second, *_ = str(upgrade).split("\n")
    assert first == "checkpoint folder, after batch 7: the pipeline is refused"
    assert second == "- refused: stage 1, mode"
    assert "- continues: stage 1, late" in str(upgrade)
    assert "<td" in upgrade._repr_html_()
    with pytest.raises(bm.StateError, match="stage 1, mode"):
        upgrade.or_raise()
    assert "nothing that the checkpoint stores has changed" in str(bm.Upgrade("folder", 7, []))


def test_a_shard_that_cannot_be_read_is_refused_with_its_words():
    stage = StoredStage.of({0: DictStore({"index": b"rubbish", "spark": b'{"shards": 2}'})})
    flow = PLAIN.flow.bind(script_rows(PLAIN.flow, ROWS[0].script.events).schemas, shards=2)
    (found,) = changes_of([stage], flow, shards=[2], clock=(False, False))
    assert found.refused
    assert "is not what was written" in found.means

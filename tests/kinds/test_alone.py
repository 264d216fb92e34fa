"""Steps of a shard depend on its operator and its store, not on the imports of its process."""

import pickle
import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.fusion.groups import FUSE
from beamish.kernels.column_names import EVENT_TIME
from beamish.source import Source
from beamish.tables.entries import FUSED
from beamish.tables.notes import KIND_ENTRIES
from beamish.triggers import Always
from tests.kinds.alone import S, run
from tests.kinds.hold_back.stage import held_back

TIMED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
KEYED = TIMED.key_by("team")
SUMS = KEYED.window(bm.FixedWindows(3)).accumulate(n=Count(), sum=Sum("score"))
TABLE = KEYED.versions(10)
KINDS = {
    "windows": SUMS.where(pc.field("score") > 1).having(pc.field("sum") < 100).deduplicate("name").retain(windows=3),
    "a suppress": SUMS.trigger(Always()).accumulating().suppress(bm.UntilWindowCloses()),
    "windowings": KEYED.window({"a": bm.FixedWindows(3), "b": bm.Sessions(4)}).accumulate(n=Count()),
    "deduplication": KEYED.deduplicate("name", within=10),
    "changes": KEYED.changes(sequence_by="score").suppress(bm.UntilTimeLimit(1, clock="event")),
    "versions": TABLE,
    "an as-of join": bm.as_of_join(orders=TIMED, rates=TABLE, on="team"),
    "gaps": KEYED.fill_gaps(2, by="last", within=10),
    "upserts": KEYED.upserts(sequence_by="score"),
    "a join of tables": bm.table_join(orders=TIMED, names=TIMED, on="team", how="outer"),
    "over": KEYED.over(bm.Preceding(5)).accumulate(n=Count(), before=bm.Lag("score")),
    "rolling spans": KEYED.window(bm.Rolling({"a": 4}, step=1)).accumulate(most=Max("score")),
    "a kind of a user's own": held_back(5, Source("ts", bm.BoundedOutOfOrderness(0), ("team",))),
    "fused stages": SUMS.then(bm.Pipeline().key_by("team").window(bm.FixedWindows(6)).accumulate(t=Sum("n"))),
}
SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "team": pa.string(), "score": pa.int64(), "name": pa.string()},
)


def bundle(*times):
    rows = [{"ts": at * S, "team": "ab"[at % 2], "score": at, "name": f"n{at % 3}"} for at in times]
    return pa.Table.from_pylist(rows, SCHEMA).append_column(EVENT_TIME, pa.array([at * S for at in times]))


BUNDLES = [bundle(1, 2, 3), bundle(4, 2, 7, 9), bundle(11, 12, 30)]


def operator_of(pipeline):
    flow = pipeline.flow
    return FUSE.grouped(flow.bind(dict.fromkeys([one.name for one in flow.sources], SCHEMA), shards=2)).operator


@pytest.fixture(scope="module")
def here():
    """The rows and stores of each in this process."""
    return {name: run(operator_of(pipeline), BUNDLES) for name, pipeline in KINDS.items()}


def test_each_kind_is_among_these(here):
    stored = {entry for _, stores in here.values() for store in stores for entry in store}
    assert {FUSED, *KIND_ENTRIES} <= stored


@pytest.mark.dear  # a process each
@pytest.mark.parametrize("name", KINDS)
def test_a_process_with_one_kind_gives_the_same_and_refuses_the_state_of_others(here, name):
    """A worker imports the kinds of its own stages only."""
    others = {other: stores[0] for other, (_, stores) in here.items() if other != name}
    asked = cloudpickle.dumps((operator_of(KINDS[name]), BUNDLES, others))
    done = subprocess.run([sys.executable, "-m", "tests.kinds.alone"], input=asked, capture_output=True, check=True)
    there, refused, imported = pickle.loads(done.stdout)
    assert there == here[name]
    assert any(came for came in there[0])
    assert [other for other, why in refused.items() if not why] == []
    own = {"tests.kinds.hold_back.operator", "beamish.kinds.gaps.operator"} & set(imported)
    assert len(own) == (name in ("a kind of a user's own", "gaps"))


_FOUND = """
import pkgutil
from importlib import import_module

import beamish
from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.identity import family
from beamish.triggers.trigger import Trigger
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption

def found():
    kinds = (Accumulation, Trigger, Watermark, WindowOption)
    return {one for kind in kinds for one in family(kind) if not one.__module__.startswith("beamish.testing")}

before = found()
for module in pkgutil.walk_packages(beamish.__path__, "beamish."):
    if not module.name.startswith(("beamish.__main__", "beamish.beam", "beamish.plot", "beamish.spark", "beamish.testing")):
        import_module(module.name)
print(len(before), *(found() - before))
"""


@pytest.mark.dear  # a process
def test_specs_find_classes_that_nothing_has_imported():
    """A stored spec names its class; modules of beamish that define one may not have been imported yet."""
    done = subprocess.run([sys.executable, "-c", _FOUND], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 50

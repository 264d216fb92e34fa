"""Garbage collection after each task skips the long-lived objects of Spark's workers, and Arrow returns freed memory."""

import gc
import os
import subprocess
import sys

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.kernels.column_names import EVENT_TIME
from beamish.spark.operator.panes import panes_from_bytes
from beamish.spark.operator.processor import FromQuery, ShardProcessor, WakePolicy
from beamish.spark.rows.pack import pane_packer, source_packer
from beamish.spark.runtime import workers
from tests.conftest import pytest_unconfigure

WORKER = """
import gc
from beamish.spark.runtime.workers import spare_memory
from beamish.spark.operator import processor
gc.collect()
print(len(gc.get_objects()))
for _ in range(2):
    spare_memory()
    gc.collect()  # as Spark's daemon does after a task
    print(len(gc.get_objects()), gc.get_freeze_count())
"""


def test_imported_objects_are_not_collected_after_tasks():
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=True)
    imported, left, spared, left_again, spared_again = map(int, done.stdout.split())
    assert min(imported, spared) > 50_000
    assert max(left, left_again) < 5_000
    assert abs(spared_again - spared) < 100  # little is new, so it is left as it is


@pytest.mark.parametrize(("chosen", "taken"), [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")])
def test_arrow_uses_the_system_allocator_by_default(chosen, taken):
    words = "import pyarrow as pa; from beamish.spark.runtime.workers import spare_memory; spare_memory(); print(pa.default_memory_pool().backend_name)"
    env = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"} | chosen
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == taken


def pipelines():
    first = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(10))
        .accumulate(plays=Count())
    )
    return first, first.then(bm.Pipeline().key_by("plays").window(bm.FixedWindows(60)).accumulate(teams=Count()))


def operator_of(pipeline):
    return pipeline.flow.bind({None: pa.schema([("team", pa.string())])}, shards=1).operator


class Handle:
    def getMapState(self, *_):  # noqa: N802 - Spark's name
        return self


@pytest.mark.parametrize("task", ["source_packer", "pane_packer", "processor", "panes_from_bytes"])
def test_each_kind_of_task_begins_with_it(task, monkeypatch):
    calls = []
    for module in ("rows.pack", "operator.processor", "operator.panes"):
        monkeypatch.setattr(f"beamish.spark.{module}.spare_memory", lambda: calls.append(task))
    one, two = map(operator_of, pipelines())
    if task == "source_packer":
        rows = pa.record_batch({"c0": ["blue"], EVENT_TIME: [0]})
        next(source_packer(one, 0)([rows]))
    elif task == "pane_packer":
        assert list(pane_packer(two, 0, streaming=True, read=iter)([])) == []
    elif task == "processor":
        ShardProcessor(one, FromQuery((True,)), WakePolicy.WHEN_DUE).init(Handle())
    else:
        assert list(panes_from_bytes([])) == []
    assert calls == [task]


@pytest.mark.parametrize(("objects", "times"), [(5_000, 0), (5_001, 4)])
def test_a_worker_with_little_to_collect_is_left_alone_and_any_after_some_times(objects, times, monkeypatch):
    frozen = []
    monkeypatch.setattr(workers, "_times", iter(range(workers._TIMES)))
    monkeypatch.setattr(workers.gc, "get_objects", lambda *, generation: [generation] * objects)
    monkeypatch.setattr(workers.gc, "freeze", lambda: frozen.append(True))
    for _ in range(10):
        workers.spare_memory()
    assert len(frozen) == times


def test_objects_that_tasks_froze_are_freed_when_the_tests_end():
    gc.freeze()
    pytest_unconfigure()
    assert gc.get_freeze_count() == 0

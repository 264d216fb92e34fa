"""Several windowings at rest: when a shard that has them is due, and its state read elsewhere."""

import pickle

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Collect, Count
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.local import stages_after
from beamish.testing import TestStream

SECOND = 1_000_000
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .window({"long": bm.FixedWindows(60), "short": bm.FixedWindows(10)})
    .accumulate(n=Count())
)


def test_a_shard_is_due_when_the_first_of_its_windowings_is():
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC"))])
    operator = PIPELINE.flow.bind({None: schema}, shards=1).operator
    time = pa.array([5 * SECOND])
    rows = pa.table({"ts": time.cast(pa.timestamp("us", tz="UTC")), EVENT_TIME: time})
    shard = operator.open(DictStore())
    assert shard.next_due_us is None
    due = []
    for watermark, payloads in [
        (None, [payload for _, payload in operator.pack(0, rows)]),
        (10 * SECOND, []),
        (60 * SECOND, []),
    ]:
        panes = shard.step([watermark], None, payloads)
        due.append((panes.num_rows, shard.next_due_us))
    assert due == [(0, 10 * SECOND), (1, 60 * SECOND), (1, None)]


@pytest.mark.parametrize("what", [Keeps.WINDOWS, Keeps.ROWS])
def test_executors_read_the_state_of_windowings_as_the_driver_does(what):
    kept = PIPELINE._with(accumulations={"n": Collect("ts")})
    ((bound, (store,)),) = stages_after(kept.flow.completed, TestStream().add([{"ts": 5}]).events)
    answer = bound.operator.answer(Asked(what))
    sent = pickle.loads(pickle.dumps(answer))
    assert sent.read(store).equals(answer.read(store))
    assert answer.read(store)["windowing"].to_pylist() == ["long", "short"]
    assert [entry.partition("/")[0] for entry in sent.needs(store)] == ["long", "short"]

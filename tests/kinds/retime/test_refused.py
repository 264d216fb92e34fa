"""The event time of a later stage: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count, Max, Min
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.refused import PLAIN, ROW, cases, refused

AT = bm.BoundedOutOfOrderness(0)
TIMES = PLAIN.accumulate(at=Max("ts"), name=Min("name"))


def then(first, column, watermark=AT):
    return first.then(bm.Pipeline().event_time(column, watermark).window(bm.FixedWindows(10)).accumulate(n=Count()))


FINAL = (
    TIMES.trigger(AfterWatermark(late=Always())).allowed_lateness(10).accumulating().suppress(bm.UntilWindowCloses())
)
COMPOSED = {
    "a lag in a later stage": lambda: then(TIMES, "at", bm.ProcessingTimeLag(5)),
    "an idle timeout in a later stage": lambda: then(TIMES, "at", bm.BoundedOutOfOrderness(5, idle_timeout=5)),
    "event time after then": lambda: then(TIMES, "at").event_time("at", AT),
    "windows of panes at another time": lambda: TIMES.then(bm.Pipeline().event_time("at", AT).accumulate(n=Count())),
    "final results at a column without delay": lambda: then(FINAL, "at"),
}
COLUMNS = {
    "a time column that is missing": "ts",
    "a time column of text": "name",
}


@cases(COMPOSED)
def test_an_unsound_time_is_rejected_when_composed(name):
    refused(__file__, name, lambda: COMPOSED[name]().explain())


@cases(COLUMNS)
def test_a_column_without_times_is_rejected(name):
    refused(__file__, name, lambda: then(TIMES, COLUMNS[name]).run(TestStream().add([ROW])))


def test_a_checkpoint_with_another_column_or_delay_is_rejected():
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("name", pa.string())])}

    def opened(chain, store):
        return chain.flow.inputs[0].flow.bind(columns, shards=1).operator.open(store)

    store = DictStore()
    opened(then(TIMES, "at"), store).step([None], None, [])
    refused(__file__, "another column", lambda: opened(then(TIMES.accumulate(to=Max("ts")), "to"), store))
    refused(__file__, "another delay", lambda: opened(then(TIMES, "at", bm.BoundedOutOfOrderness(5)), store))


def test_a_checkpoint_with_another_condition_on_retracted_rows_is_rejected():
    """Also where the stage after it has no condition of its own, as a table."""
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("name", pa.string())])}
    first = TIMES.trigger(AfterWatermark(late=Always())).allowed_lateness(10).accumulating_and_retracting()

    def opened(name, store):
        rows = bm.Pipeline().event_time("at", AT).where(pc.field("name") == name)
        chain = first.then(rows.key_by("team").versions(10))
        return chain.flow.inputs[0].flow.bind(columns, shards=1).operator.open(store)

    store = DictStore()
    opened("a", store).step([None], None, [])
    opened("a", store)
    refused(__file__, "another condition", lambda: opened("b", store))

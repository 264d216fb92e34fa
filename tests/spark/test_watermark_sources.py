"""Where a shard has its inputs' watermarks from, and when tasks must report them; without Spark."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.fusion.groups import APART
from beamish.spark.compile.stream import has_querys_watermark, needs_reports
from beamish.spark.operator.processor import FromQuery, FromReports


def test_the_querys_watermark_is_that_of_every_input_but_of_those_that_follow_the_clock():
    assert FromQuery((True, True)).sources_us(DictStore(), 5, {}) == [5_000, 5_000]
    assert FromQuery((True,)).sources_us(DictStore(), 0, {}) == [None]
    assert FromQuery((False,)).sources_us(DictStore(), 5, {}) == [None]


def test_source_reports_apply_in_the_next_batch_and_stage_reports_at_once():
    store = DictStore()
    assert FromReports((False, True)).sources_us(store, 0, {0: 5_999, 1: 7_001}) == [None, 7_001]
    again = FromReports((False, True))  # a restart
    assert again.sources_us(store, 0, {}) == [5_000, None]  # as Spark's own, in whole milliseconds
    assert again.sources_us(store, 0, {}) == [None, None]  # no news


def source(**options):
    return bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0, **options)).key_by("team")


def stage(**options):
    return source(**options).window(bm.FixedWindows(10)).accumulate(n=Count())


LATER = bm.Pipeline().accumulate(stages=Count())


@pytest.mark.parametrize(
    ("pipeline", "reports"),
    [
        (stage(), False),
        (stage(idle_timeout=1), False),
        (stage().then(LATER), False),
        (stage(idle_timeout=1).then(LATER), True),
        (bm.merge(a=source(), b=source()).window(bm.FixedWindows(10)).accumulate(n=Count()), False),
        (bm.merge(a=source(), b=source(idle_timeout=1)).window(bm.FixedWindows(10)).accumulate(n=Count()), True),
        (bm.merge(a=stage(), b=stage()).accumulate(n=Count()), True),
        (bm.merge(a=stage(), b=source()).window(bm.FixedWindows(10)).accumulate(n=Count()), True),
    ],
    ids=[
        "one stage",
        "one stage, idle",
        "a chain",
        "a chain, idle",
        "a merge",
        "a merge, idle",
        "a merge of stages",
        "a merge of a stage and a source",
    ],
)
def test_tasks_report_where_the_querys_watermark_is_not_that_of_every_stage(pipeline, reports):
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("team", pa.string())])
    flow = pipeline.flow.bind({source.name: schema for source in pipeline.flow.sources}, shards=2)
    assert needs_reports(APART.grouped(flow)) == reports


@pytest.mark.parametrize(
    ("pipeline", "has"),
    [
        (stage(), True),
        (stage().watermark_per_key(0, at_most=5), False),
        (source().fill_gaps(10, by="last", within=60), False),
    ],
    ids=["windows", "a watermark per key", "gaps"],
)
def test_panes_may_be_behind_the_querys_watermark_where_the_stage_forwards_an_earlier_one(pipeline, has):
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("team", pa.string())])
    assert has_querys_watermark(APART.grouped(pipeline.flow.completed.bind({None: schema}, shards=2))) == has

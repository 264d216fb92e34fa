"""A column's type may be widened between two runs: the output equals that of the wide column alone (docs/upgrading.md)."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
import pytest

import beamish as bm
from beamish import accumulations as a
from beamish import triggers as t
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.relation import Relation
from beamish.contract.stored import TAKES, DictStore, note_takes, widest
from beamish.kernels.type_names import same_or_wider, widens
from beamish.script import as_step, script_rows
from beamish.stage_facts import stage_facts
from beamish.tables.older import _column, _texts
from beamish.testing import TestStream
from tests.upgrades.carried import Run, carried, line
from tests.upgrades.rows import BARE, PLAIN, rows_of

pytestmark = pytest.mark.dear

EVERY = {
    "sum": a.Sum("v"),
    "mean": a.Mean("v"),
    "least": a.Min("v"),
    "variance": a.Variance("v"),
    "first": a.First("v"),
    "last": a.Last("w"),
    "all": a.Collect("v"),
    "set": a.CollectSet("v"),
    "distinct": a.CountDistinct("v"),
    "about": a.ApproxCountDistinct("v"),
    "top": a.TopN(2, "v"),
    "by_key": a.TopNByKey(2, "v", "w"),
    "median": a.Median("v"),
    "greatest": a.Reduce(max, "v"),
    "most": a.MaxBy("v", "w"),
    "kept": a.Fold(0, max, "v", merge=max, result_type="bigint"),
}
EAGER = BARE.trigger(t.AfterWatermark(early=t.AfterCount(1), late=t.AfterCount(1)))
PIPELINE = EAGER.accumulate(**EVERY)
SCRIPT = (
    TestStream()
    .add(rows_of((1, 7, 1), (2, 8, 2)))
    .add(rows_of((3, 7, 1), (4, 8, 9), (5, 7, 3)))
    .advance_watermark_to(10)
    .add(rows_of((6, 7, 4), (12, 8, 1)))
    .add(rows_of((7, 7, 1), (13, 8, 1), (8, 9, 5)))
    .advance_watermark_to(12)
    .add(rows_of((14, 7, 1), (15, 8, 12)))
    .advance_watermark_to(50)
)
DECIMAL, WIDER = pa.decimal128(21, 2), pa.decimal128(30, 2)


def schema(pipeline, key, value):
    before = script_rows(pipeline.flow, SCRIPT.events).schemas[None]
    types = {"k": key, "v": value, "w": value}
    return pa.schema([(field.name, types.get(field.name, field.type)) for field in before])


def typed(table, of):
    """The rows with the types of a schema."""
    columns = [
        table[name].cast(of.field(name).type) if name in of.names else table[name] for name in table.schema.names
    ]
    return pa.table(columns, names=table.schema.names)


def run(pipeline, then, now, cut):
    """The output, with columns of another type after this many events."""
    tables = iter(script_rows(pipeline.flow, SCRIPT.events).tables[None])
    runs, out = Run(pipeline, {None: then}), []
    for number, event in enumerate(SCRIPT.events):
        if number == cut:
            runs = Run(pipeline, {None: now}, runs.stores)
        of = then if number < cut else now
        rows = None
        if as_step(event).rows:
            rows = typed(next(tables), of)
        out += runs.step(event, rows)
    return out


@pytest.mark.parametrize("mode", [*bm.AccumulationMode])
@pytest.mark.parametrize(
    ("key", "value"),
    [((pa.int32(), pa.int64()), (pa.int8(), pa.int64())), ((DECIMAL, WIDER), (DECIMAL, WIDER))],
    ids=["whole numbers", "decimals"],
)
def test_a_run_with_widened_columns_equals_wide_columns_from_the_start(mode, key, value):
    pipeline = PIPELINE.accumulation_mode(mode)
    then, now = (schema(pipeline, key[at], value[at]) for at in (0, 1))
    whole = run(pipeline, now, now, len(SCRIPT.events))
    assert whole
    for cut in (1, 3, 5, 6):
        assert run(pipeline, then, now, cut) == whole


_KEEPING = EAGER.accumulate(n=a.Count(), total=a.Sum("v"), all=a.Collect("w"))
_OF_ROWS = _KEEPING.allowed_lateness(0)
KEEPING = {
    "retain": _KEEPING.retain(windows=1),
    "retain rows": _KEEPING.retain(rows=3),
    "deduplicate": _KEEPING.deduplicate("v"),
    "deduplicate within": _KEEPING.deduplicate("v", "w", within="60 seconds"),
    "rows": _OF_ROWS.window(bm.CountWindows(3)),
    "rows of the stream": _OF_ROWS.window(bm.CountWindows(3, 1, over="stream")),
    "rows retained": _OF_ROWS.window(bm.CountWindows(2, 1)).allowed_lateness(rows=9).retain(windows=1),
}
"""Pipelines with state beside the windows, or in them, by keys or other columns."""


@pytest.mark.parametrize("pipeline", KEEPING.values(), ids=KEEPING)
@pytest.mark.parametrize(
    ("then", "now"), [(pa.int32(), pa.int64()), (DECIMAL, WIDER)], ids=["whole numbers", "decimals"]
)
def test_state_besides_windows_is_read_as_the_wider_type(pipeline, then, now):
    then, now = (schema(pipeline, of, of) for of in (then, now))
    whole = run(pipeline, now, now, len(SCRIPT.events))
    assert whole
    for cut in (1, 3, 5):
        assert run(pipeline, then, now, cut) == whole


@pytest.mark.parametrize("pipeline", [PIPELINE, *KEEPING.values()], ids=["windows", *KEEPING])
def test_wider_columns_are_rescaled(pipeline):
    narrow, wide = (dict.fromkeys("kvw", type_) for type_ in (pa.int32(), pa.int64()))
    whole, both = (
        [*chain(*carried(pipeline, pipeline, SCRIPT, 3, (2, shards), types=(then, wide)))]
        for shards, then in ((2, wide), (3, narrow))
    )
    assert sorted(map(line, both)) == sorted(map(line, whole))


def test_sessions_keep_retractions_across_widening():
    pipeline = PIPELINE.window(bm.Sessions(3)).accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE)
    then, now = schema(pipeline, pa.int16(), pa.int32()), schema(pipeline, pa.int64(), pa.int64())
    whole = run(pipeline, now, now, len(SCRIPT.events))
    for cut in (1, 2, 4):
        assert run(pipeline, then, now, cut) == whole


@pytest.mark.parametrize(
    ("pipeline", "key", "value"),
    [
        (PLAIN, (pa.int64(), pa.int32()), (pa.int32(), pa.int32())),
        (PLAIN, (pa.int32(), pa.int32()), (pa.int64(), pa.int32())),
        (PLAIN, (pa.int32(), pa.int32()), (DECIMAL, pa.decimal128(30, 3))),
        (PLAIN, (pa.int32(), pa.int32()), (pa.int32(), pa.float64())),
        (PLAIN.retain(bytes=99), (pa.int32(), pa.int64()), (pa.int32(), pa.int32())),
        (PLAIN.deduplicate("v", within="60 seconds"), (pa.int32(), pa.int32()), (pa.int64(), pa.int32())),
        (PLAIN.suppress(bm.UntilTimeLimit(15, clock="event")), (pa.int32(), pa.int32()), (pa.int32(), pa.int64())),
    ],
    ids=["narrower key", "narrower", "another scale", "a fraction", "kept by bytes", "known again", "suppressed"],
)
def test_incompatible_types_are_rejected(pipeline, key, value):
    then, now = (schema(pipeline, key[at], value[at]) for at in (0, 1))
    with pytest.raises(bm.StateError, match=r"written with (keys|accumulation|deduplication)"):
        run(pipeline, then, now, 3)


def test_which_types_are_wider():
    assert widens("int8", "int16")
    assert widens("int32", "int64")
    assert widens("decimal128(10, 2)", "decimal128(11, 2)")
    for then, now in (
        ("int64", "int32"),
        ("int64", "int64"),
        ("int32", "decimal128(10, 0)"),
        ("decimal128(10, 2)", "decimal128(12, 3)"),
        ("decimal128(10, 2)", "decimal128(9, 2)"),
        ("float", "double"),
    ):
        assert not widens(then, now)
    assert same_or_wider([["a", "int8"], ["b", "string"]], [["a", "int16"], ["b", "string"]])
    assert not same_or_wider([["a", "int8"]], [["b", "int16"]])
    assert not same_or_wider([["a", "int8"]], [["a", "int16"], ["b", "int8"]])
    assert same_or_wider([[None, "int8"]], [[None, "int16"]])


def test_columns_are_told_apart_also_beside_types_with_commas():
    text = "user id int64, s struct<x: int8, y: int8>, t timestamp[us, tz=UTC], d decimal128(10, 2)"
    assert [_column(one, " ") for one in _texts(f"deduplicate(...) of {text}")] == [
        ["user id", "int64"],
        ["s", "struct<x: int8, y: int8>"],
        ["t", "timestamp[us, tz=UTC]"],
        ["d", "decimal128(10, 2)"],
    ]
    assert _column("a: b: list<item: int8>", ": ") == ["a: b", "list<item: int8>"]
    assert _column("struct<ts: int64, s: string>", " ") == [None, "struct<ts: int64, s: string>"]


def test_the_widest_stored_schema_is_used():
    store = DictStore()

    def noted(**types):
        note_takes(store, [Relation(event_time="ts", schema=pa.schema(types))])
        return store[TAKES]

    narrow, wide = noted(a=pa.int32(), b=pa.string()), noted(a=pa.int64(), b=pa.string())
    more, other = noted(c=pa.int8(), b=pa.string(), a=pa.int64()), noted(z=pa.string())
    for stored, expected in (([narrow, wide], wide), ([wide, narrow, narrow], wide), ([wide, more, narrow], more)):
        assert widest(stored) == widest([expected])
    assert widest([narrow, other]) == widest([narrow])
    assert widest([]) is None


@pytest.mark.parametrize("wide_first", [False, True])
def test_shards_that_were_not_called_since_are_read_as_wide_too(wide_first):
    pipeline = EAGER.accumulate(total=a.Sum("v"), all=a.Collect("v"))
    then, now = schema(pipeline, pa.int32(), pa.int32()), schema(pipeline, pa.int64(), pa.int64())
    script = TestStream().add(rows_of(*((1, key, key) for key in range(9))))
    (event,), (rows,) = script.events, script_rows(pipeline.flow, script.events).tables[None]
    before = Run(pipeline, {None: then})
    before.step(event, typed(rows, then))
    narrow = [DictStore(store) for store in before.stores[0]]
    after = Run(pipeline, {None: now}, before.stores)
    after.step(event, typed(rows, now))
    wide = after.stores[0]
    both = {0: narrow[0], 1: wide[1]}
    notes = dict(reversed(both.items())) if wide_first else both
    facts = stage_facts(notes)
    assert len(facts.unknown) == 1, "but for the description, which is Spark's to keep"
    read = [facts.asked(Asked(Keeps.WINDOWS)).read(store) for store in notes.values()]
    assert all(table.num_rows and table.schema.field("key").type == pa.struct({"k": pa.int64()}) for table in read)
    assert all(table["values"].to_pylist()[0]["all"] for table in read)
    at_rest = pipeline.flow.stage.at_rest(pipeline.flow.takes, list(notes.values()), Keeps.WINDOWS, shards=2)
    assert at_rest.slots.keys.types == [pa.int64()]

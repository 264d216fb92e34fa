"""User functions may return the same object each time: windows do not share state."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import beamish as bm
from beamish import DropReason, PipelineError
from beamish.accumulations import Accumulation, Collect, Count, Fold, Reduce
from beamish.testing import TestStream
from beamish.triggers import Always, Trigger

ROWS = [{"ts": 1, "k": "a", "x": 1}, {"ts": 2, "k": "b", "x": 2}, {"ts": 11, "k": "a", "x": 3}]
BY_KEY = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").window(bm.FixedWindows(10))
SHARED: dict[str, Any] = {"list": [], "in a tuple": (0, []), "in a dict": {"seen": []}, "set": set()}


def seen(accumulator: Any) -> Any:
    """The list or set in one of ``SHARED``."""
    parts = (
        accumulator.values() if isinstance(accumulator, dict) else accumulator if isinstance(accumulator, tuple) else ()
    )
    return next((part for part in parts if isinstance(part, list)), accumulator)


class Sketch(list[int]):
    """An accumulator that is an object."""


@attrs.frozen
class Seen(Accumulation):
    """The values of a column, in accumulators that are all begun with the same one."""

    begun: Any = attrs.field(eq=False)
    column: str = "x"
    result_type = "array<bigint>"

    def identity(self):
        return "seen"

    def create(self):
        return self.begun

    def add(self, accumulator, value):
        into = seen(accumulator)
        into.add(value) if isinstance(into, set) else into.append(value)
        return accumulator

    def merge(self, a, b):
        into = seen(a)
        into.update(seen(b)) if isinstance(into, set) else into.extend(seen(b))
        return a

    def extract(self, accumulator):
        return sorted(seen(accumulator))

    def dump(self, accumulator):
        return list(accumulator) if isinstance(accumulator, Sketch) else accumulator

    def load(self, dumped):
        return Sketch(dumped) if isinstance(self.begun, Sketch) else dumped


class Anew(Seen):
    """The same, with an object of its own for each window."""

    def create(self):
        return Sketch(self.begun)


def values(accumulation: Accumulation, window: bm.WindowOption | None = None) -> list[tuple[str, Any]]:
    pipeline = BY_KEY if window is None else BY_KEY.window(window)
    panes = pipeline.accumulate(v=accumulation).run(TestStream().add(ROWS).advance_watermark_to_infinity())
    return sorted((pane.key["k"], pane.values["v"]) for pane in panes)


@pytest.mark.parametrize("begun", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("window", [bm.FixedWindows(10), bm.Sessions(5)], ids=repr)
def test_a_value_that_create_shares_is_copied(begun, window):
    assert values(Seen(begun), window) == [("a", [1]), ("a", [3]), ("b", [2])]
    assert not seen(begun)


@pytest.mark.parametrize("wrap", [lambda sketch: sketch, lambda sketch: (1, [sketch])], ids=["itself", "in a tuple"])
def test_an_object_that_create_shares_is_refused(wrap):
    pipeline = BY_KEY.accumulate(v=Seen(wrap(Sketch())))
    for call in (
        pipeline.explain,
        lambda: pipeline.run(TestStream()),
        lambda: pipeline.then(bm.Pipeline().accumulate(n=Count())),
    ):
        with pytest.raises(PipelineError, match=r"the same Sketch each time.*return a new one from create"):
            call()


def test_new_and_immutable_objects_are_accepted():
    assert values(Anew(Sketch())) == [("a", [1]), ("a", [3]), ("b", [2])]
    for constant in (None, "text", 5, frozenset([1]), bm.Sessions(3), object(), bm.DropReason.EXPIRED, (1, "a")):
        BY_KEY.accumulate(v=Seen(constant)).explain()


def test_fold_keeps_its_initial_value_as_it_was_given():
    initial: list[int] = []
    fold = Fold(initial, lambda seen, x: [*seen, x], "x", result_type="array<bigint>")
    initial.append(99)
    assert values(fold) == [("a", [1]), ("a", [3]), ("b", [2])]


SCRATCH: list[int] = []


def scratch(*parts: int) -> list[int]:
    SCRATCH[:] = parts
    return SCRATCH


class Scratch(Anew):
    def extract(self, accumulator):
        return scratch(*accumulator)


def test_a_result_that_is_the_same_list_each_time_is_that_of_its_window():
    assert values(Scratch(Sketch())) == [("a", [1]), ("a", [3]), ("b", [2])]
    lists = [{"ts": ts, "k": k, "x": [x]} for ts, k, x in ((1, "a", 1), (2, "a", 2), (3, "b", 5), (4, "b", 6))]
    pipeline = BY_KEY.accumulate(v=Reduce(lambda a, b: scratch(*a, *b), "x"))
    panes = pipeline.run(TestStream().add(lists).advance_watermark_to_infinity())
    assert [pane.values["v"] for pane in panes] == [[1, 2], [5, 6]]


@attrs.frozen
class AtThree(Trigger):
    """A user's trigger, which changes its state in place; all windows begin with the same one."""

    begun: dict[str, int] = attrs.field(factory=lambda: {"rows": 0}, hash=False)

    def create(self):
        return self.begun

    def on_rows(self, state, count, context):
        state["rows"] += count
        return state

    def should_fire(self, state, context):
        state["asked"] = True
        return state["rows"] >= 3

    def on_fire(self, state, context):
        state["rows"] = 0
        return state, False

    def on_merge(self, states, context):
        states[0]["rows"] = sum(state["rows"] for state in states)
        return states[0]

    def may_lose_rows(self, allowed_lateness_us):
        return False


def raises_at_13(total: int, x: int) -> int:
    if x == 13:
        raise ValueError("13!")
    return total + x


def test_windows_do_not_share_a_triggers_state():
    pipeline = BY_KEY.trigger(AtThree()).discarding().accumulate(n=Count())
    script = TestStream().add([{"ts": 1, "k": k} for k in "abc"]).add([{"ts": 1, "k": "a"}]).add([{"ts": 1, "k": "a"}])
    assert [(pane.key["k"], pane.values["n"]) for pane in pipeline.run(script)] == [("a", 3)]


def test_retried_rows_are_shown_to_a_trigger_once():
    pipeline = BY_KEY.trigger(AtThree()).discarding().accumulate(n=Fold(0, raises_at_13, "x")).on_error("drop")
    script = TestStream().add([{"ts": 1, "k": "a", "x": x} for x in (1, 13)]).add([{"ts": 1, "k": "a", "x": 1}])
    assert [pane.reason for pane in pipeline.run(script)] == [DropReason.ERROR]


def test_rows_in_several_windows_are_each_windows_own():
    pipeline = BY_KEY.window(bm.SlidingWindows(20, 10)).trigger(Always()).accumulating()
    pipeline = pipeline.accumulate(
        v=Fold([], lambda kept, row: [*kept, row.pop("x")], result_type="array<bigint>"), w=Collect("x")
    )
    panes = pipeline.run(TestStream().add(ROWS[:1]).advance_watermark_to_infinity())
    assert {tuple(pane.values["v"]) for pane in panes} == {(1,)}

"""changes(): what is refused, with the value, the rule and the fix."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.testing import TestStream
from tests.kinds.suppress.test_suppress import CHANGES, CLOSES, EVENT, NEXT, SOURCE, TOTALS, at, row
from tests.refused import refused

OPTIONS = {
    "a column that is none": (lambda: SOURCE.changes(window=5), ["window=5", "name of a column"]),
}


@pytest.mark.parametrize(("make", "words"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_breaks_its_rule_is_refused_when_it_is_made(make, words):
    refused(bm.OptionError, make, words)


PIPELINES = {
    "changes without keys": (
        lambda: bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).changes().suppress(EVENT),
        ["key_by"],
    ),
    "changes without event time": (lambda: bm.Pipeline().key_by("k").changes(), ["no event time"]),
    "changes of a pipeline that says more": (TOTALS.changes, ["event_time and key_by only"]),
    "changes until windows close, without window": (lambda: SOURCE.changes().suppress(CLOSES), ["window='window'"]),
    "changes until windows close, without grace": (lambda: CHANGES.suppress(CLOSES), ["grace='10 minutes'"]),
    "changes alone": (lambda: CHANGES.run(TestStream().add([row("a", 1, 1)])), ["suppress"]),
    "a stage after changes": (lambda: CHANGES.suppress(EVENT).then(NEXT), ["GlobalWindow", "Last"]),
    "windows after changes": (lambda: CHANGES.window(bm.FixedWindows(5)), ["has no windows"]),
}


@pytest.mark.parametrize(("make", "words"), PIPELINES.values(), ids=PIPELINES)
def test_incompatible_suppress_options_are_rejected_when_composed(make, words):
    refused(bm.PipelineError, make, words)


COLUMNS = {
    "deleted is no boolean": ({"gone": "yes"}, ["'gone'", "boolean"]),
    "window is no struct": ({"window": 5}, ["'window'", "struct of two timestamps"]),
    "a column that the output has": ({"pane": 5}, ["'pane'", "rename"]),
}


@pytest.mark.parametrize(("more", "words"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_of_the_wrong_type_or_name_is_refused(more, words):
    rows = [{"gone": False, "seq": 1, "window": {"start": at(0), "end": at(9)}, **row("a", 1, 1), **more}]
    refused(bm.ColumnError, lambda: CHANGES.suppress(EVENT).run(TestStream().add(rows)), words)

"""changes(): what is refused, with the value, the rule and the fix."""

from __future__ import annotations

import beamish as bm
from beamish.testing import TestStream
from tests.kinds.suppress.totals import CHANGES, CLOSES, EVENT, NEXT, SOURCE, TOTALS, at, row
from tests.refused import cases, refused

OPTIONS = {
    "a column name that is a number": lambda: SOURCE.changes(window=5),
}


@cases(OPTIONS)
def test_an_option_that_breaks_its_rule_is_refused_when_it_is_made(name):
    refused(__file__, name, OPTIONS[name])


PIPELINES = {
    "changes without keys": lambda: (
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).changes().suppress(EVENT)
    ),
    "changes without event time": lambda: bm.Pipeline().key_by("k").changes(),
    "changes of a pipeline that says more": TOTALS.changes,
    "changes until windows close, without window": lambda: SOURCE.changes().suppress(CLOSES),
    "changes until windows close, without grace": lambda: CHANGES.suppress(CLOSES),
    "changes alone": lambda: CHANGES.run(TestStream().add([row("a", 1, 1)])),
    "a stage after changes": lambda: CHANGES.suppress(EVENT).then(NEXT),
    "windows after changes": lambda: CHANGES.window(bm.FixedWindows(5)),
}


@cases(PIPELINES)
def test_incompatible_suppress_options_are_rejected_when_composed(name):
    refused(__file__, name, PIPELINES[name])


COLUMNS = {
    "deleted is no boolean": {"gone": "yes"},
    "window is no struct": {"window": 5},
    "a column that the output has": {"pane": 5},
}


@cases(COLUMNS)
def test_a_column_of_the_wrong_type_or_name_is_refused(name):
    rows = [{"gone": False, "seq": 1, "window": {"start": at(0), "end": at(9)}, **row("a", 1, 1), **COLUMNS[name]}]
    refused(__file__, name, lambda: CHANGES.suppress(EVENT).run(TestStream().add(rows)))

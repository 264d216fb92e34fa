"""Panes as input: what is refused."""

import beamish as bm
from tests.refused import cases, refused

# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("live as of noon", lambda: bm.live([], as_of="noon"), ["live(as_of)='noon'", "seconds"]),
]


# The error, what is written, and what the message must hold.
REFUSED = [
    ("panes of a list", bm.ColumnError, lambda: bm.panes([1]), ["panes([1])", "must be a DataFrame"]),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)

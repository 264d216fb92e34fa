"""Panes as input: what is refused."""

import beamish as bm
from tests.refused import cases, refused

# What is written, and what the message must hold: value, rule, fix.
AT_ONCE = [
    ("live as of noon", lambda: bm.live([], as_of="noon"), ["live(as_of)='noon'", "seconds"]),
]


# The error, what is written, and what the message must hold.
REFUSED = [
    ("panes of a list", bm.ColumnError, lambda: bm.panes([1]), ["panes([1])", "must be a DataFrame"]),
]


@cases(AT_ONCE, "call", "fragments")
def test_a_wrong_option_is_refused_where_it_is_written(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@cases(REFUSED, "error", "call", "fragments")
def test_what_cannot_be_is_refused(error, call, fragments):
    refused(error, call, fragments)

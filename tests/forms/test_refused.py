"""Panes as input: what is refused."""

import beamish as bm
from tests.refused import cases, refused

AT_ONCE = {
    "live as of noon": lambda: bm.live([], as_of="noon"),
}


REFUSED = {
    "panes of a list": lambda: bm.panes([1]),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])

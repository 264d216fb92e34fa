"""bm.VersionedTable: what is refused, with the value, the rule and the fix; nothing has changed then."""

from datetime import datetime

import numpy as np

import beamish as bm
from beamish.instants import EPOCH
from tests.refused import cases, refused

TABLE = bm.VersionedTable("1 hour")


REFUSED = {
    "negative history": lambda: bm.VersionedTable(-1),
    "no history": lambda: bm.VersionedTable(None),
    "negative lateness of a table": lambda: bm.VersionedTable(1, allowed_lateness="-1 second"),
    "segment 0": lambda: bm.VersionedTable(1, segment=0),
    "path 3": lambda: bm.VersionedTable(1, path=3),
    "path of bytes": lambda: bm.VersionedTable(1, path=b"x"),
    "empty path": lambda: bm.VersionedTable(1, path=""),
    "path :memory:": lambda: bm.VersionedTable(1, path=":memory:"),
    "null key put": lambda: TABLE.put(None, 1, 1),
    "null key deleted": lambda: TABLE.delete(None, 1),
    "null key asked for": lambda: TABLE.get(None),
    "versions of a null key": lambda: TABLE.versions(None),
    "null key loaded": lambda: TABLE.load([(None, 1, 1)]),
    "key is a list": lambda: TABLE.get([1]),
    "key holds a dict": lambda: TABLE.put((1, {}), 1, 1),
    "key of numpy": lambda: TABLE.get(np.longdouble(1)),
    "value 1j": lambda: TABLE.put("a", [1j], 1),
    "no time": lambda: TABLE.put("a", 1, None),
    "time is True": lambda: TABLE.put("a", 1, ts=True),
    "naive time of a change": lambda: TABLE.delete("a", datetime(2024, 1, 1)),  # noqa: DTZ001
    "time in milliseconds": lambda: TABLE.get("a", 1.7e12),
    "time of no length": lambda: TABLE.get("a", 10**400),
    "since nan": lambda: TABLE.versions("a", float("nan")),
    "until text": lambda: TABLE.versions("a", until="noon"),
    "since after until": lambda: TABLE.versions("a", 6, 5),
    "advance to infinity": lambda: TABLE.advance_to(float("inf")),
    "whole table at noon": lambda: TABLE.to_arrow("noon"),
    "load 3": lambda: TABLE.load(3),
    "load pairs": lambda: TABLE.load([("a", 1, 1), ("a", 1)]),
    "load numbers": lambda: TABLE.load([3]),
    "Version(None)": lambda: bm.Version(None, EPOCH, None),
}


@cases(REFUSED)
def test_invalid_writes_to_a_table_change_nothing(name):
    refused(__file__, name, REFUSED[name])
    assert (TABLE.stream_time, TABLE.dropped, TABLE.to_arrow().num_rows) == (None, 0, 0)


def test_a_whole_table_before_oldest_is_refused():
    with bm.VersionedTable("1 minute") as table:
        table.put("a", 1, 100)
        refused(__file__, "a whole table before oldest", lambda: table.to_arrow(39.5))


def test_a_table_with_more_lateness_than_history_is_rejected():
    refused(
        __file__,
        "a table with more lateness than history",
        lambda: bm.VersionedTable("1 minute", allowed_lateness="2 minutes"),
    )

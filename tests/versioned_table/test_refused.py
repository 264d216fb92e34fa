"""bm.VersionedTable: what is refused, with the value, the rule and the fix; nothing has changed then."""

from datetime import datetime

import numpy as np

import beamish as bm
from beamish.instants import EPOCH
from tests.refused import cases, refused

TABLE = bm.VersionedTable("1 hour")


REFUSED = [
    ("negative history", lambda: bm.VersionedTable(-1), ["VersionedTable(history)=-1", "not be negative"]),
    ("no history", lambda: bm.VersionedTable(None), ["VersionedTable(history)=None", "'10 minutes'"]),
    (
        "negative lateness of a table",
        lambda: bm.VersionedTable(1, allowed_lateness="-1 second"),
        ["VersionedTable(allowed_lateness)='-1 second'", "not be negative"],
    ),
    ("segment 0", lambda: bm.VersionedTable(1, segment=0), ["VersionedTable(segment)=0", "above 0"]),
    ("path 3", lambda: bm.VersionedTable(1, path=3), ["VersionedTable(path=3)", "path of a file", "leave it out"]),
    ("path of bytes", lambda: bm.VersionedTable(1, path=b"x"), ["VersionedTable(path=b'x')", "path of a file"]),
    ("empty path", lambda: bm.VersionedTable(1, path=""), ["VersionedTable(path='')", "leave it out"]),
    ("path :memory:", lambda: bm.VersionedTable(1, path=":memory:"), ["path=':memory:'", "leave it out"]),
    ("null key put", lambda: TABLE.put(None, 1, 1), ["put(key=None)", "must not be None", "leave such rows out"]),
    ("null key deleted", lambda: TABLE.delete(None, 1), ["delete(key=None)", "must not be None"]),
    ("null key asked for", lambda: TABLE.get(None), ["get(key=None)", "must not be None"]),
    ("versions of a null key", lambda: TABLE.versions(None), ["versions(key=None)", "must not be None"]),
    (
        "null key loaded",
        lambda: TABLE.load([(None, 1, 1)]),
        ["load(changes): #0: load(key=None)", "leave such rows out"],
    ),
    ("key is a list", lambda: TABLE.get([1]), ["get(key=[1])", "a builtins.list", "tuples and frozensets"]),
    ("key holds a dict", lambda: TABLE.put((1, {}), 1, 1), ["put(key=(1, {}))", "a builtins.dict", "convert it"]),
    ("key of numpy", lambda: TABLE.get(np.longdouble(1)), ["get(key=", "numpy.longdouble", "convert it"]),
    ("value 1j", lambda: TABLE.put("a", [1j], 1), ["put(value)", "a builtins.complex (1j)", "a value is None, bool"]),
    ("no time", lambda: TABLE.put("a", 1, None), ["put(ts)=None", "seconds since the epoch or an aware datetime"]),
    ("time is True", lambda: TABLE.put("a", 1, ts=True), ["put(ts)=True", "seconds since the epoch"]),
    ("naive time of a change", lambda: TABLE.delete("a", datetime(2024, 1, 1)), ["delete(ts)=", "tzinfo=UTC"]),  # noqa: DTZ001
    (
        "time in milliseconds",
        lambda: TABLE.get("a", 1.7e12),
        ["get(as_of)=1700000000000.0", "years 1 to 9999", "seconds"],
    ),
    ("time of no length", lambda: TABLE.get("a", 10**400), ["get(as_of)=1000", "292,000 years"]),
    ("since nan", lambda: TABLE.versions("a", float("nan")), ["versions(since)=nan", "seconds since the epoch"]),
    ("until text", lambda: TABLE.versions("a", until="noon"), ["versions(until)='noon'", "seconds since the epoch"]),
    (
        "since after until",
        lambda: TABLE.versions("a", 6, 5),
        ["versions(since=6, until=5)", "must not be after", "swap"],
    ),
    ("advance to infinity", lambda: TABLE.advance_to(float("inf")), ["advance_to(ts)=inf", "seconds since the epoch"]),
    ("whole table at noon", lambda: TABLE.to_arrow("noon"), ["to_arrow(as_of)='noon'", "seconds since the epoch"]),
    ("load 3", lambda: TABLE.load(3), ["load(changes=3)", "triples (key, value, ts)"]),
    ("load pairs", lambda: TABLE.load([("a", 1, 1), ("a", 1)]), ["#1 is ('a', 1)", "triple (key, value, ts)"]),
    ("load numbers", lambda: TABLE.load([3]), ["#0 is 3", "triple (key, value, ts)"]),
    (
        "Version(None)",
        lambda: bm.Version(None, EPOCH, None),
        ["Version(value=None)", "has a value", "get() returns None"],
    ),
]


@cases(REFUSED, "call", "fragments")
def test_invalid_writes_to_a_table_change_nothing(call, fragments):
    refused(bm.OptionError, call, fragments)
    assert (TABLE.stream_time, TABLE.dropped, TABLE.to_arrow().num_rows) == (None, 0, 0)


def test_a_whole_table_before_oldest_is_refused():
    with bm.VersionedTable("1 minute") as table:
        table.put("a", 1, 100)
        refused(
            bm.OptionError,
            lambda: table.to_arrow(39.5),
            ["to_arrow(as_of=39.5)", "before oldest, 1970-01-01T00:00:40+00:00", "use that time or a later one"],
        )


def test_a_table_with_more_lateness_than_history_is_rejected():
    refused(
        bm.PipelineError,
        lambda: bm.VersionedTable("1 minute", allowed_lateness="2 minutes"),
        ["VersionedTable(allowed_lateness='2 minutes')", "above history '1 minute'", "give a longer history"],
    )

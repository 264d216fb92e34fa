"""Public calls that read a checkpoint, each in a process whose session has run no query: ``python -m tests.versions.fresh FOLDER [CALL]``.

Without CALL it runs the queries whose checkpoints are read, and prints the names of the calls. The test session hides what a session
creates with its first query, so tools/versions.py starts one process per call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import beamish as bm
from beamish.__main__ import main as command_line
from beamish.accumulations import Collect, Count
from beamish.triggers import Always
from tests.conftest import start_spark

NOW = bm.BoundedOutOfOrderness(0)
EVENTS = bm.Pipeline().event_time("ts", NOW)
PLAYS = EVENTS.key_by("team")
WINDOWS = (
    PLAYS.window(bm.FixedWindows(60))
    .trigger(Always())
    .accumulating()
    .accumulate(n=Count(), scores=Collect("score"))
    .suppress(bm.UntilWindowCloses())
)
JOIN = bm.as_of_join(plays=EVENTS, teams=PLAYS.versions("1 day", values=["score"]), on=["team"])
ROWS = [{"ts": 5, "team": "red", "score": 1}, {"ts": 6, "team": "red", "score": 2}]


def rows(spark: Any, folder: Path) -> Any:
    """The source of every query."""
    source = spark.readStream.schema("ts long, team string, score long").json(str(folder / "rows"))
    return source.selectExpr("timestamp_seconds(ts) ts", "team", "score")


def write(folder: Path) -> None:
    """Run the queries."""
    spark = start_spark()
    (folder / "rows").mkdir(parents=True)
    (folder / "rows" / "0.json").write_text("\n".join(map(json.dumps, ROWS)))
    plays = rows(spark, folder)
    for name, panes in (("windows", WINDOWS.apply(plays)), ("join", JOIN.apply(plays=plays, teams=plays))):
        query = panes.writeStream.format("noop").option("checkpointLocation", str(folder / name))
        query.trigger(availableNow=True).start().awaitTermination()


def inspect(folder: Path) -> None:
    found = bm.inspect(start_spark(), folder / "windows")
    assert "n=2" in found.why(key="red")


def inspect_as_a_program(folder: Path) -> None:
    assert not command_line(["inspect", str(folder / "windows")])


def check_upgrade(folder: Path) -> None:
    spark = start_spark()
    assert bm.check_upgrade(spark, folder / "windows", WINDOWS).ok
    assert bm.check_upgrade(spark, folder / "join", JOIN).ok


def apply(folder: Path) -> None:
    assert WINDOWS.apply(rows(start_spark(), folder), checkpoint=folder / "windows").isStreaming


def migrate(folder: Path) -> None:
    bm.migrate(start_spark(), folder / "windows", folder / "migrated", WINDOWS, shards=3)


def state(folder: Path) -> bm.CheckpointState:
    return WINDOWS.state(start_spark(), folder / "windows")


def windows(folder: Path) -> None:
    (window,) = state(folder).windows().collect()
    assert window.n == 2


def kept_rows(folder: Path) -> None:
    assert state(folder).rows().count() == 2


def held(folder: Path) -> None:
    (one,) = state(folder).held().collect()
    assert one.n == 2


def keys(folder: Path) -> None:
    found = JOIN.state(start_spark(), folder / "join").keys(key="red").collect()
    assert {row.stored for row in found} == {"rows of plays that wait", "versions of teams"}


def replay(folder: Path) -> None:
    spark = start_spark()
    made = bm.replay(spark, folder / "windows", WINDOWS, key="red", input=lambda given: rows(given, folder))
    assert made.batches[0] == 0
    assert "red" in str(made)


def versions(folder: Path) -> None:
    assert JOIN.state(start_spark(), folder / "join").versions().count() == 2


CALLS: dict[str, Callable[[Path], None]] = {
    "inspect": inspect,
    "replay": replay,
    "__main__.main": inspect_as_a_program,
    "check_upgrade": check_upgrade,
    "migrate": migrate,
    "Pipeline.apply": apply,
    "CheckpointState.windows": windows,
    "CheckpointState.rows": kept_rows,
    "CheckpointState.held": held,
    "CheckpointState.keys": keys,
    "CheckpointState.versions": versions,
}
"""By the call's name."""

if __name__ == "__main__":
    place = Path(sys.argv[1])
    if len(sys.argv) > 2:
        CALLS[sys.argv[2]](place)
    else:
        write(place)
        print(*CALLS)

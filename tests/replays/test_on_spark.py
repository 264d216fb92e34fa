"""Replays of real queries: the script of a key gives what the query gave, batch by batch (docs/replay.md)."""

import json
import os
import runpy
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beamish as bm
from beamish import __main__ as program
from beamish.accumulations import Count
from beamish.script import steps_of
from beamish.spark.runtime import session
from beamish.triggers import AfterProcessingTime, AfterWatermark
from tests.replays import replay_app as app

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(app.FOLDER, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(team, second, points=1, user="ann"):
    at = (NOON + timedelta(seconds=second)).isoformat()
    return {"team": team, "user": user, "at": at, "points": points, "secret": "x"}


PLAYS = [
    [play("red", 5, 3), play("blue", 10)],
    [play("red", 100, 4, "bob"), play("blue", 120)],
    [play("red", 50, 5, "cy"), play("blue", 121)],  # joins the two sessions of red
    [play("blue", 1200)],
    [play("red", 30, 6), play("blue", 1201)],  # too late
    [play("red", 1300, 7), play("blue", 1301)],
]


def add_texts(folder, files):
    (folder / "plays").mkdir()
    for number, rows in enumerate(files):
        path = folder / "plays" / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)


def add_tables(folder, name, files):
    (folder / name).mkdir()
    schema = pa.schema([("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int32())])
    for number, rows in enumerate(files):
        path = folder / name / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def run(panes, folder):
    """Run a query over all files; its panes are stored, those of each batch in a folder of its own."""

    def write(batch, number):
        batch.write.mode("overwrite").parquet(f"{folder}/panes/batch={number}")

    query = panes.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()


def panes_of(spark, folder):
    return spark.read.parquet(f"{folder}/panes").drop("batch")


def by_batch(replay):
    """The batches of the steps with rows."""
    steps = zip(replay.batches, replay.script.events, strict=True)
    return [batch for batch, event in steps if any(part.rows for part in steps_of(event))]


def test_a_replay_of_sessions_is_the_query_and_shows_an_upgrade(spark, folder, monkeypatch, capsys):
    add_texts(folder, PLAYS)
    run(app.scores.apply(app.events(spark)), folder)
    stored = panes_of(spark, folder)
    made = bm.replay(spark, folder / "checkpoint", app.scores, key="red", input=app.events, panes=stored)
    kinds = [(pane.kind.value, pane.values.get("total")) for pane in made.panes]
    # on time; the late row merges two sessions, which retracts; then a dropped row
    assert kinds == [("PANE", 3), ("RETRACTION", 3), ("PANE", 12), ("DROPPED", None)]
    assert made.differs_in is None
    assert list(map(str, made.came)) == [str(pane) for pane in made.panes if pane.kind is not bm.PaneKind.DROPPED]
    assert by_batch(made) == [0, 1, 2, 4, 5]
    assert not {"secret", "user"} & {name for event in made.script.events for row in event.rows for name in row}

    # the windows that the checkpoint keeps agree as well, and those of another pipeline do not
    kept = bm.replay(spark, folder / "checkpoint", app.scores, key={"team": "red"}, input=app.events)
    assert (kept.came, kept.differs_in) == (None, None)
    assert "are those of the pipeline" in kept.notes[-1]
    assert bm.replay(spark, folder / "checkpoint", app.upgraded, key="red", input=app.events).differs_in is not None

    made.save("test_red.py", "tests.replays.replay_app:scores")
    text = Path("test_red.py").read_text("utf-8")
    assert "# dropped as expired, 1160 seconds after the watermark passed its time: team='red'" in text
    runpy.run_path("test_red.py")["test_replay_of_team_red"]()
    assert "<svg" in Path("test_red.html").read_text("utf-8")

    monkeypatch.setattr(session, "reading_session", lambda _: spark)
    asked = ["replay", str(folder / "checkpoint"), "--key", '{"team": "red"}', "--panes", str(folder / "panes")]
    asked += ["--input", "tests.replays.replay_app:events", "--pipeline", "tests.replays.replay_app:upgraded"]
    assert program.main([*asked, "--to", "test_upgrade.py"]) == 0
    text = Path("test_upgrade.py").read_text("utf-8")
    assert "first in batch 2" in capsys.readouterr().out
    assert "# The first difference: batch 2: the query emitted" in text
    with pytest.raises(AssertionError):
        runpy.run_path("test_upgrade.py")["test_replay_of_team_red"]()
    Path("test_upgrade.py").write_text(text.replace("upgraded", "scores"), "utf-8")
    runpy.run_path("test_upgrade.py")["test_replay_of_team_red"]()

    (folder / "plays" / "1.json").unlink()
    later = bm.replay(
        spark,
        folder / "checkpoint",
        app.scores,
        key="red",
        window="12:01",
        input=app.events,
        panes=stored,
        mask=["user", "team"],
    )
    assert "no longer has all rows of the batches before 2" in later.notes[1]
    assert by_batch(later) == [2, 4]  # the session at 12:21 is another
    assert {row["team"] for event in later.script.events for row in event.rows} == {"team-1"}


def test_a_replay_of_a_chain_has_the_rows_of_all_keys_that_it_needs(spark, folder):
    add_texts(
        folder,
        [
            [play("red", 5, 3, "ann"), play("blue", 6, 3, "bob")],
            [play("red", 70, 2), play("red", 8, 9, "cy")],
            [play("red", 500)],
        ],
    )
    run(app.by_total.apply(app.events(spark)), folder)
    made = bm.replay(
        spark, folder / "checkpoint", app.by_total, key={"total": 3}, input=app.events, panes=panes_of(spark, folder)
    )
    assert [pane.values for pane in made.panes] == [{"users": 2}]
    assert made.differs_in is None
    teams = [row["team"] for event in made.script.events for row in event.rows]
    assert sorted(teams) == ["blue", "red", "red", "red", "red"]
    text = made.test("tests.replays.replay_app:by_total")
    assert "if pane.key['total'] == 3" in text
    names: dict = {}
    exec(compile(text, "test_chain.py", "exec"), names)
    names["test_replay_of_total_3"]()


def test_a_replay_of_a_join_has_both_inputs_in_one_step(spark, folder, monkeypatch):
    def row(k, second, v):
        return {"k": k, "ts": NOON + timedelta(seconds=second), "v": v}

    add_tables(folder, "orders", [[row("a", 5, 1), row("b", 6, 9)], [row("a", 20, 2)], [row("a", 130, 3)]])
    add_tables(folder, "payments", [[row("a", 10, 7), row("b", 11, 8)], [row("b", 100, 8)], [row("a", 30, 6)]])
    made = app.both(spark)
    run(app.joined.apply(orders=made["orders"], payments=made["payments"]), folder)
    stored = panes_of(spark, folder)
    replayed = bm.replay(spark, folder / "checkpoint", app.joined, key="a", input=app.both, panes=stored)
    assert replayed.differs_in is None
    assert len(replayed.came) > 2
    first = {part.input: len(part.rows) for part in steps_of(replayed.script.events[0])}
    assert (first["orders"], first["payments"]) == (1, 1)
    names: dict = {}
    exec(compile(replayed.test("tests.replays.replay_app:joined"), "test_join.py", "exec"), names)
    names["test_replay_of_k_a"]()
    # without a function the files are read as they are
    plain = bm.replay(spark, folder / "checkpoint", app.joined, key="a", panes=stored)
    assert plain.script == replayed.script

    def one(given):
        orders = given.readStream.parquet(f"{folder}/orders")
        return {"orders": orders, "payments": orders}

    with pytest.raises(bm.OptionError, match="that it makes: 1; the sources of the query: 2"):
        bm.replay(spark, folder / "checkpoint", app.joined, input=one)


def replayed(made, pipeline):
    """Run the test of a replay."""
    names: dict = {}
    exec(compile(made.test(f"tests.replays.replay_app:{pipeline}"), "test_it.py", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test()


def test_a_replay_of_a_query_of_sql_has_the_rows_before_it(spark, folder):
    add_texts(folder, [*PLAYS, [play("red", 1310, 50, "dan"), play("red", 1320, 1)]])
    run(app.views.apply(app.events(spark)), folder)
    stored = panes_of(spark, folder)
    made = bm.replay(spark, folder / "checkpoint", app.views, key={"side": "RED"}, input=app.events, panes=stored)
    assert (made.differs_in, len(made.came) > 3) == (None, True)
    assert {row["team"] for event in made.script.events for row in event.rows} == {"red", "blue"}  # UPPER(team) decides
    assert not {"secret"} & {name for event in made.script.events for row in event.rows for name in row}
    replayed(made, "views")
    kept = bm.replay(spark, folder / "checkpoint", app.views, key="RED", input=app.events)
    assert "are those of the pipeline" in kept.notes[-1]
    with pytest.raises(bm.OptionError, match=r"is not a key column of the output; they are \['side'\]"):
        bm.replay(spark, folder / "checkpoint", app.views, key={"team": "red"}, input=app.events)
    with pytest.raises(bm.OptionError, match="the statement computes with the values of 'team'"):
        bm.replay(spark, folder / "checkpoint", app.views, input=app.events, mask=["team"])


def rows_of(*given):
    return [[{"k": k, "ts": NOON + timedelta(seconds=second), "v": v} for k, second, v in of] for of in given]


def test_a_replay_of_a_join_of_sql_has_both_inputs_in_one_step(spark, folder):
    add_tables(folder, "orders", rows_of([("a", 5, 1), ("b", 6, 9)], [("a", 20, 2)], [("a", 130, 3)]))
    add_tables(folder, "payments", rows_of([("a", 10, 7), ("b", 11, 8)], [("b", 100, 6)], [("a", 30, 9)]))
    run(app.pairs.apply(**app.both(spark)), folder)
    stored = panes_of(spark, folder)
    made = bm.replay(spark, folder / "checkpoint", app.pairs, input=app.both, panes=stored)
    assert (made.differs_in, len(made.came)) == (None, 5)
    replayed(made, "pairs")


def test_a_replay_of_a_table_has_the_rows_that_it_began_with(spark, folder):
    add_tables(folder, "orders", rows_of([("a", 5, 1), ("b", 6, 9)], [("a", 20, 2)], [("a", 130, 3)]))
    add_tables(folder, "payments", rows_of([("c", 0, 0)], [("a", 10, 7)], [("a", 140, 8)]))
    run(app.priced.apply(**app.both(spark), initial=app.before(spark)), folder)
    stored = panes_of(spark, folder)
    asked = {"key": "a", "input": app.both, "panes": stored}
    made = bm.replay(spark, folder / "checkpoint", app.priced, **asked, initial=app.before)
    assert (made.differs_in, [row["v"] for row in made.initial["payments"]]) == (None, [1])
    assert [pane.values["payments"]["v"] for pane in made.came] == [1, 7]
    assert "initial=INITIAL" in made.test("tests.replays.replay_app:priced")
    replayed(made, "priced")
    assert made.picture()
    without = bm.replay(spark, folder / "checkpoint", app.priced, **asked)
    assert without.differs_in is not None
    with pytest.raises(bm.OptionError, match=r"replay.initial=5.: must be what apply"):
        bm.replay(spark, folder / "checkpoint", app.priced, **asked, initial=5)


@pytest.mark.deep  # three runs that wait for the clock
def test_a_replay_has_the_clock_of_heartbeats_and_batches_of_a_record(spark, folder):
    def row(k, second):
        return {"k": k, "ts": NOON + timedelta(seconds=second), "v": 1}

    def orders(given):
        files = given.readStream.schema("k string, ts timestamp, v int").option("maxFilesPerTrigger", 1)
        return files.parquet(f"{folder}/orders")

    idle = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout="2 seconds")).key_by("k")
    early = AfterWatermark(early=AfterProcessingTime("1 second"))
    counted = idle.window(bm.FixedWindows(60)).trigger(early).accumulating().accumulate(n=Count())
    add_tables(folder, "orders", [[row("a", 1), row("b", 2)], [row("a", 30)], [row("a", 70), row("b", 71)]])
    listener = bm.Listener(record=folder / "record.jsonl")
    spark.streams.addListener(listener)
    for _ in range(2):
        run(counted.apply(orders(spark)), folder)
        time.sleep(2.5)
    stored = panes_of(spark, folder)
    whole = bm.replay(spark, folder / "checkpoint", counted, key="a", input=orders, panes=stored)
    assert (whole.differs_in, len(whole.came) > 2) == (None, True)
    spark.streams.removeListener(listener)
    for name in ("offsets", "commits"):
        for number in (0, 1):
            (folder / "checkpoint" / name / str(number)).unlink()
            (folder / "checkpoint" / name / f".{number}.crc").unlink(missing_ok=True)
    with pytest.raises(bm.OptionError, match="the batches before 3 cannot be read, unless record= has them"):
        bm.replay(spark, folder / "checkpoint", counted, key="a", input=orders, panes=stored)
    again = bm.replay(
        spark, folder / "checkpoint", counted, key="a", input=orders, panes=stored, record=folder / "record.jsonl"
    )
    assert [event.rows for event in again.script.events] == [event.rows for event in whole.script.events]
    assert again.differs_in is None

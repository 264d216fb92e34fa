"""Each example runs as a user would run it, and prints what stands here."""

import runpy
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from textwrap import dedent

import pytest

from tests.partitions import several_partitions


def run(root, capsys, name, *arguments):
    """The output of ``python examples/NAME.py``; in this process, so that all share one Spark session."""
    argv, sys.argv = sys.argv, [name, *arguments]
    try:
        runpy.run_path(str(root / "examples" / f"{name}.py"), run_name="__main__")
    finally:
        sys.argv = argv
    return capsys.readouterr().out


def lines(text):
    return [line.rstrip() for line in dedent(text).strip().splitlines()]


IN_PROCESS = {
    "card_alerts": """
        payments
          event 1: PANE       number 1 from NO, before None: 1 in a minute, 20 paid
          event 2: PANE       number 2 from NO, before NO: 2 in a minute, 25 paid
          event 3: PANE       number 4 from SE, before NO: 2 in a minute, 35 paid
          event 5: PANE       number 3 from SE, before NO: 3 in a minute, 35 paid
          event 5: RETRACTION number 4 from SE, before NO: 2 in a minute, 35 paid
          event 5: PANE       number 4 from SE, before SE: 3 in a minute, 45 paid
        alerts
          event 3: PANE       number 4 from SE, before NO: 2 in a minute, 35 paid
          event 5: PANE       number 3 from SE, before NO: 3 in a minute, 35 paid
          event 5: RETRACTION number 4 from SE, before NO: 2 in a minute, 35 paid
          event 5: PANE       number 4 from SE, before SE: 3 in a minute, 45 paid
    """,
    "sessions": """
        09:00 to 09:30  PANE        EARLY    clicks=1 spent=5   so far spent in all: 5
        09:40 to 10:10  PANE        EARLY    clicks=1 spent=3   so far spent in all: 8
        09:00 to 09:30  RETRACTION  EARLY    clicks=1 spent=5   so far spent in all: 3
        09:40 to 10:10  RETRACTION  EARLY    clicks=1 spent=3   so far spent in all: 0
        09:00 to 10:10  PANE        EARLY    clicks=3 spent=9   so far spent in all: 9
        09:00 to 10:10  RETRACTION  EARLY    clicks=3 spent=9   so far spent in all: 0
        09:00 to 10:10  PANE        ON_TIME  clicks=3 spent=9   so far spent in all: 9
    """,
    "ads_without_clicks": """
        event 1: PANE       ann saw tea at 0 min: no click
        event 1: PANE       ann saw jam at 8 min: no click
        event 2: RETRACTION ann saw tea at 0 min: no click
        event 2: RETRACTION ann saw jam at 8 min: no click
        event 2: PANE       ann saw tea at 0 min: clicked at 9 min
        event 2: PANE       ann saw jam at 8 min: clicked at 9 min
        event 3: RETRACTION ann saw tea at 0 min: clicked at 9 min
        event 3: RETRACTION ann saw jam at 8 min: clicked at 9 min
        event 3: PANE       ann saw tea at 0 min: clicked at 9 min
        event 3: PANE       ann saw jam at 8 min: clicked at 9 min
        event 3: PANE       ann saw jam at 8 min: clicked at 18 min
        event 5: PANE       bob saw tea at 12 min: no click
        in the end:
          ann tea: clicked
          ann jam: clicked
          ann jam: clicked
          bob tea: no click
    """,
    "orders_and_shipments": """
        event 2: order 7: tea in box a
        event 3: order 9: nuts in box b
        event 4: order 7: tea in box c
        event 5: order 8: jam was not shipped
        event 6: order 8: box d is too old: out_of_retention
        event 6: order 9: nuts in box e
    """,
    "global_count": """
        pane 0 of savings: {'payments': 3, 'total': 60, 'amounts': [10, 30, 20]}
        pane 1 of savings: {'payments': 4, 'total': 10, 'amounts': [1, 2, 3, 4]}
        the payment of 50 waits for two more
    """,
    "count_per_sum": """
        event 1  PANE        EARLY    1 points: ann, bob
        event 2  RETRACTION  EARLY    1 points: ann, bob
        event 2  PANE        EARLY    1 points: bob
        event 2  PANE        EARLY    2 points: ann
        event 4  RETRACTION  EARLY    1 points: bob
        event 4  RETRACTION  EARLY    2 points: ann
        event 4  PANE        LATE     2 points: ann, bob
    """,
    "silent_servers_sql": """
        EMIT FINAL
          PANE       bob sent 1
          PANE       eve sent 0
        EMIT CHANGES
          PANE       ada sent 0
          PANE       bob sent 0
          PANE       eve sent 0
          RETRACTION ada sent 0
          PANE       ada sent 1
          RETRACTION bob sent 0
          PANE       bob sent 1
          RETRACTION ada sent 1
          PANE       ada sent 2
          RETRACTION ada sent 2
    """,
    "custom_accumulation": """
        00:00 ACME: 2 trades, 10.75 on average
        00:01 ACME: 1 trades, 12.0 on average
    """,
    "limited_changes": """
        Bundle
        Bundle
        WatermarkTo
          09:00:05 savings has 30
        Bundle
        WatermarkTo
          09:01:10 daily is gone
        WatermarkTo
          09:01:15 savings has 40
        still held: ['daily', 'savings']
    """,
    "card_features": """
        01:40 ON_TIME n_1h=1 n_24h=1 spent_24h=950
        01:50 ON_TIME n_1h=2 n_24h=2 spent_24h=1030
        02:40 ON_TIME n_1h=1 n_24h=2 spent_24h=1030
        02 19:33 a True n_1h=3 n_24h=51 most_24h=950
        02 20:50 a False n_1h=1 n_24h=51 most_24h=950
        02 23:07 a False n_1h=0 n_24h=48 most_24h=950
        43 labels with features, as in a batch
    """,
    "rate_limit": """
         60 seconds: {'blue': 13, 'red': 13}
        130 seconds: {'blue': 25, 'red': 25}
        6 writes in place of 50
    """,
    "custom_trigger": """
        00:00 to 00:10  EARLY   1 clicks
        00:00 to 00:15  EARLY   2 clicks
        00:00 to 00:21  EARLY   4 clicks
        00:30 to 00:40  EARLY   1 clicks
        00:22 to 00:40  EARLY   2 clicks
        00:40 to 00:50  EARLY   1 clicks
        00:40 to 00:55  EARLY   2 clicks
        00:00 to 00:40  ON_TIME 7 clicks
        00:40 to 00:55  ON_TIME 2 clicks
    """,
    "custom_window": """
        buoy   00:00:00 to 00:18:20  4 signals
        phone  00:00:00 to 00:00:18  2 signals
        phone  00:00:30 to 00:00:40  1 signals
    """,
}

ON_SPARK = {
    "cdc_to_hours": """
        what came, in order:
        +-------------+-----+------+-----+--------+
        |       change| hour|orders|euros| largest|
        +-------------+-----+------+-----+--------+
        |       INSERT|09:00|     2|   55|[35, 20]|
        |UPDATE_BEFORE|09:00|     2|   55|[35, 20]|
        | UPDATE_AFTER|09:00|     2|   25| [20, 5]|
        |       INSERT|10:00|     1|   50|    [50]|
        |UPDATE_BEFORE|09:00|     2|   25| [20, 5]|
        | UPDATE_AFTER|09:00|     2|   55| [50, 5]|
        |       DELETE|10:00|     1|   50|    [50]|
        +-------------+-----+------+-----+--------+

        what holds:
        +-----+------+-----+-------+
        | hour|orders|euros|largest|
        +-----+------+-----+-------+
        |09:00|     2|   55|[50, 5]|
        +-----+------+-----+-------+
    """,
    "kafka_changelog": """
        ann 09:00 to 09:30: a value
        ann 09:40 to 10:10: a value
        ann 09:00 to 09:30: a tombstone
        ann 09:40 to 10:10: a tombstone
        ann 09:00 to 10:10: a value
        bob 09:50 to 10:20: a value
        in the end: ann with 3 clicks, bob with 1 clicks
    """,
    "hourly_counts": """
        +-----+-----+-----+-------+-----+-------+
        | hour|views|users| timing|index|is_last|
        +-----+-----+-----+-------+-----+-------+
        |10:00|    3|    2|  EARLY|    0|  false|
        |10:00|    4|    3|  EARLY|    1|  false|
        |10:00|    4|    3|ON_TIME|    2|  false|
        |10:00|    5|    3|   LATE|    3|  false|
        |11:00|    1|    1|  EARLY|    0|  false|
        |11:00|    1|    1|ON_TIME|    1|  false|
        |12:00|    1|    1|  EARLY|    0|  false|
        +-----+-----+-----+-------+-----+-------+
    """,
    "late_rows": """
        +-----+-------------------+------+-------+
        | pump|              start|litres| timing|
        +-----+-------------------+------+-------+
        |north|2024-05-01 10:00:00|    40|ON_TIME|
        |north|2024-05-01 10:10:00|    30|ON_TIME|
        |south|2024-05-01 10:10:00|    50|ON_TIME|
        +-----+-------------------+------+-------+

        +---------------+------------+-------------------+-----+------+
        |         reason|minutes_late|                 ts| pump|litres|
        +---------------+------------+-------------------+-----+------+
        |        expired|         5.0|2024-05-01 10:09:00|north|    25|
        |null_event_time|        NULL|               NULL|south|     5|
        +---------------+------------+-------------------+-----+------+
    """,
    "upserted_table": """
        after batch 0
          ann  10:00 to 10:10  1 clicks
          ann  10:15 to 10:25  1 clicks
          bob  10:02 to 10:12  1 clicks
        after batch 1
          ann  10:00 to 10:25  3 clicks
          bob  10:02 to 10:12  1 clicks
        after batch 2
          ann  10:00 to 10:25  3 clicks
          bob  10:02 to 10:12  1 clicks
          bob  10:20 to 10:30  1 clicks
        after batch 3
          ann  10:00 to 10:25  3 clicks
          bob  10:02 to 10:12  1 clicks
          bob  10:20 to 10:30  1 clicks
    """,
    "late_rows_table": """
        north 2024-05-01 10:00:00 40 ON_TIME
        north 2024-05-01 10:10:00 30 ON_TIME
        south 2024-05-01 10:10:00 50 ON_TIME
        late: expired 5.0 2024-05-01 10:09:00 north 25
        late: null_event_time None None south 5
    """,
    "stored_panes": """
        ten minutes, all that was ever said:
          north 10:00 PANE       40
          north 10:30 PANE       30
          north 10:00 RETRACTION 40
          north 10:00 PANE       45
          south 10:00 PANE       10
          south 11:00 PANE       20
          south 10:00 RETRACTION 10
          south 10:00 PANE       12
          south 11:20 PANE       1
        hours, what holds:
          north 10:00 75 euros in 2 ten minutes, at best 45
          south 10:00 12 euros in 1 ten minutes, at best 12
          south 11:00 21 euros in 2 ten minutes, at best 20
        the same, of the live panes, by Spark:
          north 10:00 75 euros
          south 10:00 12 euros
          south 11:00 21 euros
    """,
    "ask_running": """
        the query runs: True; of JFK it keeps
          departures 3 to 5: B65, AA6, B67, 11.7 minutes late
          departures 6 to 8: AA9, 15.0 minutes late
        its flights from the fifth departure on
          4: AA6
          5: B67
          6: AA9
        after its first batch it kept
          JFK 0 to 2: AA1, B62
          LGA 0 to 2: DL3
    """,
    "replayed_files": """
        each payment once, as it came:
          1 09:10 ann 20
          2 09:30 bob 5
          3 09:40 ann 12
          4 10:05 bob 8
          5 11:30 ann 1
        left out:
          payment 1: 1 x duplicate
          payment 2: 1 x duplicate
          payment 3: 2 x duplicate
          payment 4: 1 x duplicate
        spent per hour:
          09:00 ann: 2 payments, 32 euros
          09:00 bob: 1 payments, 5 euros
          10:00 bob: 1 payments, 8 euros
    """,
    "metrics": """
        beamish_panes_total{kind="PANE",query="pumps",timing="EARLY"} 4.0
        beamish_panes_total{kind="PANE",query="pumps",timing="ON_TIME"} 3.0
        beamish_panes_total{kind="RETRACTION",query="pumps",timing=""} 3.0
        beamish_dropped_total{query="pumps",reason="expired"} 1.0
        beamish_dropped_total{query="pumps",reason="null_event_time"} 1.0
        beamish_live_windows{query="pumps"} 1.0
    """,
    "calendar_days": """
        +----------+-------------------+-------------------+--------+
        |       day|          start_utc|            end_utc|readings|
        +----------+-------------------+-------------------+--------+
        |2024-03-09|2024-03-09 05:00:00|2024-03-10 05:00:00|      24|
        |2024-03-10|2024-03-10 05:00:00|2024-03-11 04:00:00|      23|
        |2024-03-11|2024-03-11 04:00:00|2024-03-12 04:00:00|      24|
        |2024-03-12|2024-03-12 04:00:00|2024-03-13 04:00:00|       1|
        +----------+-------------------+-------------------+--------+

        +----------+-------------------+-------------------+--------+
        |       day|          start_utc|            end_utc|readings|
        +----------+-------------------+-------------------+--------+
        |2024-11-02|2024-11-02 04:00:00|2024-11-03 04:00:00|      24|
        |2024-11-03|2024-11-03 04:00:00|2024-11-04 05:00:00|      25|
        |2024-11-04|2024-11-04 05:00:00|2024-11-05 05:00:00|      23|
        +----------+-------------------+-------------------+--------+
    """,
}


@pytest.mark.parametrize("name", IN_PROCESS)
def test_example_in_process_prints_its_documented_output(root, capsys, name):
    assert lines(run(root, capsys, name)) == lines(IN_PROCESS[name])


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_example_on_spark_prints_its_documented_output(root, capsys, spark, name):
    with (
        several_partitions() if name == "kafka_changelog" else nullcontext()
    ):  # it prints rows in the order of partitions
        printed = run(root, capsys, name)
    assert lines(printed) == lines(ON_SPARK[name])


@pytest.mark.dear
def test_example_of_unit_tests_passes(root):
    command = [sys.executable, "-m", "pytest", "-q", "examples/test_scores.py"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "4 passed" in result.stdout


@pytest.mark.spark
def test_main_job_replays_flights_and_all_its_checks_hold(root, capsys, spark, monkeypatch, tmp_path):
    """Two days of the year; make demo has all of it, in a process of its own."""
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session is that of all tests
    table = tmp_path / "flights.db"
    with pytest.raises(SystemExit, match=r"^0$"):
        run(root, capsys, "flights", "--flights", "1800", "--batches", "3", "--table", str(table))
    said = capsys.readouterr().out
    assert said.startswith("1,800 flights from New York, 2013-01-01 05:17 to ")
    assert "batch 2: rows 1,800" in said
    assert said.endswith("All checks hold.\n")
    assert "FAILS" not in said
    assert said.count("holds ") == 8
    with closing(sqlite3.connect(table)) as database:
        assert database.execute("SELECT count(*), sum(departures) FROM hourly").fetchone() == (115, 1783)


@pytest.mark.deep
@pytest.mark.spark
def test_flights_are_joined_with_their_weather_and_the_check_holds(root, capsys, spark):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "flights_and_weather", "--days", "2", "--batches", "4")
    assert ended.value.code == 0
    *_, alone, rows, check = lines(capsys.readouterr().out)
    assert alone.endswith("of them for good")
    assert rows.startswith("1,7")
    assert check == "holds: the stream equals the batch join"


@pytest.mark.deep
@pytest.mark.spark
def test_delays_and_weather_are_joined_by_hour_and_the_check_holds(root, capsys, spark):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "delays_and_weather", "--days", "2", "--batches", "3")
    assert ended.value.code == 0
    _, came, *_, check = lines(capsys.readouterr().out)
    assert not came.endswith(" 0 of them were taken back")
    assert check == "holds: the stream equals the batch join"


@pytest.mark.deep
@pytest.mark.spark
def test_a_chain_of_sessions_and_days_equals_pandas(root, capsys, spark):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "delay_per_session", "--days", "2", "--batches", "3")
    assert ended.value.code == 0
    *_, retracted, check = lines(capsys.readouterr().out)
    assert retracted.endswith("panes of days were retracted on the way")
    assert check == "holds: the stream equals the batch computation"


@pytest.mark.deep
@pytest.mark.spark
def test_the_last_departures_are_the_frames_of_spark(root, capsys, spark):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "last_departures", "--days", "1", "--batches", "3")
    assert ended.value.code == 0
    _, *airports, check, _, hundred, _, _, _ = lines(capsys.readouterr().out)
    assert [line.split(":")[0].strip() for line in airports] == ["EWR", "JFK", "LGA"]
    assert check == "holds: 841 panes, 841 frames of rowsBetween"
    assert hundred.startswith("  B6 flights 0 to 99: ")


@pytest.mark.spark
def test_final_sessions_in_sql_equal_the_pipeline_by_hand(root, capsys, spark):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "final_sessions_sql", "--days", "3", "--batches", "4")
    assert ended.value.code == 0
    *sessions, check = lines(capsys.readouterr().out)
    assert len(sessions) == 5
    assert check.startswith("holds: the statement and the pipeline by hand give the same ")


@pytest.mark.deep
@pytest.mark.spark
def test_flights_are_joined_with_the_weather_as_of_departure(root, capsys, spark):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "weather_as_of", "--days", "1", "--batches", "3")
    assert ended.value.code == 0
    _, first, taken_back, *_, check, _, within, ever = lines(capsys.readouterr().out)
    assert first.startswith("841 flights came out as they left: ")
    assert not taken_back.startswith("0 ")
    assert check == "holds: the stream equals pandas.merge_asof"
    assert within.endswith("973 stay without weather (pandas.merge_asof: 973)")
    assert ever.endswith("0 stay without weather (pandas.merge_asof: 0)")


@pytest.mark.deep
def test_carriers_of_aircraft_are_versions_and_the_check_holds(root, capsys):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "aircraft_carriers")
    assert ended.value.code == 0
    _, _, versions, *changed, check = lines(capsys.readouterr().out)
    assert versions == "4,060 versions of 4,043 aircraft in the end; 17 aircraft changed carrier:"
    assert len(changed) == 17
    assert check == "holds: the versions equal the batch computation"


@pytest.mark.dear
def test_delays_knock_on_and_the_check_holds(root, capsys):
    with pytest.raises(SystemExit) as ended:
        run(root, capsys, "knock_on_delay", "--days", "2")
    assert ended.value.code == 0
    *_, year, check = lines(capsys.readouterr().out)
    assert year.endswith("56 minutes late on average; all others 12 minutes")
    assert check == "holds: the hours equal the batch computation"


def test_every_example_is_run_here(root):
    on_flights = {
        "aircraft_carriers",
        "knock_on_delay",
        "weather_as_of",
        "final_sessions_sql",
        "delays_and_weather",
        "flights_and_weather",
        "delay_per_session",
        "flights",
        "last_departures",
        "flights_check",
        "flights_replay",
    }
    elsewhere = {"test_scores", "gallery"}  # the second in tests/docs/test_gallery.py
    here = {*IN_PROCESS, *ON_SPARK, *elsewhere, *on_flights}
    assert {path.stem for path in (root / "examples").glob("*.py")} == here


@pytest.fixture(autouse=True)
def examples_import_their_neighbours(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "examples"))

"""The drill kills queries and finds nothing (docs/reliability.md), and would find what is wrong; long ones by ``make drill``."""

import json
import os
import random
import re
import subprocess
import sys
from itertools import permutations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tools.drill.comparing import compare
from tools.drill.how import CLUSTER, How
from tools.drill.moments import MOMENTS, moments
from tools.drill.pipelines import DRILLED, write_rows
from tools.drill.promised import promised
from tools.drill.query import Query
from tools.drill.report import Report


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.xdist_group("drill")
def test_killed_queries_give_the_output_of_uninterrupted_ones(root):
    how = ["--kills", "1", "--only", "sessions", "--source", "chunks", "--cluster", "0"]
    at = ["--moment", "after the sink", "--moment", "state", "--moment", "file sink"]
    command = [sys.executable, "-m", "tools.drill", "--seed", "1", "--budget", "1000", *how, *at]
    said = subprocess.run(command, cwd=root, env=os.environ, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert re.search(r"1 kills, 1 of queries, .* [1-9] runs compared, 0 differences", said.stdout), said.stdout


def test_every_moment_is_one_of_some_query(tmp_path):
    how = How(
        CLUSTER,
        changelog=True,
        chunks=1,
        verifies=True,
        java="",
        warm=None,
        moments=tuple(MOMENTS),
        sources=(),
        sinks=(),
    )
    found = {
        moment
        for name in DRILLED
        for sink in ("files", "batches")
        for source in ("files", "chunks")
        for moment in moments(Query(name, sink, source, tmp_path, tmp_path), how)
    }
    assert found == set(MOMENTS)


CUT = [[0], [1], [2], [3], [4]]
"""Batches, by the chunks of rows that they bring: of one that was left alone."""
CUT_OTHERWISE = [[0, 1], [2], [3], [4]]
GAVE: dict = {}
"""A cache of the output of a pipeline for batches."""


def ran(folder, name, batches, change=lambda rows: rows, clock=0):
    """A query's checkpoint with these batches, and a modified copy of their in-process output."""
    query = Query(name, "batches", "chunks", folder.parent / "rows", folder)
    if not query.rows.exists():
        write_rows(query.rows, random.Random(1), chunks=3)
    (query.checkpoint / "offsets").mkdir(parents=True)
    sides = len(DRILLED[name].sides)
    for number, chunks in enumerate(batches):
        # As Spark has it: each batch runs at what those before it brought.
        about = {"batchWatermarkMs": (995 + 20 * chunks[0]) * 1000 if number else 0}
        tick = {"tick": number + 1, "clock_us": (number + clock) * 1_000_000}
        lines = ["v1", *map(json.dumps, [about, *[{"chunk": chunks[-1] + 1}] * sides, tick])]
        (query.checkpoint / "offsets" / str(number)).write_text("\n".join(lines))
    query.out.mkdir()
    run = name, str(batches), clock
    GAVE[run] = GAVE.get(run) or promised(query)
    pq.write_table(pa.Table.from_pylist(change(GAVE[run])), query.out / "0000")
    return query


def found_by_the_drill(folder, name, change=lambda rows: rows, batches=CUT, *, clock=0, in_order=True):
    """How many differences it finds, and in how many runs it compares with the engine in process."""
    report = Report(seed=0)
    (folder / "runs").mkdir(parents=True)
    alone = ran(folder / "runs" / "alone", name, CUT)
    killed = ran(folder / "runs" / "killed", name, batches, change, clock)
    compare(alone, killed, report, in_order=in_order)
    assert report.compared == {killed.title: 1}
    assert report.rows[killed.title] > 0
    return report.found, report.cut.total()


def with_value(rows, at, **changed):
    return [*rows[:at], {**rows[at], **changed}, *rows[at + 1 :]]


def with_pane(rows, at, **changed):
    return with_value(rows, at, pane={**rows[at]["pane"], **changed})


CHANGES = {
    "a lost row": lambda rows: rows[1:],
    "a doubled row": lambda rows: [*rows, rows[0]],
    "another value": lambda rows: with_value(rows, 0, s=rows[0]["s"] + 1),
    "another timing": lambda rows: with_pane(rows, 0, timing="LATE"),
    "another index": lambda rows: with_pane(rows, 0, index=9),
    "another key": lambda rows: with_value(rows, 0, k="another"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_drill_finds(tmp_path, change):
    assert found_by_the_drill(tmp_path, "fixed windows", CHANGES[change]) == (1, 0)


@pytest.mark.dear
@pytest.mark.parametrize(
    "name", ["fixed windows", "by the clock", "watermarks of their own", "merged stages", "rows, each once"]
)
def test_the_drill_knows_the_output_of_other_batch_boundaries(tmp_path, name):
    found = [
        found_by_the_drill(tmp_path / str(place), name, change, CUT_OTHERWISE, clock=place)
        for place, change in enumerate([lambda rows: rows, lambda rows: rows[:-1]])
    ]
    assert found == [(0, 1), (1, 1)]


def test_rows_each_once_are_known_as_the_query_gives_them(tmp_path):
    (tmp_path / "runs").mkdir()
    rows = promised(ran(tmp_path / "runs" / "alone", "rows, each once", CUT))
    assert {tuple(row) for row in rows} == {("ts", "k", "x", "t", "side")}


def test_rows_may_come_in_another_order_in_a_file(tmp_path):
    assert found_by_the_drill(tmp_path, "fixed windows", lambda rows: rows[::-1]) == (0, 0)


def swapped(rows, which):
    """Two rows with each other's ``sequence``."""
    one, other = which
    numbers = [rows[at]["pane"]["sequence"] for at in which]
    return with_pane(with_pane(rows, one, sequence=numbers[1]), other, sequence=numbers[0])


def test_with_several_executors_keys_may_come_in_another_order_but_not_the_rows_of_a_key(tmp_path):
    def of_two_keys(rows):
        numbers = [(row["k"], row["pane"]["sequence"]) for row in rows]

        def are_free(one, other):
            (key, number), (other_key, next_number) = numbers[one], numbers[other]
            new = {(key, next_number), (other_key, number)}
            return next_number == number + 1 and key != other_key and new.isdisjoint(numbers)

        return swapped(rows, next(pair for pair in permutations(range(len(rows)), 2) if are_free(*pair)))

    def of_one_key(rows):
        first, *_, last = (at for at, row in enumerate(rows) if row["k"] == "a")
        return swapped(rows, (first, last))

    found = [
        found_by_the_drill(tmp_path / str(place), "fixed windows", change, in_order=in_order)
        for place, (change, in_order) in enumerate([(of_two_keys, False), (of_two_keys, True), (of_one_key, False)])
    ]
    assert found == [(0, 0), (1, 0), (1, 0)]


def test_early_panes_of_the_clock_may_differ_and_no_last_one(tmp_path):
    def last(rows):
        return next(at for at, row in enumerate(rows) if row["pane"]["timing"] == "ON_TIME")

    def without_early(rows):
        return [row for row in rows if row["pane"]["timing"] != "EARLY"]

    found = [
        found_by_the_drill(tmp_path / str(place), "by the clock", change, clock=clock)
        for place, (change, clock) in enumerate(
            [
                (lambda rows: rows, 5),
                (without_early, 0),
                (lambda rows: with_value(rows, last(rows), n=99), 0),
                (lambda rows: [row for at, row in enumerate(rows) if at != last(rows)], 5),
            ]
        )
    ]
    assert found == [(0, 0), (0, 0), (1, 0), (1, 0)]

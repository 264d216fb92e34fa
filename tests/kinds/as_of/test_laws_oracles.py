"""The final result of an as-of join equals that of pandas and DuckDB (rules/tables.md#as-of-joins).

They are given what was taken, and one change a key and time. A delete is met like any change, by its id, and is blanked
after. A null key meets nothing here: those rows and changes are left out.
"""

from __future__ import annotations

import attrs
import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish.instants import instant
from beamish.kinds.versions.options import VALID_FROM
from tests.agreement import close
from tests.declared_options import said
from tests.kinds.as_of.rows import ROWS, met, value_names
from tests.kinds.versions.batch import declaring, dropped_ids, live, numbered, rows_of
from tests.kinds.versions.strategy import Drawing, as_of_joins, scripts, simple, yes
from tests.strategies.pipelines import retracting


def pandas_merge_asof(rows, changes, options):
    """The id of the change that each row meets."""
    rows, changes = (one.to_pandas().sort_values("time") for one in (rows, changes))
    changes["met"] = changes["id"]
    tolerance = None if options.tolerance is None else options.tolerance.us
    found = pd.merge_asof(
        rows,
        changes[["time", "key", "met"]],
        on="time",
        by="key",
        tolerance=tolerance,
        allow_exact_matches=options.allow_exact_matches,
        direction=options.direction,
    )
    return {row.id: None if pd.isna(row.met) else int(row.met) for row in found.itertuples()}


def duckdb_asof_join(rows, changes, options):
    """The same; it has no tolerance, which is applied after, and no nearest, for which the nearer of two answers counts."""
    if options.direction == "nearest":
        both = [
            duckdb_asof_join(rows, changes, attrs.evolve(options, direction=one)) for one in ("backward", "forward")
        ]
        times = {one["id"]: one["time"] for one in changes.to_pylist()}
        return {
            row["id"]: min(
                (met for of in both if (met := of[row["id"]]) is not None),
                key=lambda met: abs(times[met] - row["time"]),
                default=None,
            )
            for row in rows.to_pylist()
        }
    reaches = (">" if options.direction == "backward" else "<") + "=" * options.allow_exact_matches
    with duckdb.connect() as connection:
        connection.register("rows_", rows)
        connection.register("changes_", changes)
        found = connection.execute(
            "SELECT r.id, r.time - c.time, c.id FROM rows_ AS r ASOF LEFT JOIN changes_ AS c "
            f"ON r.key = c.key AND r.time {reaches} c.time"
        ).fetchall()
    within = None if options.tolerance is None else options.tolerance.us
    return {row: None if met is None or (within is not None and abs(age) > within) else met for row, age, met in found}


def frame(rows):
    columns = {"time": pa.int64(), "key": pa.string(), "id": pa.int64()}
    return pa.table(
        [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), columns.values(), strict=True)]
        if rows
        else [pa.array([], kind) for kind in columns.values()],
        names=list(columns),
    )


@pytest.mark.parametrize("oracle", [pandas_merge_asof, duckdb_asof_join])
@given(data=st.data())
def test_finally_a_join_equals_other_implementations(oracle, data):
    of = Drawing(policy=simple, mode=st.just(retracting), with_dropped=yes)
    pipeline = declaring(data.draw(as_of_joins(of=of, **ROWS)), sequence_by="id", only_updated=False)
    options, deleted = said(pipeline).as_of, said(pipeline).versions.deleted
    script = numbered(data.draw(scripts(pipeline, ends=True)), data.draw(st.integers(0, 99)))
    panes = pipeline.run(script)
    left, table = pipeline.flow.inputs
    rows, changes = (rows_of(script, one, one.keys, dropped_ids(panes, one.name)) for one in (left, table))
    changes.sort(key=lambda change: change.row["id"])
    counting = {(change.time_us, change.key): change.row for change in changes}  # the greatest id counts
    keyed = [row for row in rows if all(row.row[name] is not None for name in left.keys)]
    if options.direction != "backward" and deleted:  # no version begins with a delete
        assume(options.direction == "forward")
        counting = {place: change for place, change in counting.items() if change[deleted] is not True}
    found = oracle(
        frame([(row.time_us, row.key, row.row["id"]) for row in keyed]),
        frame([(*place, change["id"]) for place, change in counting.items()]),
        options,
    )
    by_id = {change["id"]: (time_us, change) for (time_us, _), change in counting.items()}
    names, expected = value_names(pipeline, script), {}
    for row in rows:
        time_us, change = by_id.get(found.get(row.row["id"]), (0, None))
        if change is not None and not (deleted and change[deleted] is True):
            match = {name: change.get(name) for name in names} | {VALID_FROM: instant(time_us)}
            expected[row.row["id"]] = match
        elif options.how == "left":
            expected[row.row["id"]] = None
    ours = met(pipeline, live(panes))
    assert close(dict(sorted(ours.items())), dict(sorted(expected.items()))), f"{pipeline!r}\n{script!r}"

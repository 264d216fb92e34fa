"""The program of the peer spark_over: window functions of a batch; cases and answers are lines as in peers/spark/program.py."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from peers.spark.program import Case, main

COLUMNS = ("key", "part", "o", "v", "x", "n")
"""The columns of a row beside its time, in the order by which rows of equal time are ordered."""


def values(options: Case, rows: DataFrame) -> DataFrame:
    """The values of each row, by their names in ``peers.spark_over.peer.VALUES``."""
    partition = Window.partitionBy("case", *options["keys"])
    by = [] if options["order"] is None else [options["order"]]
    order, peers, times = (partition.orderBy("ts", *rest) for rest in ([*by, *COLUMNS], by, []))
    frame = options["frame"]
    start = next((-frame[name] for name in ("span", "rows") if name in frame), Window.unboundedPreceding)
    between = times.rangeBetween if frame["is"] == "RANGE" else order.rowsBetween
    window = between(start, Window.currentRow)
    # In a RANGE frame rows of equal time are in any order, so the first and the last are taken from all.
    inside = F.array_sort(F.collect_list(F.struct("ts", *by, *COLUMNS)).over(window))
    found = {
        "count": F.count("*").over(window),
        "count of x": F.count("x").over(window),
        "sum": F.sum("v").over(window),
        "sum of x": F.sum("x").over(window),
        "mean": F.avg("v").over(window),
        "least": F.min("x").over(window),
        "most": F.max("x").over(window),
        "greatest": F.max("part").over(window),
        "distinct": F.size(F.collect_set("v").over(window)),
        "rows": F.collect_list("n").over(window),
        "first": inside[0]["x"],
        "last": F.element_at(inside, -1)["x"],
        "lag": F.lag("x").over(order),
        "lag by 2": F.lag("n", 2, -1).over(order),
        "lead": F.lead("x").over(order),
        "lead by 3": F.lead("n", 3, -1).over(order),
        "number": F.row_number().over(order),
        "rank": F.rank().over(peers),
        "dense rank": F.dense_rank().over(peers),
    }
    return rows.select("case", "n", F.struct(*(value.alias(name) for name, value in found.items())))


def _answers(spark: SparkSession, _: Path, cases: Mapping[int, Case]) -> dict[int, str]:
    """One batch for all cases with the same options."""
    (options, *_rest) = (case["options"] for case in cases.values())
    schema = "case long, ts long, key string, part string, o long, v long, x double, n long"
    rows = [
        (number, row["ts"], *(row[name] for name in COLUMNS)) for number, case in cases.items() for row in case["rows"]
    ]
    found: dict[int, list[list[Any]]] = defaultdict(list)
    for case, n, of_row in values(options, spark.createDataFrame(rows, schema)).collect():
        found[case].append([n, of_row.asDict()])
    return {number: json.dumps({"rows": found.get(number, [])}) for number in cases}


if __name__ == "__main__":
    main(_answers)

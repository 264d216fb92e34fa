"""The queries as Flink SQL, and a run of one on an embedded cluster (flink/Nexmark.java); prints a line of JSON like one_query.py.

    python -m benchmarks.nexmark.on_flink '{"system": "flink", "query": "q5", "folder": "build/nexmark/10000000-1", "answer": false}'

The queries say what those of nexmark/nexmark (nexmark-flink/src/main/resources/queries) say. Different are:

- q4: the mean is a double; there ``AVG`` of a BIGINT is whole.
- q11-early: ``table.exec.emit.early-fire`` every second, where beamish emits after each micro-batch.
- q5, q7: the window is in the output. q7: a bid at the end of a window is not in it.

The session: two slots, RocksDB with incremental checkpoints every 30 seconds, 1 GB of managed memory, a heap of 4 GB as Spark's.
``flink-minibatch``: the same with mini-batches of two seconds and 50,000 rows, as nexmark/nexmark sets them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from benchmarks.nexmark import answers

BUILT = Path(__file__).parents[2] / "build" / "nexmark-flink"
TABLES = {"person": "persons", "auction": "auctions", "bid": "bids"}
"""The folder of each table."""
WARM = 0.75
VERSION = "2.3.0"
"""The version of Flink, as in flink/pom.xml."""
_PARALLELISM = 2
_MINIBATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
}
SYSTEMS: Mapping[str, Mapping[str, str]] = {"flink": {}, "flink-minibatch": _MINIBATCH}
"""Settings beside those of all."""
_FROM_SPARK = ("hadoop-client-api", "hadoop-client-runtime")
"""Jars of PySpark: Flink's Parquet reader needs Hadoop's classes, which no small artifact has."""


@attrs.frozen
class FlinkQuery:
    """A query.

    Attributes:
        text: a SELECT.
        columns: those that it reads, by table: a stream that is declared in Java has no projection of its own. On Spark the inputs have
            the same.
        config: settings of its own.
    """

    text: str
    columns: Mapping[str, Sequence[str]]
    config: Mapping[str, str] = {}


_BID = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
_COUNTS = """
    SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
"""
_IN_TIME = "FROM auction AS A, bid AS B WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires"
_PLACE = "ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS place"
_WINNING = f"""
    SELECT id, price, bidder, bidTime, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra, auction, bidExtra
    FROM (
        SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bidTime, B.extra AS bidExtra,
            {_PLACE}
        {_IN_TIME}
    )
    WHERE place <= 1
"""
_AUCTION = (
    "id",
    "itemName",
    "description",
    "initialBid",
    "reserve",
    "dateTime",
    "expires",
    "seller",
    "category",
    "extra",
)
_WINNING_COLUMNS = {"auction": _AUCTION, "bid": ("auction", "bidder", "price", "dateTime", "extra")}

_SESSIONS = """
    SELECT SESSION_START(`dateTime`, INTERVAL '10' SECOND), SESSION_END(`dateTime`, INTERVAL '10' SECOND), bidder, COUNT(*) AS bid_count
    FROM bid
    GROUP BY bidder, SESSION(`dateTime`, INTERVAL '10' SECOND)
"""
_EARLY = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "1 s"}

QUERIES: Mapping[str, FlinkQuery] = {
    "q4": FlinkQuery(
        f"""
        SELECT category, AVG(CAST(final AS DOUBLE))
        FROM (SELECT MAX(B.price) AS final, A.category {_IN_TIME} GROUP BY A.id, A.category)
        GROUP BY category
        """,
        {"auction": ("id", "category", "dateTime", "expires"), "bid": ("auction", "price", "dateTime")},
    ),
    "q5": FlinkQuery(
        f"""
        SELECT B.starttime, B.endtime, B.auction, B.num
        FROM ({_COUNTS}) AS B
        JOIN (SELECT MAX(num) AS maxn, starttime, endtime FROM ({_COUNTS}) GROUP BY starttime, endtime) AS M
        ON B.starttime = M.starttime AND B.endtime = M.endtime AND B.num >= M.maxn
        """,
        {"bid": ("auction", "dateTime")},
    ),
    "q6": FlinkQuery(
        f"""
        SELECT id, seller, bidTime, AVG(CAST(price AS DOUBLE)) OVER (
            PARTITION BY seller ORDER BY bidTime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
        FROM (
            SELECT A.id, A.seller, B.price, B.`dateTime` AS bidTime, {_PLACE}
            {_IN_TIME}
        )
        WHERE place <= 1
        """,
        {"auction": ("id", "seller", "dateTime", "expires"), "bid": ("auction", "bidder", "price", "dateTime")},
    ),
    "q7": FlinkQuery(
        """
        SELECT M.starttime, M.endtime, B.auction, B.bidder, B.price, B.`dateTime`, B.extra
        FROM bid AS B
        JOIN (
            SELECT MAX(price) AS maxprice, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
            GROUP BY window_start, window_end
        ) AS M
        ON B.price = M.maxprice
        WHERE B.`dateTime` >= M.starttime AND B.`dateTime` < M.endtime
        """,
        {"bid": ("auction", "bidder", "price", "dateTime", "extra")},
    ),
    "q8": FlinkQuery(
        """
        SELECT P.starttime, P.endtime, P.id, P.name
        FROM (
            SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
            GROUP BY id, name, window_start, window_end
        ) AS P
        JOIN (
            SELECT seller, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
            GROUP BY seller, window_start, window_end
        ) AS A
        ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime
        """,
        {"person": ("id", "name", "dateTime"), "auction": ("seller", "dateTime")},
    ),
    "q9": FlinkQuery(_WINNING, _WINNING_COLUMNS),
    "q11": FlinkQuery(_SESSIONS, {"bid": ("bidder", "dateTime")}),
    "q11-early": FlinkQuery(_SESSIONS, {"bid": ("bidder", "dateTime")}, _EARLY),
    "q12": FlinkQuery(
        """
        SELECT window_start, window_end, bidder, COUNT(*) AS bid_count
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
        """,
        {"bid": ("bidder", "dateTime")},
    ),
    "q18": FlinkQuery(
        """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS place FROM bid)
        WHERE place <= 1
        """,
        {"bid": _BID},
    ),
    "q19": FlinkQuery(
        """
        SELECT *
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
        WHERE place <= 10
        """,
        {"bid": _BID},
    ),
}
REFUSED: Mapping[str, str] = {
    "q6": "TableException: Non-time attribute sort is not supported for bounded OVER window.",
    "q11-early": "TableException: Session window doesn't support EMIT strategy currently.",
}
"""The queries that Flink refuses, with its message."""
_TYPES = {pa.int64(): "BIGINT", pa.string(): "STRING"}


def classpath() -> str:
    """The jars that ``make`` has fetched, the program, and Hadoop's classes from PySpark."""
    if not (BUILT / "classes" / "Nexmark.class").exists():
        raise SystemExit(f"{BUILT} is empty: make nexmark builds it")
    jars = Path(pyspark.__file__).parent / "jars"
    ours = sorted(str(jar) for name in _FROM_SPARK for jar in jars.glob(f"{name}-*.jar"))
    return os.pathsep.join([f"{BUILT}/lib/*", f"{BUILT}/classes", *ours])


def asked(said: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    """The argument of the program."""
    folder, query = Path(said["folder"]).resolve(), QUERIES[said["query"]]
    about = json.loads((folder / "about.json").read_text("utf-8"))
    inputs = {}
    for table, columns in query.columns.items():
        schema = pq.read_schema(next((folder / TABLES[table]).iterdir()))
        types = {name: _TYPES.get(schema.field(name).type, "TIMESTAMP") for name in columns}
        inputs[table] = {
            "folder": (folder / TABLES[table]).as_uri(),
            "columns": types,
            "arrival": said["query"] == "q12",
        }
    config = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(scratch / "rocksdb"),
        "execution.checkpointing.dir": (scratch / "checkpoints").as_uri(),
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.interval": "30 s",
        "pipeline.auto-watermark-interval": "50 ms",
        "pipeline.watermark-alignment.allow-unaligned-source-splits": "true",
        "taskmanager.numberOfTaskSlots": str(_PARALLELISM),
        "taskmanager.memory.managed.size": "1 gb",
        "rest.address": "localhost",
        "rest.bind-address": "localhost",
        "rest.bind-port": "0",
        **query.config,
        **SYSTEMS[said["system"]],
    }
    file_ms = about["events"] * 1_000 // about["rate"] // about["files"]
    return {
        "sql": query.text,
        "inputs": inputs,
        "config": config,
        "parallelism": _PARALLELISM,
        "answer": bool(said.get("answer")),
        "warm": WARM,
        "drift_ms": max(8 * file_ms, 20_000),
    }


def run(said: Mapping[str, Any]) -> dict[str, Any]:
    """Run the query to its end."""
    with tempfile.TemporaryDirectory(prefix="nexmark-flink-") as name:
        scratch = Path(name)
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        options = ["-Xmx4g", "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", classpath()]
        words = [str(java), *options, "Nexmark", json.dumps(asked(said, scratch))]
        most, done = [0], threading.Event()
        watch = threading.Thread(target=_watch, args=(scratch / "rocksdb", most, done))
        watch.start()
        try:
            made = subprocess.run(words, capture_output=True, text=True, check=False)
        finally:
            done.set()
            watch.join()
    if made.returncode or not made.stdout:
        raise SystemExit(f"{made.stdout[-3000:]}\n{made.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(made.stdout.strip().splitlines()[-1])
    if "refused" in found:
        return {"refused": known_refusal(said["query"], found["refused"])}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found |= {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024, "state_bytes": most[0]}
    if said.get("answer"):
        found["answer"] = answers.of_changes(said["query"], found.pop("changes"))
    return found


def known_refusal(query: str, message: str) -> str:
    """Flink's message, if it is the one that is known; another one is a fault of the query."""
    if message != REFUSED.get(query):
        raise SystemExit(f"{query} on Flink: {message}")
    return message


def _watch(folder: Path, most: list[int], done: threading.Event) -> None:
    """Keep the most that RocksDB's files have together."""
    while not done.wait(1):
        size = 0
        for place, _, names in os.walk(folder):
            for name in names:
                if name.endswith(".sst"):
                    try:
                        size += (Path(place) / name).stat().st_size
                    except OSError:  # compacted meanwhile
                        continue
        most[0] = max(most[0], size)


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))

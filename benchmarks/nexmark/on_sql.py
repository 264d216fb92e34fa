"""The queries in ``bm.sql``, as Flink's text: ``query(name)``.

Most texts are those of on_flink.py. q5 and q7 number the rows of a window, as ``bm.sql`` joins no groups with their maximum: of
those that tie they give one.
"""

from __future__ import annotations

import beamish as bm
from beamish.statement.query import Query
from benchmarks.nexmark.on_flink import QUERIES

_WATERMARK = "WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND"
DECLARATIONS = f"""
    CREATE TABLE person (
        id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
        {_WATERMARK}
    ) WITH ('connector' = 'filesystem');
    CREATE TABLE auction (
        id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP_LTZ(3),
        expires TIMESTAMP_LTZ(3), seller BIGINT, category BIGINT, extra STRING,
        {_WATERMARK}
    ) WITH ('connector' = 'filesystem');
    CREATE TABLE bid (
        auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
        {_WATERMARK}
    ) WITH ('connector' = 'filesystem');
"""
_FIRST = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {} DESC) AS place"
TEXTS = {
    "q5": f"""
        SELECT window_start, window_end, auction, num
        FROM (
            SELECT auction, num, window_start, window_end, {_FIRST.format("num")}
            FROM (
                SELECT auction, window_start, window_end, COUNT(*) AS num
                FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
                GROUP BY auction, window_start, window_end
            )
        )
        WHERE place <= 1
    """,
    "q7": f"""
        SELECT window_start, window_end, auction, bidder, price, `dateTime`, extra
        FROM (
            SELECT auction, bidder, price, `dateTime`, extra, window_start, window_end, {_FIRST.format("price")}
            FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
        )
        WHERE place <= 1
    """,
}
"""Where they differ from Flink's."""


def query(name: str) -> Query:
    """The query; raises SqlError if ``bm.sql`` does not take it."""
    return bm.sql(DECLARATIONS + TEXTS.get(name, QUERIES[name].text), dialect="flink")

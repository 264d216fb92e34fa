"""Statements of ksqlDB."""

KSQLDB = """
    CREATE TABLE t WITH (VALUE_FORMAT = 'JSON') AS
    SELECT AS_VALUE(k) AS copy, k, s->name, COUNT(), SUM(v) + 1, EARLIEST_BY_OFFSET(v) AS e, LATEST_BY_OFFSET(v, FALSE) AS l,
           EARLIEST_BY_OFFSET(v, 2) AS e2, LATEST_BY_OFFSET(v, 2) AS l2, LATEST_BY_OFFSET(v, 2, false) AS l2n,
           TOPK(v, w, 2) AS top, TOPKDISTINCT(v, 2) AS tops, ATTR(w) AS w, ATTR(v) AS v, COUNT_DISTINCT(v) AS d,
           COLLECT_LIST(STRUCT(a := v, b := upper(w))) AS all, WINDOWEND - WINDOWSTART AS length, count(1) * windowend AS ends,
           ARRAY[MAX(v), COUNT(*)][0] AS most, WINDOWEND + INTERVAL 1 SECOND AS after, COLLECT_SET(array[v, 1]) AS sets,
           STRUCT(n := COUNT(*), at := WINDOWSTART)->n AS n, HISTOGRAM(w) AS seen, HISTOGRAM(v)['5'] AS fives,
           ROUND(CORRELATION(v, v * v), 9) AS corr, CORR(v, 1) AS flat, SUM_LIST(ARRAY[v, 1]) AS listed,
           MAP('n' := COUNT(*), 'most' := MAX(v)) AS map, MAX(MAP('a', v)['a']) AS item
    FROM rows WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY (k, s->name) EMIT FINAL;
"""
"""As ksqlDB's users type it; tests/spark/test_statement.py compares it with Spark."""
TYPED = [
    {"ts": ts, "k": "a", "s": {"name": "ann"}, "v": v, "w": "x", "o": offset}
    for offset, (ts, v) in enumerate(((12, 3), (11, None), (14, 5), (13, 5), (19, None)))
]

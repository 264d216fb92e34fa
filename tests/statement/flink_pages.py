"""The queries of Flink's documentation with windows, OVER, Top-N, deduplication or a join in time: one of each form, by page.

Names are ours. Each stands for one query there, so a form that is there twice is here twice.
"""

TABLES = """
    CREATE TABLE offers (
        at TIMESTAMP(3), price DECIMAL(10, 2), item STRING, seller STRING, WATERMARK FOR at AS at - INTERVAL '1' SECOND) WITH (...);
    CREATE TABLE lefts (at TIMESTAMP(3), num INT, id STRING, WATERMARK FOR at AS at - INTERVAL '1' SECOND) WITH (...);
    CREATE TABLE rights (at TIMESTAMP(3), num INT, id STRING, WATERMARK FOR at AS at - INTERVAL '1' SECOND) WITH (...);
    CREATE TABLE sales (product STRING, category STRING, name STRING, sales BIGINT) WITH (...);
    CREATE TABLE orders (
        id STRING, product STRING, amount BIGINT, price DECIMAL(32, 2), currency STRING, at TIMESTAMP(3), came AS PROCTIME(),
        WATERMARK FOR at AS at - INTERVAL '15' SECOND) WITH (/* ... */);
    CREATE TABLE shipments (order_id STRING, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (...);
    CREATE TABLE rates (
        currency STRING, rate DECIMAL(32, 2), at TIMESTAMP(3) METADATA FROM `values.source.timestamp` VIRTUAL,
        WATERMARK FOR at AS at - INTERVAL '15' SECOND, PRIMARY KEY (currency) NOT ENFORCED
    ) WITH ('connector' = 'kafka', 'value.format' = 'debezium-json', /* ... */);
"""
_TEN, _FIVE, _TWO, _ONE = (f"INTERVAL '{n}' MINUTES" for n in (10, 5, 2, 1))
_SUM = "SELECT window_start, window_end, SUM(price) AS total FROM {} GROUP BY window_start, window_end"
_BY = "SELECT window_start, window_end, seller, SUM(price) AS total FROM {} GROUP BY window_start, window_end, {}"
_OF = "TABLE offers, DESCRIPTOR(at)"
_NAMED = "DATA => TABLE offers, TIMECOL => DESCRIPTOR(at)"
_TUMBLE, _HOP = f"TUMBLE({_OF}, {_TEN})", f"HOP({_OF}, {_FIVE}, {_TEN})"
_CUMULATE, _SESSION = f"CUMULATE({_OF}, {_TWO}, {_TEN})", f"SESSION({_OF}, {_FIVE})"
_PARTED = f"SESSION(TABLE offers PARTITION BY {{}}, DESCRIPTOR(at), {_FIVE})"
_SHIFTED = f"TUMBLE({_OF}, {_TEN}, {_ONE})"
_EMIT = "CUMULATE({}, {}, {}, {}INTERVAL '0' SECOND, {}TRUE)"
_SIDE = f"(SELECT * FROM TABLE(TUMBLE(TABLE {{}}, DESCRIPTOR(at), {_FIVE})))"
_L, _R = _SIDE.format("lefts"), _SIDE.format("rights")
_SAME = "L.window_start = R.window_start AND L.window_end = R.window_end"
_NUMBERED = "SELECT {} FROM (SELECT {}, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS num FROM {}) WHERE num {}"
_COLUMNS = "at, price, item, seller, window_start, window_end"

PAGES = {
    "window-tvf": [
        f"SELECT * FROM {_TUMBLE}",
        f"SELECT * FROM TUMBLE({_NAMED}, SIZE => {_TEN})",
        _SUM.format(_TUMBLE),
        f"SELECT * FROM {_HOP}",
        f"SELECT * FROM HOP({_NAMED}, SLIDE => {_FIVE}, SIZE => {_TEN})",
        _SUM.format(_HOP),
        f"SELECT * FROM {_CUMULATE}",
        f"SELECT * FROM CUMULATE({_NAMED}, STEP => {_TWO}, SIZE => {_TEN})",
        _SUM.format(_CUMULATE),
        _SUM.format(_EMIT.format(_OF, _TWO, _TEN, "", "")),
        _SUM.format(_EMIT.format(_NAMED, f"STEP => {_TWO}", f"SIZE => {_TEN}", "`OFFSET` => ", "EMITONLYONUPDATE => ")),
        f"SELECT * FROM {_PARTED.format('item')}",
        f"SELECT * FROM SESSION(DATA => TABLE offers PARTITION BY item, TIMECOL => DESCRIPTOR(at), GAP => {_FIVE})",
        f"SELECT window_start, window_end, item, SUM(price) AS total FROM {_PARTED.format('item')} GROUP BY item, window_start, window_end",
        f"SELECT * FROM {_SESSION}",
        f"SELECT * FROM SESSION({_NAMED}, GAP => {_FIVE})",
        _SUM.format(_SESSION),
        f"SELECT * FROM {_SHIFTED}",
        f"SELECT * FROM TUMBLE({_NAMED}, SIZE => {_TEN}, `OFFSET` => {_ONE})",
        _SUM.format(_SHIFTED),
    ],
    "window-agg": [
        _SUM.format(_TUMBLE),
        _SUM.format(_HOP),
        _SUM.format(_CUMULATE),
        _BY.format(_PARTED.format("seller"), "seller"),
        _SUM.format(_SESSION),
        _BY.format(_TUMBLE, "GROUPING SETS ((seller), ())"),
        _BY.format(_TUMBLE, "ROLLUP (seller)"),
        _BY.format(_TUMBLE, "CUBE (seller, item)"),
        _BY.format(_TUMBLE, "GROUPING SETS ((seller, item), (seller), (item), ())"),
        (
            "CREATE VIEW first AS SELECT window_start AS s, window_end AS e, window_time AS at, SUM(price) AS part "
            f"FROM TUMBLE({_OF}, {_FIVE}) GROUP BY seller, window_start, window_end, window_time;"
            f"SELECT window_start, window_end, SUM(part) AS total FROM TUMBLE(TABLE first, DESCRIPTOR(at), {_TEN}) GROUP BY window_start, window_end"
        ),
        "SELECT product, TUMBLE_START(at, INTERVAL '1' DAY) AS s, SUM(amount) FROM orders GROUP BY TUMBLE(at, INTERVAL '1' DAY), product",
    ],
    "window-topn": [
        _NUMBERED.format(
            "*",
            "*",
            "window_start, window_end",
            "price DESC",
            f"({_BY.format(_TUMBLE, 'seller').replace('total', 'price, COUNT(*) AS cnt')})",
            "<= 3",
        ),
        _NUMBERED.format("*", _COLUMNS, "window_start, window_end", "price DESC", _TUMBLE, "<= 3"),
    ],
    "window-deduplication": [
        _NUMBERED.format("*", _COLUMNS, "window_start, window_end", "at DESC", f"TABLE({_TUMBLE})", "<= 1"),
    ],
    "window-join": [
        (
            "SELECT L.num AS l_num, L.id AS l_id, R.num AS r_num, R.id AS r_id, COALESCE(L.window_start, R.window_start) AS window_start, "
            f"COALESCE(L.window_end, R.window_end) AS window_end FROM {_L} L FULL JOIN {_R} R ON L.num = R.num AND {_SAME}"
        ),
        f"SELECT * FROM {_L} L WHERE L.num IN (SELECT num FROM {_R} R WHERE {_SAME})",
        f"SELECT * FROM {_L} L WHERE EXISTS (SELECT * FROM {_R} R WHERE L.num = R.num AND {_SAME})",
        f"SELECT * FROM {_L} L WHERE L.num NOT IN (SELECT num FROM {_R} R WHERE {_SAME})",
        f"SELECT * FROM {_L} L WHERE NOT EXISTS (SELECT * FROM {_R} R WHERE L.num = R.num AND {_SAME})",
    ],
    "over-agg": [
        (
            "SELECT id, at, amount, SUM(amount) OVER (PARTITION BY product ORDER BY at RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) "
            "AS last_hour FROM orders"
        ),
        (
            "SELECT id, at, amount, SUM(amount) OVER w AS total, AVG(amount) OVER w AS mean FROM orders WINDOW w AS (PARTITION BY product "
            "ORDER BY at RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)"
        ),
    ],
    "topn": [
        _NUMBERED.format("*", "*", "category", "sales DESC", "sales", "<= 5"),
        _NUMBERED.format("product, category, name, sales", "*", "category", "sales DESC", "sales", "<= 5"),
    ],
    "deduplication": [
        _NUMBERED.format("id, product, amount", "*", "id", "came ASC", "orders", "= 1"),
    ],
    "joins": [
        "SELECT * FROM orders o, shipments s WHERE o.id = s.order_id AND o.at BETWEEN s.at - INTERVAL '4' HOUR AND s.at",
        (
            "SELECT id, price, orders.currency, rate, orders.at FROM orders LEFT JOIN rates FOR SYSTEM_TIME AS OF orders.at "
            "ON orders.currency = rates.currency"
        ),
    ],
}

"""Rows with nested fields, and the same flat."""

FLAT = [
    {"ts": 1, "k": "a", "v": 3, "id": 1, "gone": False, "w": 1.5},
    {"ts": 2, "k": "b", "v": 1, "id": 2, "gone": False, "w": 0.5},
    {"ts": 3, "k": "a", "v": None, "id": 1, "gone": None, "w": 2.5},
    {"ts": 12, "k": "a", "v": 7, "id": 3, "gone": True, "w": None},
    {"ts": 13, "k": None, "v": None, "id": None, "gone": None, "w": None},
    {"ts": 4, "k": "b", "v": 5, "id": 4, "gone": False, "w": 4.5},
]
DEEP = {"ts": "t.ts", "k": "r.s.k", "v": "r.s.v", "id": "R.id", "gone": "r.gone", "w": "`d.t`.`w.x`"}


def nested(row):
    """The row with structs, which are null where all their fields are."""
    s = None if row["k"] is row["v"] is None else {"k": row["k"], "v": row["v"]}
    r = None if s is row["id"] is row["gone"] is None else {"s": s, "id": row["id"], "gone": row["gone"]}
    return {"t": {"ts": row["ts"]}, "r": r, "d.t": None if row["w"] is None else {"w.x": row["w"]}}

"""Law: a segmented table holds what a dict would, and a step reads and writes only the segments that it changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from beamish.contract.stored import DictStore, Layout
from beamish.tables.segments import Segmented, SegmentStore
from beamish.tables.working_table import Companions, Pool, WorkingTable

LAYOUT = Layout("t", ("least",), companion=("c", "has_companions"))
KEYS = st.integers(0, 39)
STEPS = st.lists(
    st.tuples(
        st.dictionaries(KEYS, st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=2)), max_size=6),
        st.sets(KEYS, max_size=4),
        st.sets(st.integers(0, 7), max_size=2),
        st.sampled_from([5, 5, 10]),
    ),
    max_size=6,
)


class Counting(DictStore):
    """A store that remembers which segments were read and written."""

    def __init__(self):
        super().__init__()
        self.used = set()

    def get(self, name, default=None):
        self.used.add(name)
        return super().get(name, default)

    def put(self, name, value):
        self.used.add(name)
        super().put(name, value)


class Table(WorkingTable):
    def __init__(self):
        self.keys, self.values = Pool(pa.schema([("k", pa.int64())])), Pool(pa.schema([("v", pa.int64())]))
        super().__init__({"number": ("int64", 0)}, {}, {"key.": ("key_at", self.keys)})
        self.companion_rows = Companions({"place": ("int64", 0)}, "v.", self.values)

    def of(self, keys):
        return np.flatnonzero(np.isin(self["number"], sorted(keys)) & ~self["gone"])

    def replace(self, rows):
        """Remove rows of these keys, and append new ones with companions."""
        old = self.of(rows)
        self["gone"][old] = self["touched"][old] = True
        numbers = np.array(list(rows), np.int64)
        values = pa.table({"k": pa.array([value for value, _ in rows.values()], pa.int64())})
        at = self.append(len(rows), {"number": numbers, "key_at": self.keys.append(values)})
        self["touched"][at] = True
        for owner, (_, companions) in zip(at, rows.values(), strict=True):
            own = pa.table({"v": pa.array(companions, pa.int64())})
            count = len(companions)
            added = {"place": np.arange(count), "owner": np.full(count, owner), "values_at": self.values.append(own)}
            self.companion_rows.add(added)

    def contents(self):
        """Value and companions of each row, by its number."""
        at = np.flatnonzero(~self["gone"])
        values = self.keys.take(self["key_at"][at])["k"].to_pylist()
        found = {int(row): (int(self["number"][row]), value, []) for row, value in zip(at, values, strict=True)}
        of = self.companion_rows
        for owner, value in zip(of["owner"], self.values.take(of["values_at"])["v"].to_pylist(), strict=True):
            if int(owner) in found:
                found[int(owner)][2].append(value)
        return {number: (value, companions) for number, value, companions in found.values()}


def opened(store):
    return Segmented(SegmentStore(store, LAYOUT), Table())


@given(STEPS)
def test_a_segmented_table_agrees_with_a_dict(steps):
    store, model, span = Counting(), {}, 5
    for rows, removed, dropped, next_span in steps:
        table, used = opened(store), {key // span for key in (*rows, *removed)}
        store.used.clear()
        table.load({key // span for key in (*rows, *removed) if key in model})  # new rows need not be looked for
        table.rows.replace(rows)
        at = table.rows.of(removed)
        table.rows["gone"][at] = table.rows["touched"][at] = True
        model = {key: row for key, row in (model | rows).items() if key not in removed}
        table.drop(np.isin(table.segments.index["segment"], sorted(dropped - used)))
        model = {key: row for key, row in model.items() if key // span not in dropped - used}
        if next_span != span:
            span = next_span
            table.rewrite(table.segments.index["segment"].tolist())
            used = set(range(8))
        table.write(
            lambda of=table.rows, by=span: of["number"] // by,
            lambda at, runs, of=table.rows: {"least": runs.least(of["number"][at])},
        )
        table.segments.save()
        numbers = {int(name[3:]) for name in store.used if name[2] in "sc"}
        assert numbers <= used
        again = opened(store)
        by_segment = {}
        for key in model:
            by_segment.setdefault(key // span, []).append(key)
        index = again.segments.index
        assert dict(zip(index["segment"].tolist(), index["least"].tolist(), strict=True)) == {
            number: min(keys) for number, keys in by_segment.items()
        }
        assert {name for name in store if name[2] == "s"} == {f"t/s{number}" for number in by_segment}
        assert {name for name in store if name[2] == "c"} == {
            f"t/c{number}" for number, keys in by_segment.items() if any(model[key][1] for key in keys)
        }
        again.load_all()
        assert again.rows.contents() == model

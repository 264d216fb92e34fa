"""The engine without Spark, query by query: CPU seconds per million events of packing and of steps, and what of state they read and wrote.

    python -m benchmarks.nexmark.engine_alone --folder build/nexmark/3000000-1-100000-1000-40 [--queries "q5 q8"] [--profile 40]

A batch is a file of each input, as on Spark, and each shard is opened from its bytes in each batch, whose first quarter is not counted.
``--profile 40``: the 40 functions that take most of it, by their own time and by that of all that they call.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from beamish.contract.stored import DictStore
from beamish.fusion.groups import FUSE, GroupedFlow
from beamish.kernels.column_names import EVENT_TIME
from beamish.source import Source
from beamish.spark.compile.stream import needs_reports
from benchmarks.nexmark.events import Settings, rows_read
from benchmarks.nexmark.on_beamish import queries
from benchmarks.nexmark.on_flink import QUERIES, TABLES

DELAY_US = 4_000_000
WARM = 0.25
SHARDS = 2


class CountingStore(DictStore):
    """A store that counts what is read and written."""

    def __init__(self, used: Counter[str]) -> None:
        super().__init__()
        self.used = used

    def get(self, name: str) -> bytes | None:
        found = super().get(name)
        self.used["gets"] += 1
        self.used["got_bytes"] += len(found or b"")
        return found

    def put(self, name: str, value: bytes) -> None:
        self.used["puts"] += 1
        self.used["put_bytes"] += len(value)
        super().put(name, value)


class Node:
    """A group of stages with its shards, and those before it."""

    def __init__(self, flow: GroupedFlow, batches: Mapping[str | None, list[pa.Table]], used: Counter[str]) -> None:
        self.flow, self.used, self.batches = flow, used, batches
        self.inputs = [one if isinstance(one, Source) else Node(one, batches, used) for one in flow.inputs]
        self.stores = [CountingStore(used) for _ in range(flow.operator.shards)]
        self.watermark_us: int | None = None

    def step(self, number: int, sources_us: Mapping[str | None, int | None]) -> pa.Table:
        """A batch."""
        operator, inputs_us = self.flow.operator, []
        payloads: dict[int, list[bytes]] = {}
        for place, taken in enumerate(self.inputs):
            if isinstance(taken, Node):
                rows = taken.step(number, sources_us)
                inputs_us.append(taken.watermark_us)
                pieces = [operator.takes[place].with_fields(rows)] if rows.num_rows else []
            else:
                inputs_us.append(sources_us[taken.name])
                names = [*operator.reads(place), EVENT_TIME]
                pieces = [self.batches[taken.name][number].select(names)]
            begun = time.process_time()
            packed = list(operator.pack_pieces(place, pieces))
            self.used["pack_us"] += int((time.process_time() - begun) * 1e6)
            for shard, payload in packed:
                self.used["payload_bytes"] += len(payload)
                payloads.setdefault(shard, []).append(payload)
        out = []
        for place, store in enumerate(self.stores):
            begun = time.process_time()
            shard = operator.open(store)
            out.append(shard.step(inputs_us, None, payloads.get(place, [])))
            self.watermark_us = shard.watermark_us
            self.used["step_us"] += int((time.process_time() - begun) * 1e6)
        made = pa.concat_tables(out)
        self.used["panes"] += made.num_rows
        return made

    def all_stores(self) -> Iterator[CountingStore]:
        """The stores of all shards."""
        for taken in self.inputs:
            if isinstance(taken, Node):
                yield from taken.all_stores()
        yield from self.stores


def batches_of(folder: Path, query: str, event_time: str) -> dict[str, list[pa.Table]]:
    """The files of each input, as the packer gets them."""
    found: dict[str, list[pa.Table]] = {}
    for name, columns in QUERIES[query].columns.items():
        kind = TABLES[name]
        for path in sorted((folder / kind).iterdir()):
            table = pq.read_table(path, columns=list(columns))
            schema = pa.schema(
                [
                    (one.name, pa.timestamp("us", "UTC") if pa.types.is_timestamp(one.type) else one.type)
                    for one in table.schema
                ]
            )
            table = table.cast(schema)
            table = table.append_column("p_time", pa.repeat(table["dateTime"][-1], table.num_rows))
            table = table.append_column(EVENT_TIME, table[event_time].cast(pa.int64()))
            found.setdefault(kind, []).append(table)
    return found


def measure(folder: Path, query: str, profile: cProfile.Profile | None, batches: int | None) -> dict[str, Any]:
    """A query over all batches."""
    about = json.loads((folder / "about.json").read_text("utf-8"))
    settings = Settings(*(about[name] for name in ("events", "seed", "rate", "group")))
    flow = queries(settings.longest_auction_ms)[query].flow
    names = [source.name for source in flow.sources]
    event_time = str(flow.sources[0].event_time)
    read = batches_of(folder, query, event_time)
    tables: dict[str | None, list[pa.Table]] = {name: read[name or "bids"] for name in names}
    schemas = {name: own[0].drop_columns([EVENT_TIME]).schema for name, own in tables.items()}
    bound = FUSE.grouped(flow.bind(schemas, shards=SHARDS))
    reports = needs_reports(bound)
    used: Counter[str] = Counter()
    root = Node(bound, tables, used)
    latest: dict[str | None, int | None] = dict.fromkeys(names)
    count = len(next(iter(tables.values())))
    rows, warm, began = 0, int(count * WARM), time.process_time()
    for number in range(min(count, batches or count)):
        if number == warm:
            used.clear()
            began = time.process_time()
        known = [us for us in latest.values() if us is not None]
        least = min(known) if len(known) == len(latest) else None
        sources_us = latest if reports else dict.fromkeys(names, least)
        if profile is not None and number >= warm:
            profile.enable()
        root.step(number, sources_us)
        if profile is not None:
            profile.disable()
        if number >= warm:
            rows += sum(own[number].num_rows for own in tables.values())
        for name, own in tables.items():
            greatest = int(np.max(own[number][EVENT_TIME].to_numpy())) - DELAY_US
            latest[name] = max(greatest, latest[name] or greatest)
    assert rows_read(query, folder)
    stored = sum(len(value) for store in root.all_stores() for value in store.values())
    done = min(count, batches or count) - warm
    return {
        "query": query,
        "groups": [sorted(one) for one in bound.groups],
        "reports": reports,
        "cpu": round((time.process_time() - began) / rows * 1e6, 2),
        "pack": round(used["pack_us"] / rows, 2),
        "step": round(used["step_us"] / rows, 2),
        "panes/batch": used["panes"] // done,
        "payload kB/batch": used["payload_bytes"] // done // 1000,
        "gets/batch": round(used["gets"] / done, 1),
        "got kB/batch": used["got_bytes"] // done // 1000,
        "puts/batch": round(used["puts"] / done, 1),
        "put kB/batch": used["put_bytes"] // done // 1000,
        "state kB": stored // 1000,
    }


def main() -> None:
    """Measure queries and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--queries", default="q4 q5 q6 q7 q8 q9 q11 q11-early q12 q18 q19")
    parser.add_argument("--batches", type=int)
    parser.add_argument("--profile", type=int, default=0)
    said = parser.parse_args()
    pa.set_cpu_count(1)
    for query in said.queries.split():
        profile = cProfile.Profile() if said.profile else None
        print(json.dumps(measure(said.folder, query, profile, said.batches)), flush=True)
        if profile is not None:
            stats = pstats.Stats(profile)
            stats.sort_stats("tottime").print_stats(said.profile)
            stats.sort_stats("cumulative").print_stats("beamish", said.profile * 2)


if __name__ == "__main__":
    main()

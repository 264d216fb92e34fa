"""Damage stored values: does a query that reads one produce the right panes, or stop with a clear error?

    python tools/damage.py [--runs 20000] [--values 1000000] [--seed 1]

``--runs``: pipelines of each kind run half a script; then one of their stored values is damaged (bytes flipped, overwritten, left out or put
in, the end cut off, the value of another entry, shard or query in its place, or of the same one half as far into the script, or none), and
they run the rest. The output must equal that of the undamaged run, or be a StateError. ``--values``: this many further damaged values are only
read, since nothing looks at a value before its checksum is right. Ends with 1 if there was anything else.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

import beamish as bm
from beamish.accumulations import Collect, Count, InnerJoin, LeftOuterJoin, Max, Sum
from beamish.contract.stored import DictStore
from beamish.local import Variation, _Node, _run
from beamish.script import Event, ScriptRows, as_step, script_rows
from beamish.tables.entries import SealedStore, new_word
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always, Repeatedly

SHARDS = 2
_ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("k")
_TIMED = (
    _ROWS.window(bm.FixedWindows(20)).allowed_lateness(40).trigger(AfterWatermark(early=AfterCount(2), late=Always()))
)
_TABLE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("k").versions(100)
_BOTH = bm.merge(a=_ROWS, b=_ROWS)
PIPELINES: dict[str, bm.Pipeline] = {
    "fixed windows": _TIMED.accumulating().accumulate(n=Count(), s=Sum("x"), all=Collect("t")),
    "sessions": _TIMED.window(bm.Sessions(7)).accumulating_and_retracting().accumulate(n=Count(), most=Max("x")),
    "all of time, on the clock": _ROWS.window(bm.GlobalWindow())
    .trigger(Repeatedly(AfterProcessingTime(3)))
    .discarding()
    .accumulate(n=Count()),
    "rows": _ROWS.window(bm.CountWindows(4, 2)).allowed_lateness(rows=9).accumulating().accumulate(of=Collect("x")),
    "retained": _TIMED.retain(windows=2).accumulating().accumulate(n=Count()),
    "once per window": _TIMED.deduplicate("x").accumulating().accumulate(n=Count()),
    "rows, each once": bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).deduplicate("x", within=50),
    "two windowings": _TIMED.window({"a": bm.FixedWindows(10), "b": bm.Sessions(5)})
    .accumulating()
    .accumulate(n=Count()),
    "suppressed": _TIMED.accumulating().accumulate(n=Count()).suppress(bm.UntilWindowCloses()),
    "changes": _ROWS.changes().suppress(bm.UntilTimeLimit(30, clock="event")),
    "a table": _TABLE,
    "as-of join": bm.as_of_join(a=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)), b=_TABLE),
    "outer join": _BOTH.window(bm.FixedWindows(20))
    .allowed_lateness(40)
    .accumulating()
    .accumulate(p=LeftOuterJoin("a", "b")),
    "each pair once": _BOTH.window(bm.FixedWindows(20))
    .trigger(Always())
    .discarding()
    .accumulate(p=InnerJoin("a", "b", once=True)),
    "a chain": _TIMED.accumulating_and_retracting()
    .accumulate(n=Count())
    .then(bm.Pipeline().key_by("n").window(bm.FixedWindows(60)).accumulating().accumulate(keys=Count())),
}


def script(chance: random.Random, pipeline: bm.Pipeline) -> Sequence[Event]:
    """Bundles of rows, and advances of the watermark and the clock."""
    names = [source.name for source in pipeline.flow.sources]
    stream, clock = TestStream(), 1_700_000_000
    clocked = pipeline is PIPELINES["all of time, on the clock"]
    for at in range(0, 90, 10):
        for name in names:
            stream = stream.add([_row(chance, at) for _ in range(chance.randint(1, 8))], input=name)
        stream, clock = stream.advance_watermark_to(at - 5 + 1000), clock + 2
        if clocked:
            stream = stream.advance_processing_time_to(clock)
    return stream.advance_watermark_to_infinity().events


def _row(chance: random.Random, at: int) -> dict[str, Any]:
    x = chance.randint(0, 30)
    return {"ts": 1000 + at + chance.randint(-15, 10), "k": chance.choice("abcdef"), "x": x, "t": "v" * x}


class Case:
    """A pipeline in the middle of a script.

    Attributes:
        name: the pipeline's.
        stored: the entries of each shard, of all stages.
        before: the same, halfway to it in the script.
        words: the word of each shard.
        sums: the checksums of each shard's entries.
        right: the output of the rest of the script.
    """

    def __init__(self, name: str, chance: random.Random) -> None:
        flow = PIPELINES[name].flow.completed
        flow.check()
        events = script(chance, PIPELINES[name])
        half = len(events) // 2
        rows = script_rows(flow, events)
        self.name, self._bound = name, flow.bind(rows.schemas, shards=SHARDS)
        self.words = [new_word() for _ in range(SHARDS * len(flow.flows))]
        self.before, _ = self._after(events[: half // 2], rows)
        self.stored, self.sums = self._after(events[:half], rows)
        steps = [as_step(event) for event in events[:half]]
        taken = Counter(step.input for step in steps if step.rows)
        rest = {source: tables[taken[source] :] for source, tables in rows.tables.items()}
        self._events, self._rest = events[half:], attrs.evolve(rows, tables=rest)
        self.right = self.rest(self.stored)

    def _begin(self, sealed: Sequence[SealedStore]) -> _Node:
        """The stages, with their stores."""
        root = _Node(self._bound, Variation(round_trip=True))
        for number, node in enumerate(root.nodes()):
            node._stores = sealed[number * SHARDS : (number + 1) * SHARDS]  # type: ignore[assignment]  # noqa: SLF001
            node._shards = [node._operator.open(store) for store in node._stores]  # noqa: SLF001
        return root

    def _after(
        self, events: Sequence[Event], rows: ScriptRows
    ) -> tuple[list[Mapping[str, bytes]], list[dict[str, int]]]:
        """The stored state after the events, and its checksums."""
        stores = [DictStore() for _ in self.words]
        sealed = [self.sealed(number, store, {}) for number, store in enumerate(stores)]
        for _ in _run(self._begin(sealed), events, rows):
            pass
        return list(stores), [store.sums or {} for store in sealed]

    def sealed(self, number: int, entries: Mapping[str, bytes], sums: Mapping[str, int] | None = None) -> SealedStore:
        """The sealed store of a shard; by default with the checksums of half the script."""
        store = entries if isinstance(entries, DictStore) else DictStore(entries)
        return SealedStore(
            store, number % SHARDS, self.words[number], dict(self.sums[number] if sums is None else sums)
        )

    def rest(self, stored: Sequence[Mapping[str, bytes]]) -> list[list[Any]]:
        """The output of the rest of the script, run from the stored state."""
        root = self._begin([self.sealed(number, dict(entries)) for number, entries in enumerate(stored)])
        return [rows.to_pylist() for rows in _run(root, self._events, self._rest)]


def damaged(chance: random.Random, value: bytes, others: Sequence[bytes], before: bytes | None) -> bytes | None:
    """A damaged value in place of this one; None: deleted.

    Args:
        chance: which.
        value: this one.
        others: whole values that were stored elsewhere.
        before: the one that was stored here before.
    """
    at = chance.randrange(len(value))
    some = chance.randbytes(chance.randint(1, 8))
    return chance.choice(
        [
            lambda: value[:at] + bytes([value[at] ^ 1 << chance.randrange(8)]) + value[at + 1 :],
            lambda: value[:at] + some + value[at + len(some) :],
            lambda: value[:at] + some + value[at:],
            lambda: value[:at] + value[at + len(some) :],
            lambda: value[:at],
            lambda: value + some,
            lambda: value[:at] + bytes(len(value) - at),
            lambda: chance.choice(others),
            lambda: before,
        ]
    )()


def run(cases: Sequence[Case], chance: random.Random) -> str:
    """Damage a value of a case and run the rest; returns the outcome."""
    case, shard, name, wrong = _damage(cases, chance)
    if wrong == case.stored[shard][name]:
        return "the same value"
    stored = [dict(entries) for entries in case.stored]
    stored[shard] = with_value(stored[shard], name, wrong)
    try:
        out = case.rest(stored)
    except bm.StateError:
        return "an error that says so"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is to be shown
        return f"WRONG: {case.name}, {name!r}: {type(error).__name__}: {error}"
    return (
        "the right panes: it was not read"
        if repr(out) == repr(case.right)
        else f"WRONG: {case.name}, {name!r}: other panes"
    )


def with_value(entries: Mapping[str, bytes], name: str, value: bytes | None) -> dict[str, bytes]:
    """Entries with another value of one, or without it (None)."""
    return {each: of for each, of in entries.items() if each != name} | ({} if value is None else {name: value})


def read(cases: Sequence[Case], chance: random.Random) -> str:
    """Damage a value and read it; returns the outcome."""
    case, shard, name, wrong = _damage(cases, chance)
    if wrong == case.stored[shard][name]:
        return "the same value"
    try:
        case.sealed(shard, with_value(case.stored[shard], name, wrong)).get(name)
    except bm.StateError:
        return "an error that says so"
    return f"WRONG: {case.name}, {name!r}: a wrong value is taken"


def _damage(cases: Sequence[Case], chance: random.Random) -> tuple[Case, int, str, bytes | None]:
    """A case, one of its shards, the name of an entry, and what is there in place of its value."""
    case = chance.choice(cases)
    shard = chance.choice([number for number, entries in enumerate(case.stored) if entries])
    name = chance.choice(list(case.stored[shard]))
    others = [*case.stored[shard].values(), *chance.choice(chance.choice(cases).stored).values()]
    before = case.before[shard].get(name)
    return case, shard, name, damaged(chance, case.stored[shard][name], others, before)


def main() -> int:
    """Damage, count and print; 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    chance = random.Random(said.seed)  # noqa: S311 - it is no secret
    cases = [Case(name, chance) for name in PIPELINES]
    wrong = 0
    for what, attempt, times in (("runs", run, said.runs), ("values", read, said.values)):
        begin = time.perf_counter()
        outcomes = Counter(attempt(cases, chance) for _ in range(times))
        print(f"{what}: {times:,} in {time.perf_counter() - begin:,.0f} s, seed {said.seed}")
        for outcome, count in outcomes.most_common():
            print(f"  {count:>9,}  {outcome}")
            wrong += outcome.startswith("WRONG")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Draw cases, run them on a peer and on beamish, and compare.

    python -m peers.compare beam [--cases 2000] [--seed N] [--record] [--note]
    python -m peers.compare beam --again

The cases of decided.json come first, then drawn ones. A difference is decided if a line of decided.json fits it. Others are printed, the
smallest case per group, shrunk; then it ends with 1. So does a decision whose case no longer shows it. ``--again`` compares the
recorded answers instead, without the peer's program, and stores which decisions explain them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import attrs

from peers.cases import drawn, read_lines, write_lines
from peers.peer import Case, Peer, Program, Row

DECIDED = Path(__file__).parent / "decided.json"
RUNS = Path(__file__).parent / "runs.json"
"""The counts of a run per peer, for docs/peers.md."""
RECORDED = Path(__file__).parents[1] / "tests" / "peers" / "recorded"
"""Cases with the answers of each peer."""
PER_PROCESS = 500
"""Cases run by one process of the peer, which may slow down; the next ones run beside."""
RECORDED_CASES = 150
"""Cases recorded per peer: those of the decisions, then the first ones drawn."""
SHOWN = 10
"""Groups of undecided differences that are shrunk and printed."""


@attrs.frozen
class Difference:
    """A row without a counterpart, or a pair of rows with different fields.

    Attributes:
        what: "only here", "only there", or the names of the fields.
        facts: ``what``, and what the peer tells of it: a decision refers to these.
        group: differences of a group are likely to have one cause.
    """

    what: str
    here: Row | None
    there: Row | None
    facts: Mapping[str, Any]
    group: str


@attrs.frozen
class Decision:
    """A decided difference.

    Attributes:
        name: its name.
        peer: the peer.
        kind: "rule": beamish differs on purpose; "fault": of the peer.
        rule: the anchor of our rule.
        issue: the public number of the fault, or "".
        text: the difference, in a sentence.
        where: the facts of differences that it explains; a list: any of these values.
        case: a minimal case.
    """

    name: str
    peer: str
    kind: str
    rule: str
    issue: str
    text: str
    where: Mapping[str, Any]
    case: Case

    def fits(self, difference: Difference) -> bool:
        """Whether it explains the difference."""
        facts = difference.facts
        return all(
            facts.get(name) in (value if isinstance(value, list) else [value]) for name, value in self.where.items()
        )


@cache
def decisions(peer: str) -> list[Decision]:
    """The decided differences from a peer."""
    return [Decision(**one) for one in json.loads(DECIDED.read_text("utf-8")) if one["peer"] == peer]


def peer_of(name: str) -> Peer:
    """The peer with this name."""
    peer: Peer = import_module(f"peers.{name}.peer").PEER
    return peer


def differences(peer: Peer, case: Case, here: Sequence[Row], there: Sequence[Row]) -> list[Difference]:
    """All differences of the two answers; of a stream none after a row without a counterpart."""
    if there and "failed" in there[0]:
        return [_difference(peer, case, "failed", None, there[0])]
    ours, theirs = _streams(here), _streams(there)
    return [
        _difference(peer, case, *pair)
        for stream in sorted(ours.keys() | theirs.keys())
        for pair in _in_stream(ours.get(stream, {}), theirs.get(stream, {}))
    ]


def _difference(peer: Peer, case: Case, what: str, here: Row | None, there: Row | None) -> Difference:
    facts = {"what": what, **peer.facts(case, here, there)}
    group = " ".join([what, *(str(facts.get(name, "")) for name in peer.groups)])
    return Difference(what, here, there, facts, group)


def _streams(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    streams: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        streams[json.dumps(row["stream"])][json.dumps(row["place"])] = row
    return streams


def _in_stream(ours: Mapping[str, Row], theirs: Mapping[str, Row]) -> Iterator[tuple[str, Row | None, Row | None]]:
    for place in sorted(ours.keys() | theirs.keys(), key=json.loads):
        one, other = ours.get(place), theirs.get(place)
        if one is None or other is None:
            yield "only there" if one is None else "only here", one, other
            return
        fields = [name for name in one if one[name] != other[name]]
        if fields:
            yield ", ".join(fields), one, other


def explained(difference: Difference, decided: Sequence[Decision]) -> Decision | None:
    """The first decision that fits."""
    return next((one for one in decided if one.fits(difference)), None)


def shrunk(
    program: Program, case: Case, difference: Difference, decided: Sequence[Decision]
) -> tuple[Case, Difference]:
    """A smaller case with an undecided difference of the same kind."""
    for smaller in program.peer.smaller(case):
        (there,) = program.answers([smaller])
        for found in differences(program.peer, smaller, program.peer.here(smaller), there):
            if found.group == difference.group and explained(found, decided) is None:
                return shrunk(program, smaller, found, decided)
    return case, difference


@attrs.define
class Report:
    """The result of a run, or of a part of it.

    Attributes:
        name: the peer's name.
        recorded: cases with answers and the names of decisions.
        cases, agreed: how many.
        kinds, agreed_kinds: how many, by kind.
        explained: how many, by decision.
        undecided: by group.
        stale: decisions whose case no longer shows them.
    """

    name: str
    recorded: list[dict[str, Any]] = attrs.Factory(list)
    cases: int = 0
    agreed: int = 0
    kinds: Counter[str] = attrs.Factory(Counter)
    agreed_kinds: Counter[str] = attrs.Factory(Counter)
    explained: Counter[str] = attrs.Factory(Counter)
    undecided: defaultdict[str, list[tuple[Case, Difference]]] = attrs.Factory(lambda: defaultdict(list))
    stale: list[str] = attrs.Factory(list)

    @property
    def peer(self) -> Peer:
        """The peer."""
        return peer_of(self.name)

    def add(self, case: Case, there: list[Row]) -> None:
        """Compare a drawn case."""
        found, names = self.compared(case, there)
        kinds = set(self.peer.kinds(case))
        self.cases += 1
        self.kinds.update(kinds)
        self.explained.update(names)
        if not found:
            self.agreed += 1
            self.agreed_kinds.update(kinds)

    def add_decided(self, decision: Decision, there: list[Row]) -> None:
        """Compare the case of a decision."""
        if decision.name not in self.compared(decision.case, there)[1]:
            self.stale.append(decision.name)

    def compared(self, case: Case, there: list[Row]) -> tuple[list[Difference], list[str]]:
        """The differences of a case, and the names of the decisions that explain them."""
        found = differences(self.peer, case, self.peer.here(case), there)
        decided = [explained(difference, decisions(self.name)) for difference in found]
        for difference, decision in zip(found, decided, strict=True):
            if decision is None:
                self.undecided[difference.group].append((case, difference))
        names = sorted({decision.name for decision in decided if decision is not None})
        if len(self.recorded) < RECORDED_CASES:
            self.recorded.append({"case": case, "there": there, "decided": names})
        return found, names

    def join(self, part: Report) -> None:
        """Add the counts of a part."""
        self.recorded = [*self.recorded, *part.recorded][:RECORDED_CASES]
        self.cases, self.agreed = self.cases + part.cases, self.agreed + part.agreed
        self.kinds += part.kinds
        self.agreed_kinds += part.agreed_kinds
        self.explained += part.explained
        for group, found in part.undecided.items():
            self.undecided[group] += found

    def lines(self) -> Iterator[str]:
        """The counts."""
        yield f"{self.name} {self.peer.version}: {self.cases:,} cases, {self.agreed:,} agree"
        yield "kinds: " + ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.most_common())
        yield from (f"decided: {name} in {count:,} cases" for name, count in self.explained.most_common())
        yield from (f"STALE {name}: its case no longer shows it" for name in self.stale)
        for group, found in sorted(self.undecided.items(), key=lambda one: -len(one[1])):
            yield f"UNDECIDED {len(found):,} times: {group}"


def part(name: str, cases: list[Case]) -> Report:
    """Compare some cases, by one process of the peer."""
    report = Report(name)
    with Program.start(report.peer) as program:
        for case, there in zip(cases, program.answers(cases), strict=True):
            report.add(case, there)
    return report


def _parts(peer: Peer, count: int, seed: int) -> Iterator[list[Case]]:
    cases = drawn(peer.cases, count, seed)
    while some := list(islice(cases, peer.together or PER_PROCESS)):
        yield some


def run(name: str, count: int, seed: int) -> Report:
    """Compare the cases of decisions and drawn ones; print the counts and shrunk cases."""
    report, decided = Report(name), decisions(name)
    with Program.start(report.peer) as program:
        for decision, there in zip(decided, program.answers([one.case for one in decided]), strict=True):
            report.add_decided(decision, there)
    with ProcessPoolExecutor(report.peer.processes or os.cpu_count()) as pool:
        for one in pool.map(part, repeat(name), _parts(report.peer, count, seed)):
            report.join(one)
            print(f"{report.cases:,} cases, {report.agreed:,} agree", end="\r", file=sys.stderr)
    print(*report.lines(), sep="\n")
    with Program.start(report.peer) as program:
        for group, found in islice(report.undecided.items(), SHOWN):
            case, difference = min(found, key=lambda one: len(json.dumps(one[0])))
            case, difference = shrunk(program, case, difference, decided)
            print("\nUNDECIDED", group, json.dumps(case), difference.here, difference.there, sep="\n")
    return report


def again(name: str) -> Report:
    """Compare with the recorded answers; print undecided cases."""
    report, decided = Report(name), decisions(name)
    for line in read_lines(RECORDED / f"{name}.jsonl.gz"):
        report.add(line["case"], line["there"])
    for decision in decided:
        shown = (line["decided"] for line in report.recorded if line["case"] == decision.case)
        if decision.name not in next(shown, []):
            report.stale.append(decision.name)
    print(*report.lines(), sep="\n")
    for group, ((case, difference), *_) in islice(report.undecided.items(), SHOWN):
        print("\nUNDECIDED", group, json.dumps(case), difference.here, difference.there, sep="\n")
    return report


def note(report: Report, seed: int) -> None:
    """Store the counts of a run; those of other peers stay."""
    runs = json.loads(RUNS.read_text("utf-8")) if RUNS.exists() else {}
    runs[report.name] = {
        "version": report.peer.version,
        "seed": seed,
        "cases": report.cases,
        "agreed": report.agreed,
        "kinds": {kind: [cases, report.agreed_kinds[kind]] for kind, cases in sorted(report.kinds.items())},
        "decided": {one.name: report.explained[one.name] for one in decisions(report.name)},
    }
    RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Compare beamish with a peer on drawn cases.")
    parser.add_argument("peers", nargs="+")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--record", action="store_true", help="write the cases and answers for make test")
    parser.add_argument("--note", action="store_true", help="write the counts for docs/peers.md")
    parser.add_argument(
        "--again", action="store_true", help="judge the recorded answers again, without the peer's program"
    )
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    failed = False
    for name in options.peers:
        if not options.again:
            print(f"{name}: seed {seed}", flush=True)
        report = again(name) if options.again else run(name, options.cases, seed)
        if report.undecided or report.stale:
            failed = True
            continue  # docs/peers.md has only runs whose differences are all decided
        if options.record or options.again:
            write_lines(RECORDED / f"{name}.jsonl.gz", report.recorded)
        if options.note and not options.again:
            note(report, seed)
    sys.exit(failed)


if __name__ == "__main__":
    main()

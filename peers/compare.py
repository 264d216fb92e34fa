"""Draw cases, run them on a peer and on beamish, and compare.

    python -m peers.compare beam [--cases 2000] [--seed N] [--record] [--note]
    python -m peers.compare beam --again

The cases of decided.json and chosen.json come first, then drawn ones. A difference is decided if the peer gives what its own rules predict
(``Peer.predicted``), and ours gives what the twin does; a line of decided.json names it. Others are printed, the smallest case per group,
shrunk; then it ends with 1. So does a decision whose case no longer shows it. ``--again`` compares the recorded answers instead, without
the peer's program, and stores which decisions explain them. Answers are kept in build/peers/answers, ours as long as no code changes: a
run with the same seed resumes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, lru_cache
from importlib import import_module
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import attrs

from peers.cases import drawn, read_lines, write_lines
from peers.peer import BUILT, Case, Peer, Program, Row
from peers.twin import by_twin, on_twin
from peers.worth import Quota, tested

DECIDED = Path(__file__).parent / "decided.json"
CHOSEN = Path(__file__).parent / "chosen.json"
RUNS = Path(__file__).parent / "runs.json"
"""The counts of a run per peer, for docs/peers.md."""
RECORDED = Path(__file__).parents[1] / "tests" / "peers" / "recorded"
"""Cases with the answers of each peer."""
PER_PROCESS = 300
"""Cases run by one process of the peer, which may slow down; the next ones run beside."""
ANSWERS = BUILT / "answers"
"""Answers of parts of runs, by peer, version, seed and part."""
CODE = ("accumulations", "beamish", "peers", "triggers")
"""The folders of code that our answers depend on."""
APART = 10_000
"""From the seed of a part to that of the next."""
RECORDED_CASES = 150
"""Cases recorded per peer: those of the decisions, then the first ones drawn."""
JUDGED = "judged"
"""The kind of all cases in which both sides emit."""
SHOWN = 10
"""Groups of undecided differences that are shrunk and printed."""


@attrs.frozen
class Difference:
    """A row without a counterpart, or a pair of rows with different fields.

    Attributes:
        what: "only here", "only there", or the names of the fields.
        facts: ``what``, and what the peer tells of it: a decision refers to these.
        group: differences of a group are likely to have one cause.
        predicted: whether the peer gives what its own rules predict, here and in all of the row's stream.
    """

    what: str
    here: Row | None
    there: Row | None
    facts: Mapping[str, Any]
    group: str
    predicted: bool


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
        where: the facts of differences that it names; a list: any of these values. What the peer gives there is predicted.
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


def chosen(peer: str) -> list[Case]:
    """Hand-picked cases of a peer, which find faults that drawn ones seldom meet."""
    return [one["case"] for one in json.loads(CHOSEN.read_text("utf-8")) if one["peer"] == peer]


def peer_of(name: str) -> Peer:
    """The peer with this name."""
    peer: Peer = import_module(f"peers.{name}.peer").PEER
    return peer


def differences(peer: Peer, case: Case, here: Sequence[Row], there: Sequence[Row]) -> list[Difference]:
    """All differences of the two answers; of a stream none after a row without a counterpart."""
    if there and "failed" in there[0]:
        fails = any("failed" in row for row in _predicted(peer.name, json.dumps(case)))
        return [_difference(peer, case, ("failed", None, there[0]), predicted=fails)]
    ours, theirs = streams(here), streams(there)
    apart = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name, {}) != theirs.get(name, {})]
    if not apart:
        return []
    expected = streams(_predicted(peer.name, json.dumps(case)))
    fails = any("failed" in row for row in expected.get('["failed"]', {}).values())
    return [
        _difference(peer, case, pair, predicted=not fails and expected.get(name, {}) == theirs.get(name, {}))
        for name in apart
        for pair in _in_stream(ours.get(name, {}), theirs.get(name, {}))
    ]


def is_predicted(peer: Peer, case: Case, here: Sequence[Row], there: Sequence[Row]) -> bool:
    """Whether the peer gives what ours does, or what its own rules predict, in each stream."""
    ours, theirs = streams(here), streams(there)
    expected = streams(_predicted(peer.name, json.dumps(case))) if peer.predicted is not None else ours
    return all(
        theirs.get(name, {}) in (ours.get(name, {}), expected.get(name, {}))
        for name in ours.keys() | theirs.keys() | expected.keys()
    )


@lru_cache(maxsize=256)
def _predicted(name: str, case: str) -> list[Row]:
    """The peer's output, computed by its own rules. Where these start from our answer it is the twin's: a fault of the engine changes no prediction."""
    peer = peer_of(name)
    with on_twin():
        return [] if peer.predicted is None else peer.predicted(json.loads(case))


def _difference(peer: Peer, case: Case, pair: tuple[str, Row | None, Row | None], *, predicted: bool) -> Difference:
    what, here, there = pair
    facts = {"what": what, **peer.facts(case, here, there)}
    group = " ".join([what, *(str(facts.get(name, "")) for name in peer.groups)])
    return Difference(what, here, there, facts, group, predicted and peer.predicted is not None)


def streams(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by stream and place."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        found[json.dumps(row["stream"])][json.dumps(row["place"])] = row
    return dict(found)


def _in_stream(ours: Mapping[str, Row], theirs: Mapping[str, Row]) -> Iterator[tuple[str, Row | None, Row | None]]:
    for place in sorted(ours.keys() | theirs.keys(), key=json.loads):
        one, other = ours.get(place), theirs.get(place)
        if one is None or other is None:
            yield "only there" if one is None else "only here", one, other
            return
        fields = [name for name in one if one[name] != other.get(name)]
        if fields:
            yield ", ".join(fields), one, other


def explained(difference: Difference, decided: Sequence[Decision], *, conditions: bool = False) -> Decision | None:
    """The first decision that fits, if the peer gives what is predicted; as ``conditions`` whatever it gives."""
    named = (one for one in decided if one.fits(difference))
    return next(named, None) if difference.predicted or conditions else None


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
        tested: how many, by what they test (``worth.tested``). Those that emit are judged.
        kinds, agreed_kinds: how many judged ones, by kind.
        explained: how many, by decision.
        undecided: by group.
        stale: decisions whose case no longer shows them.
    """

    name: str
    recorded: list[dict[str, Any]] = attrs.Factory(list)
    cases: int = 0
    agreed: int = 0
    tested: Counter[str] = attrs.Factory(Counter)
    kinds: Counter[str] = attrs.Factory(Counter)
    agreed_kinds: Counter[str] = attrs.Factory(Counter)
    explained: Counter[str] = attrs.Factory(Counter)
    undecided: defaultdict[str, list[tuple[Case, Difference]]] = attrs.Factory(lambda: defaultdict(list))
    stale: list[str] = attrs.Factory(list)

    @property
    def peer(self) -> Peer:
        """The peer."""
        return peer_of(self.name)

    def add(self, case: Case, here: list[Row], there: list[Row]) -> None:
        """Compare a drawn case."""
        found, names = self.compared(case, here, there)
        aspects = tested(case, here, there)
        self.cases += 1
        self.agreed += not found
        self.tested.update(aspects)
        self.explained.update(names)
        if "emits" in aspects:
            kinds = {*self.peer.kinds(case), JUDGED}
            self.kinds.update(kinds)
            self.agreed_kinds.update(kinds if not found else ())

    def compared(self, case: Case, here: list[Row], there: list[Row]) -> tuple[list[Difference], list[str]]:
        """The differences of a case, and the names of the decisions that explain them."""
        found = differences(self.peer, case, here, there)
        decided = [explained(difference, decisions(self.name)) for difference in found]
        for difference, decision in zip(found, decided, strict=True):
            if decision is None:
                self.undecided[f"{difference.group}{'' if difference.predicted else ' (not predicted)'}"].append(
                    (case, difference)
                )
        if found and streams(by_twin(self.peer, case)) != streams(here):
            self.undecided["not as the twin"].append((case, found[0]))
        names = sorted({decision.name for decision in decided if decision is not None})
        if len(self.recorded) < RECORDED_CASES:
            self.recorded.append({"case": case, "there": there, "decided": names})
        return found, names

    def join(self, part: Report) -> None:
        """Add the counts of a part."""
        self.recorded = [*self.recorded, *part.recorded][:RECORDED_CASES]
        self.cases, self.agreed = self.cases + part.cases, self.agreed + part.agreed
        self.tested += part.tested
        self.kinds += part.kinds
        self.agreed_kinds += part.agreed_kinds
        self.explained += part.explained
        for group, found in part.undecided.items():
            self.undecided[group] += found

    def lines(self) -> Iterator[str]:
        """The counts."""
        yield f"{self.name} {self.peer.version}: {self.cases:,} cases, {self.agreed:,} agree"
        yield "tested: " + ", ".join(f"{what} {count / self.cases:.0%}" for what, count in self.tested.most_common())
        yield "kinds: " + ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.most_common())
        yield from (f"decided: {name} in {count:,} cases" for name, count in self.explained.most_common())
        yield from (f"STALE {name}: its case no longer shows it" for name in self.stale)
        for group, found in sorted(self.undecided.items(), key=lambda one: -len(one[1])):
            yield f"UNDECIDED {len(found):,} times: {group}"


def part(name: str, seed: int, code: str, number: int, size: int) -> Report:
    """Compare the cases of a part, by one process of the peer; what it, or this ``code``, has answered before is only judged."""
    report = Report(name)
    stored = ANSWERS / f"{name}-{report.peer.version}-{seed}-{number}-{size}.jsonl.gz"
    if not stored.exists():
        cases = list(drawn(report.peer.cases, size, seed + APART * number, Quota(report.peer)))
        with Program.start(report.peer) as program:
            answers = list(program.answers(cases))
        ANSWERS.mkdir(parents=True, exist_ok=True)
        write_lines(stored, [{"case": case, "there": there} for case, there in zip(cases, answers, strict=True)])
    lines = read_lines(stored)
    for line, here in zip(lines, _ours(report.peer, stored.with_name(f"{code}-{stored.name}"), lines), strict=True):
        report.add(line["case"], here, line["there"])
    return report


def _ours(peer: Peer, stored: Path, lines: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
    """The answers of beamish, which are stored."""
    if not stored.exists():
        write_lines(stored, [peer.here(line["case"]) for line in lines])
    return read_lines(stored)


def _code() -> str:
    """A digest of the code of our answers."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(path for folder in CODE for path in (root / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sizes(peer: Peer, count: int) -> list[int]:
    """The sizes of the parts of a run."""
    most = peer.together or PER_PROCESS
    return [min(most, count - begin) for begin in range(0, count, most)]


def run(name: str, count: int, seed: int) -> Report:
    """Compare the cases of decisions and drawn ones; print the counts and shrunk cases."""
    report, decided = Report(name), decisions(name)
    with Program.start(report.peer) as program:
        given = [*(one.case for one in decided), *chosen(name)]
        shown = [
            report.compared(case, report.peer.here(case), there)[1]
            for case, there in zip(given, program.answers(given), strict=True)
        ]
    report.stale += [one.name for one, names in zip(decided, shown, strict=False) if one.name not in names]
    with ProcessPoolExecutor(report.peer.processes or os.cpu_count()) as pool:
        sizes = _sizes(report.peer, count)
        for one in pool.map(part, repeat(name), repeat(seed), repeat(_code()), range(len(sizes)), sizes):
            report.join(one)
            undecided = sum(map(len, report.undecided.values()))
            print(f"{report.cases:,} cases, {report.agreed:,} agree, {undecided:,} undecided", file=sys.stderr)
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
        report.add(line["case"], report.peer.here(line["case"]), line["there"])
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
        "spoiled": runs.get(report.name, {}).get("spoiled", {}),
        "version": report.peer.version,
        "seed": seed,
        "cases": report.cases,
        "agreed": report.agreed,
        "tested": dict(sorted(report.tested.items())),
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
        if options.note:
            note(report, seed)
    sys.exit(failed)


if __name__ == "__main__":
    main()

"""Write the cases of the conformance suite: python -m peers.suite [--per-feature 8].

They are recorded cases (tests/peers/recorded) that emit, those of decisions first, with the answers of beamish and of the peer that was asked.
Then they are put to all other engines that can express them (``queries.py``); else the answer is why not. It ends with 1 where an answer
differs and no decision names it, or where beamish itself gives something else for a case in the terms of another engine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from conformance.suite import CASES, LEVELS, VERSION, same
from peers.cases import read_lines, write_lines
from peers.compare import ANSWERS, RECORDED, chosen, decisions, differences, explained, peer_of
from peers.neutral import pipeline_of, script_of
from peers.peer import Case, Program, Row
from peers.queries import REASONS, Put, own, put
from peers.translated import from_beam_python
from peers.worth import tested

ORIGINS = ("beam", "beam_python", "kafka_streams", "kafka_sliding", "flink", "spark")
"""Peers whose recorded cases are taken."""
ENGINES = ("beam", "beam_python", "kafka_streams", "flink", "spark")
"""Peers that are asked; sliding windows of Kafka Streams are asked as its own."""
LICENCE = "Apache-2.0"
MOST_ROWS = 12
"""Longer scripts are left out: cases are read by people."""


@attrs.define
class Asked:
    """A case with what engines have answered.

    Attributes:
        peer: whose form the case has.
        case: the case.
        picked: whether it is of a decision, or picked by hand.
        puts: the case in the terms of each engine, or the code of why it has no such pipeline.
        answers: by engine.
    """

    peer: str
    case: Case
    picked: bool
    puts: dict[str, Put | str] = attrs.Factory(dict)
    answers: dict[str, list[Row]] = attrs.Factory(dict)

    @property
    def engine(self) -> str:
        """The engine whose form the case has."""
        return "kafka_streams" if self.peer == "kafka_sliding" else self.peer

    @property
    def feature(self) -> str:
        """Its subject."""
        return feature_of(pipeline_of(self.peer, self.case))


def level_of(peer: str, case: Case) -> str:
    """The level of a case."""
    kind = case.get("kind", "windows")
    if kind in ("join", "window_join", "as_of"):
        return "joins"
    if kind in ("versions", "first", "last", "top", "totals", "over"):
        return "changes"
    if kind in ("updates", "limit", "closes") and peer != "spark":
        return "retractions"
    if "session" in json.dumps([case.get("window"), kind]).lower():
        return "sessions"
    return "triggers" if case.get("trigger", {"is": "Default"}) != {"is": "Default"} else "windows"


WORDS = {
    "windows": "",
    "window": "final",
    "session": "final",
    "on_close": "final",
    "closes": "held until they close",
    "limit": "held",
}
"""Kinds of pipelines in features."""


def feature_of(pipeline: dict[str, Any]) -> str:
    """Its subject, in a few words."""
    window, trigger, kind = pipeline.get("window", {}).get("is", ""), pipeline.get("trigger", ""), pipeline["kind"]
    if "gap" in pipeline or "period" in pipeline:  # Spark's
        fixed = pipeline.get("size") == pipeline.get("period")
        window = "session" if "gap" in pipeline else "fixed" if fixed else "sliding"
    if kind == "window_join":
        window = ""
    name = trigger if isinstance(trigger, str) else next(iter(trigger))
    words = [pipeline.get("how", ""), window and f"{window} windows", WORDS.get(kind, kind), name and f"by {name}"]
    return " ".join(word.replace("_", " ") for word in words if word)


def chosen_cases(most: int) -> Iterator[Asked]:
    """Recorded cases that are short and emit, at most so many per feature, and all of decisions; those of Beam Python as Beam Java has them."""
    features: Counter[tuple[str, ...]] = Counter()
    for peer in ORIGINS:
        picked = [*(one.case for one in decisions(peer)), *chosen(peer)]
        for line in read_lines(RECORDED / f"{peer}.jsonl.gz"):
            case, there = line["case"], line["there"]
            asked = from_beam_python(case) if peer == "beam_python" else case
            rows = sum(len(event.get("rows", [])) for event in case["script"])
            if asked is None or (case not in picked and rows > MOST_ROWS):
                continue
            one = Asked("beam" if peer == "beam_python" else peer, asked, case in picked)
            feature = peer, level_of(one.peer, asked), one.feature
            if one.picked or (features[feature] < most and "emits" in tested(case, peer_of(peer).here(case), there)):
                features[feature] += 1
                if asked is case:
                    one.puts[one.engine], one.answers[one.engine] = own(peer, case), there
                yield one


def ask(some: list[Asked]) -> None:
    """Put cases to the engines that have not answered them."""
    for engine in ENGINES:
        waiting: list[tuple[Asked, Put]] = []
        for one in some:
            if engine not in one.puts:
                one.puts[engine] = found = put(engine, one.peer, one.case)
                waiting += [(one, found)] if isinstance(found, Put) else []
        told = _told(engine, [found.case for _, found in waiting])
        for one, found in waiting:
            one.answers[engine] = told[json.dumps(found.case)]


def _told(engine: str, some: list[Case]) -> dict[str, list[Row]]:
    """The answers of an engine, by case; those to cases that it has answered before are kept."""
    peer = peer_of(engine)
    path = ANSWERS / f"suite-{engine}-{peer.version}.jsonl.gz"
    known: dict[str, list[Row]] = dict(read_lines(path)) if path.exists() else {}
    asked = [case for case in some if json.dumps(case) not in known]
    print(f"{engine}: {len(some)} cases, {len(asked)} of them new", flush=True)
    if asked:
        with Program.start(peer) as program:
            known |= {json.dumps(case): there for case, there in zip(asked, program.answers(asked), strict=True)}
        ANSWERS.mkdir(parents=True, exist_ok=True)
        write_lines(path, known.items())
    return known


def neutral(one: Asked) -> tuple[dict[str, Any], list[str]]:
    """A case of the suite, and what is wrong with it."""
    mine, found = own(one.peer, one.case), dict[str, Any]()
    here = peer_of(one.peer).here(one.case)
    pipeline, answers = pipeline_of(one.peer, one.case), {"beamish": mine.answer(here)}
    wrong: list[str] = []
    for engine in ENGINES:
        asked = one.puts[engine]
        if isinstance(asked, str):
            answers[engine] = {"unsupported": asked, "reason": f"{peer_of(engine).title} {REASONS[asked]}."}
            continue
        answers[engine] = asked.answer(one.answers[engine])
        decision, undecided = _decision(asked, one.answers[engine])
        found |= {engine: decision} if decision else {}
        wrong += [f"{engine}: UNDECIDED {json.dumps(asked.case)}"] if undecided else []
    shown = [set(row) for name in ("beamish", one.engine) for row in answers[name].get("rows", [])]
    fields = set.intersection(*shown) if shown else set()
    answers = {engine: _without(fields, answer) for engine, answer in answers.items()}
    aspects = sorted(tested(one.case, here, here) & {"late", "again", "merged", "retracted", "tied"})
    case = {
        "version": VERSION,
        "licence": LICENCE,
        "id": "",
        "level": level_of(one.peer, one.case),
        "feature": one.feature,
        "title": next((decision["text"] for decision in found.values()), ", ".join(aspects) or "plain"),
        "pipeline": pipeline,
        "script": script_of(one.peer, one.case),
        "fields": sorted(fields),
        "answers": answers,
        "decisions": found,
    }
    for engine, asked in one.puts.items():
        if isinstance(asked, Put) and not same(case, answers["beamish"], as_put(asked, case)):
            wrong.append(f"{engine}: OTHER for beamish {json.dumps(case['pipeline'])} {json.dumps(asked.case)}")
    return case, wrong


def _without(fields: set[str], answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with the fields that its rows do not have."""
    missing = sorted(name for name in fields if any(name not in row for row in answer.get("rows", [])))
    return answer | ({"without": missing} if missing else {})


def as_put(asked: Put, case: dict[str, Any]) -> dict[str, Any]:
    """The answer of beamish to a case in the terms of an engine."""
    return _without(set(case["fields"]), asked.answer(peer_of(asked.peer).here(asked.case)))


def _decision(asked: Put, there: list[Row]) -> tuple[dict[str, str], bool]:
    """The decision by which a peer differs, and whether any difference is undecided."""
    peer = peer_of(asked.peer)
    apart = differences(peer, asked.case, peer.here(asked.case), there)
    found = [explained(difference, decisions(asked.peer)) for difference in apart]
    named = next((decision for decision in found if decision is not None), None)
    told = {} if named is None else {name: getattr(named, name) for name in ("name", "kind", "text", "issue")}
    return told, None in found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write the cases of the conformance suite.")
    parser.add_argument("--per-feature", type=int, default=8)
    options = parser.parse_args()
    levels: dict[str, list[dict[str, Any]]] = {level: [] for level in LEVELS}
    some, failed = list(chosen_cases(options.per_feature)), False
    ask(some)
    for one in some:
        case, wrong = neutral(one)
        case["id"] = f"{case['level']}-{len(levels[case['level']]) + 1:03}"
        levels[case["level"]].append(case)
        for line in wrong:
            failed = True
            print(case["id"], line)
    CASES.mkdir(exist_ok=True)
    for level, found in levels.items():
        text = "".join(json.dumps(one) + "\n" for one in found)
        (CASES / f"{level}.jsonl").write_text(text, "utf-8")
        print(f"{level}: {len(found)} cases")
    sys.exit(failed)


if __name__ == "__main__":
    main()

"""Write the cases of the conformance suite: python -m peers.suite [--per-feature 8].

They are recorded cases (tests/peers/recorded) that emit, those of decisions first, with the answers of beamish and of the peer that was asked.
Cases of Beam Python are put to Beam Java too.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from conformance.suite import CASES, LEVELS, VERSION
from peers.cases import read_lines
from peers.compare import RECORDED, chosen, decisions, differences, explained, peer_of
from peers.neutral import answer_of, pipeline_of, script_of
from peers.peer import Case, Program, Row
from peers.translated import from_beam_python
from peers.worth import tested

PEERS = ("beam", "beam_python", "kafka_streams", "kafka_sliding", "flink", "spark")
LICENCE = "Apache-2.0"
MOST_ROWS = 12
"""Longer scripts are left out: cases are read by people."""


@attrs.frozen
class Asked:
    """A case with what peers have answered.

    Attributes:
        peer: whose form the case has.
        case: the case.
        answers: by peer.
        picked: whether it is of a decision, or picked by hand.
    """

    peer: str
    case: Case
    answers: dict[str, list[Row]]
    picked: bool


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


def feature_of(pipeline: dict[str, Any]) -> str:
    """Its subject, in a few words."""
    window, trigger = pipeline.get("window", {}).get("is", ""), pipeline.get("trigger", "")
    kind = "" if pipeline["kind"] == "windows" else pipeline["kind"]
    name = trigger if isinstance(trigger, str) else next(iter(trigger))
    words = [pipeline.get("how", ""), window and f"{window} windows", kind, name and f"by {name}"]
    return " ".join(word.replace("_", " ") for word in words if word)


def asked() -> Iterator[Asked]:
    """The recorded cases that are short and emit, or are of a decision; those of Beam Python too as Beam Java has them."""
    again: list[Asked] = []
    for peer in PEERS:
        picked = [*(one.case for one in decisions(peer)), *chosen(peer)]
        for line in read_lines(RECORDED / f"{peer}.jsonl.gz"):
            one = Asked(peer, line["case"], {peer: line["there"]}, line["case"] in picked)
            rows = sum(len(event.get("rows", [])) for event in one.case["script"])
            if not one.picked and (rows > MOST_ROWS or "emits" not in _aspects(one)):
                continue
            if peer == "beam_python":
                case = from_beam_python(one.case)
                again += [] if case is None else [attrs.evolve(one, peer="beam", case=case)]
            else:
                yield one
    with Program.start(peer_of("beam")) as program:
        for one, there in zip(again, program.answers([one.case for one in again]), strict=True):
            yield attrs.evolve(one, answers={"beam": there} | one.answers)


def _aspects(one: Asked) -> set[str]:
    (there,) = one.answers.values()
    return tested(one.case, peer_of(one.peer).here(one.case), there)


def neutral(one: Asked) -> dict[str, Any]:
    """A case of the suite."""
    here, pipeline = peer_of(one.peer).here(one.case), pipeline_of(one.peer, one.case)
    answers = {"beamish": answer_of(one.peer, one.case, here)}
    answers |= {peer: answer_of(peer, one.case, there) for peer, there in one.answers.items()}
    told = {peer: _decision(peer, one, there) for peer, there in one.answers.items()}
    shown = [set(row) for answer in answers.values() for row in answer.get("rows", [])]
    aspects = sorted(tested(one.case, here, here) & {"late", "again", "merged", "retracted", "tied"})
    decided = {peer: decision for peer, decision in told.items() if decision}
    return {
        "version": VERSION,
        "licence": LICENCE,
        "id": "",
        "level": level_of(one.peer, one.case),
        "feature": feature_of(pipeline),
        "title": next((decision["text"] for decision in decided.values()), ", ".join(aspects) or "plain"),
        "pipeline": pipeline,
        "script": script_of(one.case),
        "fields": sorted(set.intersection(*shown)) if shown else [],
        "answers": answers,
        "decisions": decided,
    }


def _decision(name: str, one: Asked, there: list[Row]) -> dict[str, str]:
    """The decision by which a peer differs."""
    peer = peer_of(name)
    case = one.case
    if name != one.peer:  # Beam Python, whose own form of the case it is recorded in
        lines = (line for line in read_lines(RECORDED / f"{name}.jsonl.gz") if line["there"] == there)
        case = next(line["case"] for line in lines if from_beam_python(line["case"]) == one.case)
    found = [explained(difference, decisions(name)) for difference in differences(peer, case, peer.here(case), there)]
    named = [decision for decision in found if decision is not None]
    if not named:
        return {}
    return {"name": named[0].name, "kind": named[0].kind, "text": named[0].text, "issue": named[0].issue}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write the cases of the conformance suite.")
    parser.add_argument("--per-feature", type=int, default=8)
    options = parser.parse_args()
    levels: dict[str, list[dict[str, Any]]] = {level: [] for level in LEVELS}
    features: Counter[tuple[str, ...]] = Counter()
    for one in asked():
        feature = one.peer, *one.answers, level_of(one.peer, one.case), feature_of(pipeline_of(one.peer, one.case))
        features[feature] += 1
        if one.picked or features[feature] <= options.per_feature:
            case = neutral(one)
            case["id"] = f"{case['level']}-{len(levels[case['level']]) + 1:03}"
            levels[case["level"]].append(case)
    CASES.mkdir(exist_ok=True)
    for level, some in levels.items():
        text = "".join(json.dumps(one) + "\n" for one in some)
        (CASES / f"{level}.jsonl").write_text(text, "utf-8")
        print(f"{level}: {len(some)} cases")


if __name__ == "__main__":
    main()

"""Reports: lines of text, JSON, and one page with a table of features and engines, each case with its picture and all answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conformance import picture
from conformance.suite import Answer, Case, same, verdict

PAGE = Path(__file__).parent / "page.html"


@attrs.frozen
class Results:
    """The answers of an engine.

    Attributes:
        name: the engine.
        cases: what it was asked.
        answers: by the id of a case.
    """

    name: str
    cases: Sequence[Case]
    answers: Mapping[str, Answer]

    def _verdicts(self) -> Iterator[tuple[Case, str, list[str]]]:
        for case in self.cases:
            yield case, *verdict(case, self.answers[case["id"]])

    @property
    def differs(self) -> bool:
        """Whether an answer differs from all recorded ones."""
        return any(found == "differs" for _, found, _ in self._verdicts())

    def lines(self) -> Iterator[str]:
        """A line per feature, then the cases that differ."""
        features: dict[str, Counter[str]] = {}
        sides: Counter[str] = Counter()
        for case, found, engines in self._verdicts():
            features.setdefault(f"{case['level']}: {case['feature']}", Counter())[found] += 1
            sides.update(engines if found == "takes a side" else ())
        for feature, counts in features.items():
            yield f"{feature}: " + ", ".join(f"{number} {found}" for found, number in counts.most_common())
        yield from (f"where engines differ, as {engine}: {number}" for engine, number in sides.most_common())
        for case, found, _ in self._verdicts():
            if found == "differs":
                yield f"DIFFERS {case['id']}: {json.dumps(self.answers[case['id']])}"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "engine": self.name,
            "cases": [
                {"id": case["id"], "verdict": found, "as": engines, "answer": self.answers[case["id"]]}
                for case, found, engines in self._verdicts()
            ],
        }


def html(cases: Sequence[Case], added: Mapping[str, Mapping[str, Answer]]) -> str:
    """One page, which needs nothing else."""
    shown = []
    for case in cases:
        answers = case["answers"] | {name: answers[case["id"]] for name, answers in added.items()}
        sides = _sides(case, answers)
        shown.append({**case, "answers": answers, "sides": sides, "picture": picture.svg(case)})
    data = json.dumps(shown, separators=(",", ":")).replace("</", "<\\/")
    return PAGE.read_text("utf-8").replace("/*CASES*/", data)


def _sides(case: Case, answers: Mapping[str, Answer]) -> dict[str, int]:
    """Engines with the same answer have the same number: 0 is the answer of most."""
    groups: list[list[str]] = []
    for engine, answer in answers.items():
        if "unsupported" in answer:
            continue
        for group in groups:
            if same(case, answers[group[0]], answer):
                group.append(engine)
                break
        else:
            groups.append([engine])
    groups.sort(key=len, reverse=True)
    return {engine: number for number, group in enumerate(groups) for engine in group}

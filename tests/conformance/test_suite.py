"""The conformance suite: its cases are whole, our adapter gives our recorded answers, and reports show what differs."""

import json
import sys
from collections import Counter

import pytest

from conformance import report, suite
from conformance.adapter import ask
from conformance.adapters.beamish import answer
from peers.neutral import case_of, pipeline_of, script_of
from peers.queries import REASONS, put
from peers.suite import ENGINES, as_put

CASES = list(suite.cases())
SCHEMA = json.loads((suite.CASES.parent / "schema.json").read_text("utf-8"))
EVENT = {"rows", "watermark", "clock"}


@pytest.mark.parametrize("level", suite.LEVELS)
def test_a_level_has_cases_with_the_fields_of_the_schema(level):
    some = list(suite.cases([level]))
    assert len(some) > 10
    for case in some:
        assert set(case) == set(SCHEMA["properties"])
        assert case["version"] == suite.VERSION == SCHEMA["properties"]["version"]["const"]
        assert case["licence"] == SCHEMA["properties"]["licence"]["const"]
        assert case["level"] == level
        assert all(set(event) <= EVENT for event in case["script"])


def test_there_are_a_few_hundred_cases_with_names_of_their_own():
    assert 200 <= len(CASES) <= 600
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_answers_are_of_beamish_and_of_each_engine():
    for case in CASES:
        assert set(case["answers"]) == {"beamish", *ENGINES}, case["id"]
        told = [engine for engine, answer in case["answers"].items() if "unsupported" not in answer]
        assert "beamish" in told, case["id"]
        assert len(told) > 1, case["id"]


def test_most_engines_have_many_cases():
    told = Counter(engine for case in CASES for engine, one in case["answers"].items() if "unsupported" not in one)
    assert all(told[engine] > 60 for engine in ENGINES), told


def test_reasons_are_those_of_the_schema():
    assert SCHEMA["$defs"]["answer"]["properties"]["unsupported"]["enum"] == [*REASONS]


@pytest.mark.dear
@pytest.mark.parametrize("engine", ENGINES)
def test_beamish_answers_the_same_to_a_case_in_the_terms_of_an_engine(engine):
    for case in CASES[ENGINES.index(engine) :: 12]:
        asked, answers = put(engine, *case_of(case["pipeline"], case["script"])), case["answers"]
        if isinstance(asked, str):
            assert asked == answers[engine]["unsupported"], case["id"]
        else:
            assert suite.same(case, answers["beamish"], as_put(asked, case)), case["id"]


def test_engines_differ_only_by_decision():
    for case in CASES:
        ours = case["answers"]["beamish"]
        told = {name: one for name, one in case["answers"].items() if "unsupported" not in one}
        differ = {name for name, one in told.items() if not suite.same(case, ours, one)}
        assert differ <= set(case["decisions"]), case["id"]


def test_a_case_and_its_public_form_are_the_same():
    for case in CASES:
        peer, given = case_of(case["pipeline"], case["script"])
        assert pipeline_of(peer, given) == case["pipeline"], case["id"]
        assert script_of(peer, given) == case["script"], case["id"]


@pytest.mark.dear
@pytest.mark.parametrize("level", suite.LEVELS)
def test_our_adapter_gives_our_recorded_answers(level):
    for case in list(suite.cases([level]))[::4]:
        assert suite.same(case, case["answers"]["beamish"], answer(suite.question(case))), case["id"]


def plain(rows):
    answers = {"one": {"rows": [{"key": "a", "n": 1}]}, "other": {"rows": [{"key": "a", "n": 2}]}}
    case = {"id": "windows-001", "level": "windows", "feature": "fixed", "fields": ["key", "n"], "answers": answers}
    return suite.verdict(case, {"rows": rows})


def test_a_verdict_tells_whose_answer_it_is():
    assert plain([{"key": "a", "n": 1.0, "more": True}]) == ("takes a side", ["one"])
    assert plain([{"key": "a", "n": 3}]) == ("differs", [])
    assert plain([]) == ("differs", [])


def test_rows_are_compared_in_any_order_and_as_often_as_they_come():
    case = {"fields": ["n"]}
    assert suite.same(case, {"rows": [{"n": 1}, {"n": 2}]}, {"rows": [{"n": 2}, {"n": 1}]})
    assert not suite.same(case, {"rows": [{"n": 1}, {"n": 1}]}, {"rows": [{"n": 1}]})
    assert suite.same(case, {"failed": "x"}, {"failed": "y"})
    assert not suite.same(case, {"failed": "x"}, {"rows": []})


ADAPTER = """
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    assert "answers" not in case
    print(json.dumps({"id": case["id"], "unsupported": "joins"} if case["level"] == "joins" else {"id": case["id"], "rows": []}), flush=True)
"""


def test_an_adapter_in_a_process_is_asked_and_reported(tmp_path):
    script = tmp_path / "adapter.py"
    script.write_text(ADAPTER)
    same = [case for case in suite.cases(["windows"]) if not case["decisions"]]
    some = [*same[:3], *list(suite.cases(["joins"]))[:2]]
    answers = dict(zip((case["id"] for case in some), ask(f"{sys.executable} {script}", some), strict=True))
    results = report.Results("mine", some, answers)
    assert results.differs
    assert sum(line.startswith("DIFFERS windows-") for line in results.lines()) == 3
    assert [one["verdict"] for one in results.as_json()["cases"]][3:] == ["unsupported", "unsupported"]
    page = report.html(some, {"mine": answers})
    assert page.count("<svg") == len(some)
    assert "/*CASES*/" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")

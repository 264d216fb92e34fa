"""Whatever is public and can be chosen has all that belongs to it; a name in an ``__all__`` is enough to be asked.

Asked are triggers, window options, watermark policies and accumulations. CONTRIBUTING.md says what goes where.
"""

from __future__ import annotations

import random
import re
from functools import cache
from inspect import isfunction, signature
from operator import itemgetter
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import beamish as bm
from beamish import accumulations, triggers
from tests.kinds.rolling import strategy as rolling
from tests.kinds.window import strategy as anchored
from tests.strategies import accumulations as drawn_accumulations
from tests.strategies import merges
from tests.strategies.chains import LATER
from tests.strategies.triggers import triggers as drawn_triggers
from tests.strategies.triggers import value_triggers
from tests.strategies.watermarks import watermarks
from tests.strategies.windows import row_windows, windowings, windows
from tests.versions import fresh

ROOT = Path(__file__).parent.parent


@attrs.frozen
class Kind:
    """A kind of option: where its names are, what all of them are, what draws them, and the page with a table of them."""

    name: str
    module: Any
    base: type
    drawn: st.SearchStrategy[Any]
    page: str

    def classes(self) -> list[type]:
        public = [getattr(self.module, name) for name in self.module.__all__]
        return [one for one in public if isinstance(one, type) and issubclass(one, self.base) and one is not self.base]


KINDS = [
    Kind("trigger", triggers, triggers.Trigger, st.one_of(drawn_triggers, value_triggers), "triggers.md"),
    Kind(
        "window option",
        bm,
        bm.WindowOption,
        st.one_of(
            windows,
            row_windows,
            windows.flatmap(windowings),
            merges.meetings(merges.NAMES).map(itemgetter(0)),
            rolling.options(None),
            anchored.anchored_windows,
        ),
        "windows.md",
    ),
    Kind("watermark policy", bm, bm.Watermark, st.one_of(watermarks, merges.policies), "watermarks.md"),
    Kind(
        "accumulation",
        accumulations,
        accumulations.Accumulation,
        st.one_of(
            drawn_accumulations.accumulations,
            drawn_accumulations.fold_in_order,
            drawn_accumulations.top_rows,
            merges.sides(merges.NAMES),
            merges.joins(merges.NAMES),
            LATER,
        ),
        "accumulations.md",
    ),
]
FILES = {
    "trigger": "triggers",
    "window option": "windows",
    "watermark policy": "watermarks",
    "accumulation": "accumulations",
}
every = pytest.mark.parametrize(
    ("kind", "option"),
    [pytest.param(kind, option, id=option.__name__) for kind in KINDS for option in kind.classes()],
)
described = pytest.mark.parametrize(
    ("kind", "option"),
    [pytest.param(kind, option, id=option.__name__) for kind in KINDS[:3] for option in kind.classes()],
)


def parts(value: Any) -> list[Any]:
    """A value and, of a trigger, all triggers in it."""
    inner = value.parts if isinstance(value, triggers.Trigger) else ()
    return [value, *(one for part in inner for one in parts(part))]


@cache
def drawn(kind: Kind, option: type) -> Any:
    """An option of this class as a strategy draws it."""
    quick = settings(max_examples=500, phases=[Phase.generate], database=None)
    value = find(kind.drawn, lambda value: option in map(type, parts(value)), settings=quick, random=random.Random(1))
    return next(part for part in parts(value) if type(part) is option)


@cache
def text(folder: str, pattern: str) -> str:
    return "\n".join(path.read_text() for path in sorted((ROOT / folder).glob(pattern)) if path != Path(__file__))


def code(markdown: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL))


def named(option: type, where: str, after: str = "") -> bool:
    return re.search(rf"\b{option.__name__}\b{after}", where) is not None


@every
def test_a_strategy_draws_it(kind, option):
    try:
        drawn(kind, option)
    except NoSuchExample:
        pytest.fail(
            f"no strategy draws {option.__name__}: add it to tests/strategies/{FILES[kind.name]}.py, and to the "
            f"strategy of all of its kind there; then the laws hold for it"
        )


@every
def test_a_twin_runs_it(kind, option):
    assert named(option, text("tests/twin", "*.py")), (
        f"the twin does not know the {kind.name} {option.__name__}: write it in plain Python in tests/twin, from its "
        "rules and not from its columns"
    )


@described
def test_it_has_its_own_text_in_explain(kind, option):
    value, default = drawn(kind, option), kind.base.describe
    assert option.describe is not default, (
        f"{option.__name__} has no describe(): say in its file what explain says of it, in place of the words of "
        f"{kind.base.__name__}"
    )
    assert value.describe() not in ("", default(value))


@every
def test_a_trigger_describes_its_wait(kind, option):
    if kind.name == "trigger":
        assert option.waits_for_columns is not kind.base.waits_for_columns, (
            f"{option.__name__} has no waits_for_columns(): say in its file what a window waits for, in words"
        )


@every
def test_a_test_file_names_it(kind, option):
    assert named(option, text("tests", "**/test_*.py")), (
        f"no test names the {kind.name} {option.__name__}: write one in tests/{FILES[kind.name]}"
    )


@every
def test_a_line_in_a_page_names_it(kind, option):
    lines = "\n".join(line for line in text("docs", kind.page).splitlines() if line.startswith("| "))
    assert named(option, lines), (
        f"the {kind.name} {option.__name__} has no line in docs/{kind.page}: add it to the table at its beginning"
    )


@every
def test_the_reference_has_it(kind, option):
    assert re.search(rf"^::: beamish\.(\w+\.)?{option.__name__}$", text("docs/reference", "*.md"), re.MULTILINE), (
        f"the {kind.name} {option.__name__} is not in the reference: add it to docs/reference/{kind.page}"
    )


def test_the_reference_has_all_that_is_public():
    named_there = set(re.findall(r"^::: beamish\.([\w.]+)$", text("docs/reference", "*.md"), re.MULTILINE))
    errors = {name for name in bm.__all__ if name.endswith("Error")}  # the page has the whole module
    public = {name for name in bm.__all__ if callable(getattr(bm, name))}
    missing = public - named_there - errors - {"Listener", "Suppress"}  # there as MetricsListener; a base
    assert not missing, f"docs/reference does not have {sorted(missing)}"


@every
def test_it_has_an_example(kind, option):
    shown = code(text(".", "README.md")) + code(text("docs", "**/*.md")) + text("examples", "*.py")
    assert ">>>" in (option.__doc__ or "") or named(option, shown, after=r"\("), (
        f"the {kind.name} {option.__name__} has no example: add one to docs/reference/{kind.page}"
    )


def test_the_kinds_are_not_empty():
    assert [len(kind.classes()) >= least for kind, least in zip(KINDS, (11, 6, 3, 24), strict=True)] == [True] * 4


@attrs.frozen
class Invented(bm.WindowOption):
    """Windows that nobody has heard of."""


def test_missing_parts_are_reported():
    kind = attrs.evolve(KINDS[1], drawn=st.just(bm.GlobalWindow()))
    for check, where in [
        (test_a_twin_runs_it, "tests/twin"),
        (test_a_test_file_names_it, "tests/windows"),
        (test_a_line_in_a_page_names_it, "docs/windows.md"),
        (test_the_reference_has_it, "docs/reference/windows.md"),
        (test_it_has_an_example, "docs/reference/windows.md"),
    ]:
        with pytest.raises(AssertionError, match=rf"(?s)Invented.*{re.escape(where)}"):
            check(kind, Invented)
    with pytest.raises(pytest.fail.Exception, match=r"no strategy draws Invented.*tests/strategies/windows\.py"):
        test_a_strategy_draws_it(kind, Invented)


def test_every_call_that_reads_a_checkpoint_has_a_fresh_process():
    owners = {"": {name: getattr(bm, name) for name in bm.__all__}, "Pipeline.": vars(bm.Pipeline)}
    public = {prefix + name: call for prefix, calls in owners.items() for name, call in calls.items()}
    takes = {name for name, call in public.items() if isfunction(call) and "checkpoint" in signature(call).parameters}
    state = {f"CheckpointState.{name}" for name, call in vars(bm.CheckpointState).items() if isfunction(call)}
    asked = {name for name in (*takes, *state) if "._" not in name} - {"Pipeline.state"}  # it reads when it is asked
    assert asked | {"__main__.main"} == set(fresh.CALLS)


GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
COUNTED = re.findall(r"^\| ([\w ]+) \| (\d+) \| (\d+) \| (\d+) \|$", GUIDE, re.MULTILINE)


def files_to_touch(what: str) -> list[str]:
    """The files in the table of CONTRIBUTING.md below the heading of an option or a kind."""
    _, _, section = re.sub(r"## Add an? ", "## Add ", GUIDE).partition(f"## Add {what}\n")
    rows = re.findall(r"^\| (`.*?) \| ", section.partition("\n## ")[0], re.MULTILINE)
    return [path for row in rows for path in re.findall(r"`([^`]+\.\w+)`", row)]


def test_contributing_counts_the_files_to_touch_of_each_kind():
    assert [kind.name for kind in KINDS] + ["window part", "kind of stage"] == [name for name, *_ in COUNTED]


@pytest.mark.parametrize(("what", "library", "tests", "texts"), COUNTED, ids=[name for name, *_ in COUNTED])
def test_contributing_lists_as_many_files_as_it_counts(what, library, tests, texts):
    files = files_to_touch(what)
    of = ["library" if re.match("beamish/|triggers/|accum", file) else file.partition("/")[0] for file in files]
    counts = of.count("library"), of.count("tests"), len(of) - of.count("library") - of.count("tests")
    assert counts == (int(library), int(tests), int(texts))
    assert [file for file in files if "<" not in file and not (ROOT / file).exists()] == []


def test_the_smallest_kind_of_stage_has_the_length_given_in_contributing():
    (said,) = re.findall(r"smallest example, in (\d+) lines", GUIDE)
    folder = ROOT / "tests" / "kinds" / "hold_back"
    lines = sum(len((folder / name).read_text().splitlines()) for name in ("stage.py", "operator.py"))
    assert lines == int(said) < 150


KINDS_OF_STAGES = sorted(path.parent.name for path in (ROOT / "beamish" / "kinds").glob("*/stage.py"))


@pytest.mark.parametrize("kind", [*KINDS_OF_STAGES, "hold_back"])
def test_a_kind_of_stage_has_its_twin_and_its_tests_in_a_folder(kind):
    folder = ROOT / "tests" / "kinds" / kind
    assert (folder / "twin.py").exists(), f"write what {kind} gives in plain Python, in tests/kinds/{kind}/twin.py"
    assert list(folder.glob("test_*.py")), f"write its rules and what it refuses in tests/kinds/{kind}"


def test_the_library_does_not_know_the_smallest_kind_of_stage():
    sources = [text(folder, "**/*.py") for folder in ("beamish", "triggers", "accumulations")]
    assert not [one for one in sources if "HoldBack" in one or "hold_back" in one]

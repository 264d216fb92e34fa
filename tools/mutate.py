"""Mutation testing: change the code a little, many times, and check that a test fails.

    python tools/mutate.py --sample 300 --seed 1 --only beamish/kinds

The repository is copied to a temporary folder. There, places where one of cosmic-ray's operators applies are drawn with
a fixed seed, each is mutated once, by an operator drawn with the same seed, and the tests that start no Spark
are run in stages until one fails: the mutant is killed. Survivors are listed with their diffs, and all results go to
a file of JSON lines. ``--again`` runs the survivors in such a file again.

Left out: annotations (never evaluated); ``strict=True`` of ``zip`` (the lists are as long as each other); ``is`` and
``is not`` in place of ``==`` and ``!=`` (numbers and texts make no sense of it); and the operators for decorators, exceptions
and variables (which break the import, or need arguments).
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-untyped]
from cosmic_ray.mutating import mutate_code  # type: ignore[import-untyped]
from cosmic_ray.plugins import get_operator, operator_names  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "beamish/contract",
    "beamish/fusion",
    "beamish/kernels",
    "beamish/kinds",
    "beamish/statement",
    "beamish/tables",
    "beamish/windows",
    "triggers",
    "accumulations",
)
"""The mutated files and folders."""
OPERATORS = re.compile(
    "core/(ReplaceBinaryOperator|ReplaceUnaryOperator|ReplaceComparisonOperator_(?!(Eq|NotEq|Lt|LtE|Gt|GtE)_Is)"
    "|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceBreakWithContinue"
    "|ReplaceContinueWithBreak|NumberReplacer|ZeroIterationForLoop)"
)


def of_kind(*kinds: str, laws: bool = False) -> tuple[str, ...]:
    """The test files of kinds of stages: those of laws, or the others."""
    files = (file for kind in kinds for file in (ROOT / "tests" / "kinds" / kind).glob("test_*.py"))
    return tuple(sorted(one for file in files if _is_law(one := file.relative_to(ROOT).as_posix()) == laws))


def _is_law(test: str) -> bool:
    return test.startswith("tests/laws") or "/test_laws" in test


WHOLE = (
    "tests/test_transcripts.py",
    *of_kind("window"),
    "tests/windows",
    "tests/triggers",
    "tests/pipeline/test_merge.py",
    "tests/pipeline/test_chain.py",
    "tests/docs/test_docs.py",
)
SEVERAL = tuple(
    f"tests/accumulations/test_{of}.py"
    for of in (
        "accumulation",
        "top",
        "distinct",
        "sums",
        "first_last",
        "retractable",
        "reduce_fold",
        "approx_count_distinct",
    )
)
"""Tests that cover most kernels, and the binding of accumulations."""
_LAW = "tests/laws/test_engine_and_twin.py::test_engine_and_twin_agree_in_any_layout"
_WINDOWS = ("windows", "windows, long scripts", "sessions, long scripts", "windows that absorb others, long scripts")


def cases(*names: str) -> tuple[str, ...]:
    """Cases of the comparison of engine and twin."""
    return tuple(f"{_LAW}[{name}]" for name in names)


LAWS = (*cases(*_WINDOWS), "tests/laws/test_twin.py")
"""The slowest tests; only they may be left out."""


def room(*kinds: str, compared: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests of kinds of stages, and their laws with these cases of the comparison of engine and twin."""
    return (*of_kind(*kinds), "tests/test_transcripts.py"), (*cases(*compared), *of_kind(*kinds, laws=True))


_SUPPRESS = room(
    "suppress",
    compared=(
        "suppressed",
        "suppressed sessions, long scripts",
        "suppressed, firing again and again",
        "suppressed merges and trees",
        "changes",
    ),
)
_VERSIONS = room(
    "versions",
    "as_of",
    compared=("versions", "stage over versions", "as-of join of rows", "as-of join of stages and joins"),
)
_DUPLICATES = room(
    "deduplicate",
    compared=("duplicates", "duplicates, long scripts", "duplicates in sessions, long scripts", "rows once"),
)
ROOMS = {
    "accumulations/base/gathered.py": (
        ("tests/test_transcripts.py",),
        (*cases("rows that meet"), "tests/kinds/window/test_laws_within.py"),
    ),
    "beamish/contract/chain.py": _SUPPRESS,
    "beamish/contract/slots.py": _SUPPRESS,
    "beamish/fusion": (("tests/fusion",), ("tests/laws/test_fused.py", "tests/laws/test_operators.py")),
    "beamish/kinds/as_of": _VERSIONS,
    "beamish/kinds/changes": _SUPPRESS,
    "beamish/kinds/deduplicate": _DUPLICATES,
    "beamish/kinds/gaps": room("gaps", compared=("gaps filled",)),
    "beamish/kinds/over": room("over", compared=("over", "over rows, counted")),
    "beamish/kinds/refine.py": room("refine", compared=("conditions and computed columns", "stage over conditions")),
    "beamish/kinds/retime": room("retime", compared=("times of a column",)),
    "beamish/kinds/rolling": room(
        "rolling",
        compared=(
            "rolling spans",
            "rolling spans, usual values",
            "rolling spans over panes",
            "rolling spans over several inputs",
        ),
    ),
    "beamish/kinds/suppress": _SUPPRESS,
    "beamish/kinds/table_join": room("table_join", compared=("joined tables",)),
    "beamish/kinds/upserts": room("upserts", compared=("upserts",)),
    "beamish/kinds/versions": _VERSIONS,
    "beamish/kinds/window/parts/anchors.py": (
        ("tests/kinds/window/test_anchored.py", "tests/test_transcripts.py"),
        cases(
            "anchored windows",
            "anchored windows, usual",
            "anchored windows over panes",
            "anchored windows under other stages",
        ),
    ),
    "beamish/kinds/window/parts/duplicates.py": _DUPLICATES,
    "beamish/kinds/window/parts/null_keys.py": (
        ("tests/kinds/window/test_null_keys.py", "tests/test_transcripts.py", "tests/pipeline/test_merge.py"),
        (*cases("merge", "pairs once", "join that retracts"), "tests/laws/test_merges.py"),
    ),
    "beamish/statement": (("tests/statement",), ()),
}
"""The tests and laws of folders that the other tests hardly cover."""
LONGEST_SECONDS = 300
"""A mutant may loop: a stage that takes longer has failed."""


@attrs.frozen
class Mutant:
    """A change to a file: an operator, applied at the occurrence of this number."""

    path: str
    line: int
    operator: str
    occurrence: int

    def apply(self, source: str) -> str:
        """The file with the change."""
        return str(mutate_code(source, get_operator(self.operator)(), self.occurrence))


def places(path: str, source: str) -> dict[tuple[int, int], list[Mutant]]:
    """All mutants of a file, by line and column."""
    spared = list(_spared(source))
    found: dict[tuple[int, int], list[Mutant]] = {}
    nodes = list(ast_nodes(get_ast(source)))
    for name in filter(OPERATORS.match, operator_names()):
        operator = get_operator(name)()
        at = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, start in enumerate(at):
            if not any(first <= start < last for first, last in spared):
                found.setdefault(start, []).append(Mutant(path, start[0], name, occurrence))
    return found


def _spared(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(ast.parse(source)):
        strict = node.value if isinstance(node, ast.keyword) and node.arg == "strict" else None
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None), strict):
            if isinstance(part, ast.expr):
                yield (part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)


def draw(root: Path, sample: int, seed: int, only: str) -> list[Mutant]:
    """Draw places, and for each a mutant."""
    all_places: list[list[Mutant]] = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            if only in path:
                all_places.extend(places(path, file.read_text(encoding="utf-8")).values())
    print(f"{len(all_places)} places, {sum(map(len, all_places))} mutants")
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    return [chance.choice(place) for place in chance.sample(all_places, min(sample, len(all_places)))]


def stages(path: str) -> list[tuple[str, ...]]:
    """The tests for a mutant of a file, the most likely to kill it first, the laws last."""
    for folder, room in ROOMS.items():
        if path.startswith(folder):
            return [tests for tests in room if tests]
    own = tests_of(path)
    first = [own] if own else []
    if path.startswith("accumulations") and not own:
        return [WHOLE, SEVERAL, LAWS]
    if path.startswith(("beamish/kernels", "beamish/contract")):
        return [*first, SEVERAL, WHOLE, LAWS]
    return [*first, WHOLE, LAWS]


def _are_laws(tests: tuple[str, ...]) -> bool:
    return all(map(_is_law, tests))


def tests_of(path: str) -> tuple[str, ...]:
    """The test files named after a file, except laws and those that start Spark."""
    files = (ROOT / "tests").rglob(f"test_{Path(path).stem}.py")
    found = [file.relative_to(ROOT).as_posix() for file in files]
    return tuple(sorted(one for one in found if not (_is_law(one) or one.startswith("tests/spark"))))


def failing(root: Path, tests: tuple[str, ...]) -> str:
    """The first test that fails, or the tests if they end otherwise. They run in a fork: numpy is loaded once for all."""
    process = multiprocessing.get_context("fork").Process(target=_run, args=(root, tests))
    process.start()
    process.join(LONGEST_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
    if process.exitcode == 0:
        return ""
    found = re.search(
        r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", (root / "output").read_text(encoding="utf-8"), re.MULTILINE
    )
    return found[1] if found else " ".join(tests)


def _run(root: Path, tests: tuple[str, ...]) -> None:
    import pytest

    os.chdir(root)
    with Path("output").open("w", encoding="utf-8") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    loaded = "-Wignore::pytest.PytestAssertRewriteWarning"
    what = ["-p", "no:cacheprovider", "--hypothesis-seed=1", loaded, "-m", "not spark and not deep", *tests]
    code = pytest.main(["-x", "-q", *what])
    sys.stdout.flush()
    os._exit(int(code))


def judge(root: Path, mutant: Mutant, laws: bool) -> dict[str, Any]:
    """Run the tests on a mutant."""
    file = root / mutant.path
    source = file.read_text(encoding="utf-8")
    changed = mutant.apply(source)
    diff = list(difflib.unified_diff(source.splitlines(), changed.splitlines(), n=0, lineterm=""))[3:]
    file.write_text(changed, encoding="utf-8")
    shutil.rmtree(root / ".hypothesis", ignore_errors=True)  # no examples from other mutants
    killer = ""
    try:
        for tests in stages(mutant.path):
            if not killer and (laws or not _are_laws(tests)):
                killer = failing(root, tests)
    finally:
        file.write_text(source, encoding="utf-8")
    return {**attrs.asdict(mutant), "killer": killer, "laws": laws, "diff": diff}


def check_unchanged(root: Path, mutants: list[Mutant], laws: bool) -> None:
    """Check that all tests pass on unchanged code."""
    for tests in dict.fromkeys(tests for mutant in mutants for tests in stages(mutant.path)):
        if (laws or not _are_laws(tests)) and (failed := failing(root, tests)):
            sys.exit(f"{failed}: fails without any change")


def main() -> None:
    """Draw mutants, run the tests on each, and list the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="how many places")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the path of the files to mutate")
    parser.add_argument("--no-laws", action="store_true", help="leave out the laws, which take longest")
    parser.add_argument("--again", type=Path, help="a file of results: run its survivors again")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("mutants.jsonl"),
        help="the results, one JSON line per mutant; goes on if it is there",
    )
    parser.add_argument("--list", action="store_true", help="only show which mutants are drawn")
    asked = parser.parse_args()
    for name in ("numpy", "pyarrow.compute", "pytest", "hypothesis"):
        __import__(name)
    sys.dont_write_bytecode = True  # two mutants of one second and size must not share their bytecode
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "beamish"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "spark-warehouse", "artifacts")
        shutil.copytree(ROOT, root, symlinks=True, ignore=ignored)
        if asked.again:
            earlier = [json.loads(line) for line in asked.again.read_text(encoding="utf-8").splitlines()]
            mutants = [find_again(root, result) for result in earlier if not result["killer"]]
        else:
            mutants = draw(root, asked.sample, asked.seed, asked.only)
        if asked.list:
            print(*mutants, sep="\n")
            return
        sys.path.insert(0, str(root))
        results = [json.loads(line) for line in asked.out.open(encoding="utf-8")] if asked.out.exists() else []
        done = [mutant_of(result) for result in results]
        if not done:
            check_unchanged(root, mutants, not asked.no_laws)
        with asked.out.open("a", encoding="utf-8") as out:
            for mutant in mutants:
                if mutant not in done:
                    results.append(judge(root, mutant, not asked.no_laws))
                    print(json.dumps(results[-1]), file=out, flush=True)
    report(results)


def mutant_of(result: dict[str, Any]) -> Mutant:
    """The mutant of a result."""
    return Mutant(*(result[field.name] for field in attrs.fields(Mutant)))


def find_again(root: Path, result: dict[str, Any]) -> Mutant:
    """The mutant of an earlier result; the file must be as it was, or at least its lines about the place."""
    mutant = mutant_of(result)
    if result["diff"][0].lstrip("-") not in (root / mutant.path).read_text(encoding="utf-8"):
        sys.exit(f"{mutant}: the file is no longer the one that was mutated")
    return mutant


def report(results: list[dict[str, Any]]) -> None:
    """Print the survivors, and how many were killed in each folder."""
    drawn: Counter[str] = Counter(str(Path(result["path"]).parent) for result in results)
    killed: Counter[str] = Counter(str(Path(result["path"]).parent) for result in results if result["killer"])
    for result in results:
        if not result["killer"]:
            print(f"\nsurvived: {result['path']}:{result['line']} {result['operator']}", *result["diff"], sep="\n")
    print()
    for folder in sorted(drawn):
        print(f"{folder:26} {killed[folder]:4} of {drawn[folder]:4} killed")
    print(f"{'all':26} {killed.total():4} of {drawn.total():4} killed")


if __name__ == "__main__":
    main()

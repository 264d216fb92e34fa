"""The imports of the house: no circles, and no room that a contract of import-linter leaves out."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tools.house import ROOT, House, circle, floors

HOUSE = House.read()


@pytest.mark.dear  # reads all files
def test_files_have_no_import_cycles():
    assert circle(HOUSE.arrows(lazy=False)) == []


@pytest.mark.dear  # reads all files
def test_folders_have_no_import_cycles():
    assert circle(HOUSE.folders()) == []


def test_no_contract_lists_the_rooms_that_it_holds_for():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [one["name"] for one in said if one["type"] != "protected" and not one.get("exhaustive")] == []


@pytest.mark.dear  # reads all files
def test_only_a_kind_asks_whether_a_stage_or_operator_is_its_own():
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in HOUSE.files.items()}
    assert asked_classes(trees) == []


def test_questions_for_classes_are_found():
    sources = {
        "beamish.contract.stage": "class Stage: ...",
        "beamish.kinds.a.stage": "class A(Stage): ...\nclass B(A): ...\nisinstance(one, A)",
        "beamish.pipeline": "isinstance(one, (Source, B))\nisinstance(one, Source)",
    }
    trees = {name: ast.parse(source) for name, source in sources.items()}
    assert asked_classes(trees) == ["beamish.pipeline: isinstance(one, (Source, B))"]


def asked_classes(trees):
    """The ``isinstance`` that ask for a class of stage, operator or shard outside the folder that defines it."""
    classes = {
        node.name: (name, node)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Stage", "Operator", "Shard"}
    while more := {name for name, (_, node) in classes.items() if names_in(node.bases) & found} - found:
        found |= more
    return [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and names_in([node.func]) == {"isinstance"}
        for asked in names_in(node.args[1:]) & found
        if classes[asked][0].rpartition(".")[0] != name.rpartition(".")[0]
    ]


def names_in(nodes):
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


STATE_OF_PROCESSES = {
    "beamish.exports._LAZY": "where public names are, filled as their packages are imported; import_all imports all of them",
    "beamish.sinks.sql._left": "marks that this process wrote; another one reads them from the database",
    "beamish.spark.rows.pack._first_batches": "the first batch of a run that this worker has seen",
    "beamish.spark.runtime.workers._times": "how often this worker freezes its objects",
    "beamish.spark.runtime.workers._tried": "sessions whose workers have been checked",
}
"""State of modules, and why another process may have other state."""


@pytest.mark.dear  # reads all files
def test_modules_have_no_registries():
    """The state of a module depends on what its process has imported, and a worker imports only what its stage runs."""
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in HOUSE.files.items()}
    assert {f"{name}.{of}" for name, tree in trees.items() for of in changed_names(tree)} == set(STATE_OF_PROCESSES)


def test_changes_of_module_state_are_found():
    source = """
KINDS, NAMES, ORDER, LIMIT, NUMBERS, FIXED = {}, [], set(), 1, iter(()), {}
def declare(entry):
    KINDS[entry] = NAMES.append(entry) or ORDER.add(entry) or next(NUMBERS)
    global LIMIT
    LIMIT = FIXED[entry]
def local(FIXED):
    FIXED["a"] = 1
"""
    assert changed_names(ast.parse(source)) == {"KINDS", "NAMES", "ORDER", "LIMIT", "NUMBERS"}


CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}


def changed_names(tree):
    """The names of a module that its functions change."""
    assigned = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    ours = names_in(of for node in assigned for of in getattr(node, "targets", None) or [node.target])
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        nodes = list(ast.walk(function))
        shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        found |= shared | (ours & names_in(filter(None, map(changed, nodes))) - own)
    return found


def changed(node):
    """The expression that a node changes in place; None: it changes none."""
    match node:
        case ast.Subscript(value=ast.Name() as of, ctx=ast.Store() | ast.Del()):
            return of
        case ast.Call(func=ast.Attribute(value=ast.Name() as of, attr=attr)) if attr in CHANGES:
            return of
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name() as of, *_]):
            return of
    return None


OF_SPARK = {
    "kinds/changes/test_on_spark.py",
    "kinds/window/test_on_spark_pairs_once.py",
    "kinds/window/test_on_spark_windows_of_rows.py",
    "spark/connect_session.py",
    "spark/test_nested_fields.py",
}
"""Modules that still import from tests on Spark."""


def test_helpers_are_in_modules_of_their_own():
    tests = ROOT / "tests"
    imports = re.compile(r"^(?:from|import) tests\.\S*\btest_|^from tests\.\S+ import test_", re.MULTILINE)
    found = {str(path.relative_to(tests)) for path in tests.rglob("*.py") if imports.search(path.read_text("utf-8"))}
    assert found <= OF_SPARK


def test_circles_are_found(tmp_path):
    def made(**files):
        for name, text in files.items():
            path = tmp_path / "beamish" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return House.read(tmp_path / "beamish")

    in_line = made(__init__="", a="from beamish import b", b="def later():\n    import beamish.a")
    assert circle(in_line.arrows(lazy=False)) == []
    assert floors(in_line.arrows(lazy=False)) == 2
    assert set(circle(in_line.arrows())) == {"beamish.a", "beamish.b"}
    annotated = made(b="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from beamish.a import A")
    assert set(circle(annotated.arrows(lazy=False))) == {"beamish.a", "beamish.b"}
    assert Path(annotated.files["beamish"]).name == "__init__.py"

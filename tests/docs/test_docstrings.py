"""The examples in docstrings run and print what they say; an argument that may be None takes None."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from itertools import pairwise
from pathlib import Path

import pytest

import beamish
import beamish.accumulations
import beamish.plot
import beamish.sinks
import beamish.testing
import beamish.triggers

NEEDS_SPARK = "beamish.spark"


def modules():
    yield "beamish"
    for module in pkgutil.walk_packages(beamish.__path__, "beamish."):
        if not module.name.startswith(NEEDS_SPARK):
            yield module.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def public():
    """Each public function, class and method, with its name."""
    for of in (beamish, beamish.accumulations, beamish.plot, beamish.sinks, beamish.testing, beamish.triggers):
        names = getattr(of, "__all__", None) or [name for name in vars(of) if not name.startswith("_")]
        for name, one in ((name, getattr(of, name)) for name in names):
            if callable(one):
                yield f"{of.__name__}.{name}", one
            if inspect.isclass(one):
                own = [own for own in vars(one) if not own.startswith("_") and callable(getattr(one, own))]
                yield from ((f"{of.__name__}.{name}.{method}", getattr(one, method)) for method in own)


def arguments(call):
    """The arguments of a docstring, and their words."""
    described = re.search(r"^Args:\n((?:    .*\n?|\n)+)", inspect.getdoc(call) or "", re.MULTILINE)
    for names, words in re.findall(
        r"^    ([\w, *]+): (.*(?:\n {8}.*)*)", described[1] if described else "", re.MULTILINE
    ):
        yield from ((name.lstrip("*"), words) for name in re.split(r",\s*", names))


def test_an_argument_that_is_documented_as_none_takes_none():
    promised, taken = set(), set()
    for name, call in public():
        for argument, words in arguments(call):
            if re.search(r"\bNone\b", words):
                parameter = inspect.signature(call).parameters[argument]
                promised.add(f"{name}({argument})")
                if parameter.default is None or re.search("None|Any", str(parameter.annotation)):
                    taken.add(f"{name}({argument})")
    assert len(promised) > 50
    assert promised == taken


@pytest.mark.dear  # reads all files
def test_arguments_and_attributes_that_are_described_exist_and_all_are_described():
    assert list(wrongly_described(Path(beamish.__file__).parent)) == []


@pytest.mark.dear  # reads all files
def test_a_module_does_not_name_itself_as_another():
    for path, tree in sources(Path(beamish.__file__).parent):
        words = ast.get_docstring(tree) or ""
        assert path.name == "__init__.py" or not re.search(rf"(?<![\w/]){re.escape(path.name)}", words), path


def sources(package):
    """The modules of a package, also of folders that are links."""
    for folder in (package, *filter(Path.is_symlink, package.iterdir())):
        for path in sorted(folder.resolve().rglob("*.py")):
            yield path, ast.parse(path.read_text("utf-8"))


def wrongly_described(package):
    """Where a docstring describes an argument or attribute that does not exist, or leaves one out: the place, what is missing, what is unknown."""
    for path, tree in sources(package):
        classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                expected = known = parameters(node)
                sections = ("Args",)
            elif isinstance(node, ast.ClassDef):
                expected, known = fields(node), {*fields(node), *members(node, classes)}
                sections = ("Args", "Attributes")
            else:
                continue
            named = [name for section in sections for name in entries(ast.get_docstring(node) or "", section)]
            wrong = [name for name in expected if name not in named], [name for name in named if name not in known]
            if named and any(wrong):
                yield f"{path.name}:{node.lineno} {node.name}", *wrong


def entries(words, section):
    """The names in a section of a docstring, one entry a line."""
    found = re.search(rf"^{section}:\n((?:    .*\n?|\n)+)", words, re.MULTILINE)
    for names in re.findall(r"^    ((?:\*{0,2}\w+(?:, )?)+)(?: \([^)]*\))?:", found[1] if found else "", re.MULTILINE):
        yield from (name.lstrip("*") for name in names.split(", "))


def parameters(node):
    """The names of a function's public parameters."""
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [one.arg for one in every if one.arg not in ("self", "cls") and not one.arg.startswith("_")]


def fields(node):
    """The public annotated attributes of a class that have no docstring of their own; none if ``__init__`` is its own."""
    if any(isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in node.body):
        return []
    described = [before for before, after in pairwise(node.body) if isinstance(after, ast.Expr)]
    return [
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and one not in described and "ClassVar" not in ast.unparse(one.annotation)
        if not one.target.id.startswith("_")
    ]


def members(node, classes):
    """All attributes of a class, its bases in the module, and the parameters of its ``__init__``."""
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from members(classes[base.id], classes)
    for one in node.body:
        if isinstance(one, ast.FunctionDef):
            yield from (one.name, *(parameters(one) if one.name == "__init__" else ()))
    for one in ast.walk(node):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id
        if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self":
            yield one.attr
        if isinstance(one, ast.Assign):
            yield from (target.id for target in one.targets if isinstance(target, ast.Name))

"""The notebooks of examples/notebooks run, cell after cell, and are committed without outputs."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def shown(code, names):
    """The output of a notebook cell: printed text, and the HTML, or else the text, of its last expression."""
    body = ast.parse(code).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = None if last is None else eval(compile(last, "cell", "eval"), names)
    markup = getattr(value, "_repr_html_", lambda: "" if value is None else repr(value))
    return printed.getvalue() + markup()


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    return [cell for cell in json.loads(request.param.read_text())["cells"] if cell["cell_type"] == "code"]


def test_a_notebook_is_stored_without_outputs(cells):
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_a_notebook_runs(cells):
    names: dict[str, object] = {"__name__": "notebook"}
    said = [shown("".join(cell["source"]), names) for cell in cells]
    assert said[0] == ""
    assert all(said[1:])
    assert "<table" in said[1]


def test_the_first_notebook_prints_the_output_that_its_text_describes():
    cells = [
        "".join(cell["source"]) for cell in json.loads(NOTEBOOKS[0].read_text())["cells"] if cell["cell_type"] == "code"
    ]
    names: dict[str, object] = {}
    said = [shown(cell, names) for cell in cells]
    assert said[2].count("RETRACTION") == 2
    assert "total=14 plays=3" in said[2]
    assert "[1970-01-01 00:02:00, 00:04:00) of team='red' is open" in said[4]

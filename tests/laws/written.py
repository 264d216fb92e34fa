"""The cases of a search as text."""

from __future__ import annotations

import ast

from tests.budget import LAWS, TESTS


def written():
    """The tests with ``@given`` in a file of laws, and its state machines: file and name, read from the source."""
    return {
        f"{path.relative_to(TESTS.parent)}::{node.name}"
        for path in LAWS
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if any("given(" in ast.unparse(one) for one in node.decorator_list)
        or any("run_state_machine_as_test(" in ast.unparse(line) for line in node.body)
    }

"""The examples in docs run and print what they say."""

import doctest

import pytest


@pytest.mark.parametrize("name", ["options.md", "sql.md", "from-samza.md"])
def test_examples_in_docs_run(root, name):
    result = doctest.testfile(
        str(root / "docs" / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE, encoding="utf-8"
    )
    assert result.attempted
    assert result.failed == 0

"""The mutants of ``make mutate``, and the tests that it runs."""

import re


def test_every_file_and_folder_that_mutate_names_is_there(root):
    named = re.findall(
        r'"((?:beamish|tests|triggers|accumulations)[\w/]*(?:\.py)?)"', (root / "tools/mutate.py").read_text()
    )
    assert len(named) > 30
    assert [path for path in named if not (root / path).exists()] == []

"""How tests are shared out among processes: a file at a time, and each law by itself.

To hand out ten thousand tests one by one costs as much as to run most of them, and what a file caches would be computed in each process.
Sessions of Spark go first, since they take longest; laws last, so that the processes end together.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

from tests.budget import LAWS, TESTS


class ByFile(LoadGroupScheduling):  # type: ignore[misc]
    """Groups of ``pytest.mark.xdist_group``, else files."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        file = nodeid.partition("::")[0]
        return group if group != nodeid or TESTS.parent / file in LAWS else file


def order(item: pytest.Item) -> int:
    """The place of a test among all."""
    return 0 if item.get_closest_marker("spark") else 2 if item.path in LAWS else 1

"""Servers of this process, started when they are first asked for (tools/servers)."""

from functools import cache

import pytest

from tools.servers.server import UnavailableError


@cache
def started(kind):
    """A running server; the test is skipped where the machine lacks its programs, and fails where it does not start."""
    try:
        return kind()
    except UnavailableError as why:
        pytest.skip(str(why))

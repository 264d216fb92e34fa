"""The entries that identify kinds of stages are known in every process, whatever it imports."""

import subprocess
import sys

import pytest

from beamish.kinds.changes.operator import ChangesShard
from beamish.kinds.deduplicate.operator import DuplicatesShard
from beamish.tables.notes import CHANGES, DUPLICATES, VERSIONS, kind_entries

_OPENS = """
from beamish.contract.stored import INDEX, DictStore
from beamish.errors import StateError
from beamish.tables.notes import check_new
try:
    check_new(DictStore({%r: b"{}"}), INDEX)
except StateError as error:
    print(error)
"""


@pytest.mark.parametrize("entry", [CHANGES, DUPLICATES, VERSIONS])
def test_a_process_without_a_kind_refuses_its_state(entry):
    """A worker imports the kinds of its own stages only."""
    done = subprocess.run([sys.executable, "-c", _OPENS % entry], capture_output=True, text=True, check=True)
    assert "the pipeline now has a stage with windows instead: its state would be lost" in done.stdout


def test_shards_write_these_entries():
    assert {ChangesShard.ENTRY, DuplicatesShard.ENTRY} < set(kind_entries())

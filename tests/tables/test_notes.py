"""A stage whose identity no longer has a part that the checkpoint notes."""

import json

import pytest

from beamish.contract.stored import DictStore
from beamish.errors import StateError
from beamish.tables.notes import GAPS, NOTE_FORMAT, read_note


def read(then, now):
    """The note of a stage that was, read by one that is."""
    store = DictStore()
    store.put(GAPS, json.dumps({"format": NOTE_FORMAT, "identity": then}).encode())
    return read_note(store, GAPS, now, "values of gaps", "fill_gaps()")


def test_a_part_that_is_no_longer_there_is_compared():
    with pytest.raises(StateError, match="with lifetime 2 days, the pipeline now has None"):
        read({"step": 1, "lifetime": "2 days"}, {"step": 1})


def test_a_part_without_a_value_needs_no_counterpart():
    assert read({"step": 1, "lifetime": None}, {"step": 1})
    assert read({"step": 1}, {"step": 1, "lifetime": None})

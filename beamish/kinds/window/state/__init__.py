"""The windows of a shard, and how they are stored.

In reading order: ``window_table`` (the windows that a step has loaded, one row each), ``segments`` (which windows are stored together, and
the metadata), ``state`` (loads and saves segments), ``compatibility`` (may a plan read the state of another).

Invariants: a step loads only the segments that it needs, and writes only those that it changed
(tests/laws/test_cost_follows_change.py). The columns and their types are format 4. Tests: ``pytest tests/kinds/window/test_state.py
tests/upgrades tests/at_rest``.
"""

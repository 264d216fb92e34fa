"""A step of a shard: rows into windows, windows that merge, windows that fire.

In reading order: ``packing`` (rows as payloads, before the shuffle), ``shard`` (the order of a step), ``bundle`` and ``entries`` (the rows
of a step, and each with its window), ``arrival`` with ``finding`` and ``merging`` (their windows in the table), ``firing`` (triggers and
panes), ``drops`` (rows that no window takes), ``step`` (what all of them share).

Invariants: rows of a step are processed in the order of docs/rules/time.md#steps-and-clocks; every row is in a window or dropped with a
reason; nothing is stored before all panes are made. Tests: ``pytest tests/kinds/window tests/laws -m "not spark"``.
"""

"""Stages that run together: one shuffle, one operator, one state store for a tree of stages with the same keys.

In reading order: ``operator`` (an operator made of operators, and its shards), ``groups`` (which stages run together, and why others do not),
``at_rest`` (the state of each stage, in the store of a fused operator and in one of its own).

Invariants: together equals apart, to the row, in the order within a key (docs/rules/running.md#fused-stages); the state of each stage is
stored as apart, under its own name. Tests: ``pytest tests/fusion tests/laws``.
"""

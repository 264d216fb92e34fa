"""A window stage bound to its inputs.

In reading order: ``options`` (what a pipeline declares), ``binding`` (an accumulation and its columns), ``part`` (the interface of
features), ``plan`` (all together, for the engine), ``spec`` (what a checkpoint stores of it).

Invariants: a plan has no data and is never changed by a step; two plans with equal specs may read each other's state. The spec's
names are stored, so they do not change. Tests: ``pytest tests/kinds/window tests/upgrades``.
"""

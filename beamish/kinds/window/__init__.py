"""Windows, triggers and accumulations over rows and panes.

In reading order: ``plan/`` binds options to columns, ``state/`` is what a shard stores of windows, ``step/`` takes a shard from one step
to the next, ``parts/`` are features that an option asks for, ``stored/`` reads stored windows without running them. Above them:
``checks`` and ``words`` are the stage's errors and its lines in explain, ``operator`` and ``windowings``
run it, ``stage`` declares it.

Invariants: an import goes from a later folder to an earlier one; a step knows no part, and a part no other (import contracts in
pyproject.toml). State of formats 3 and 4 stays readable: names and types of stored columns do not change. Tests:
``pytest tests/kinds/window tests/laws``.
"""

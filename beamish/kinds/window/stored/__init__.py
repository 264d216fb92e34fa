"""Stored windows, read without running them: ``state()``, ``bm.inspect``, ``why``.

In reading order: ``read_plan`` (the plan, from a pipeline or from the stored spec), ``stored_windows`` (what the metadata says),
``at_rest`` (windows and their rows as tables), ``counted`` (numbers of windows).

Invariants: nothing here writes; only the entries that an answer needs are read; the names of its columns are public
(docs/rules/running.md#inspect). Tests: ``pytest tests/at_rest tests/kinds/window/test_laws_kept_windows.py``.
"""

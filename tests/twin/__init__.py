"""The slow twin: docs/semantics.md in plain Python, row by row.

Here are the interpreter, windows of time, and what several kinds share; a kind's own part is ``tests/kinds/<kind>/twin.py``.
It shares nothing with the engine but the option classes and ``Pane``. An anchor in a comment names its rule.
"""

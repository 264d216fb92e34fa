"""The slow twin: the meaning of docs/semantics.md, row by row, in plain Python.

Here are the interpreter, windows of time, and what several kinds share; a kind's own part is ``tests/kinds/<kind>/twin.py``.
It shares nothing with the engine but the option classes and ``Pane``. An anchor in a comment names its rule.
"""

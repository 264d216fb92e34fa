"""The slow twin: the meaning of docs/semantics.md, row by row, in plain Python.

It shares nothing with the engine but the option classes and ``Pane``. An anchor in a comment names its rule.
"""

from tests.twin import as_of, counted, once, suppress, versions
from tests.twin.run import run

__all__ = ["as_of", "counted", "once", "run", "suppress", "versions"]

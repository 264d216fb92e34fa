"""The slow twin: the meaning of DESIGN.md section 3 and RULES.md, row by row, in plain Python.

It shares nothing with the engine but the option classes and ``Pane``. A number in a comment is a rule of RULES.md.
"""

from tests.twin.run import run

__all__ = ["run"]

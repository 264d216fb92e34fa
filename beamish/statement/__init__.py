"""A pipeline as SQL text: its clauses, its expressions, what it compiles to, and how it runs.

Only this folder knows sqlglot, and ``import beamish`` loads none of it. sqlglot cuts the text into tokens and reads expressions;
the clauses are found here, so that each is said to stand where the user wrote it.
"""

from beamish.statement.query import Query, sql

__all__ = ["Query", "sql"]

"""A pipeline as SQL text: its clauses, its expressions, what it compiles to, and how it runs.

Only this folder uses sqlglot, and ``import beamish`` does not load it. sqlglot tokenizes the text and parses expressions; clauses
are parsed here, so that errors have the user's positions.
"""

from beamish.statement.query import Query, sql

__all__ = ["Query", "sql"]

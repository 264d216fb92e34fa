"""Statements of ksqlDB as text, up to their clauses.

- names.py: names and how they are quoted.
- text.py: the text, with positions for errors.
- clauses.py: what a statement says.
- parser.py: tokens.
- statements.py: statements, from their clauses.
- expressions.py, aggregates.py: what stands in a clause.
"""

"""Joins of changing tables by any columns, as the changes of the joined rows (docs/rules/joins.md#changing-tables)."""

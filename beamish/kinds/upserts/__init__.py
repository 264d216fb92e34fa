"""Upserts by key as changes of a table (docs/rules/upserts.md)."""

"""Gaps in the rows of a key, filled (docs/rules/gaps.md)."""

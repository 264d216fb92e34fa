"""Panes as a changelog in the words of others, and the panes that are live (docs/rules/changelogs.md#changelogs)."""

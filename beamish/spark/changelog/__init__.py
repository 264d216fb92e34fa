"""Panes as a changelog in other formats, and live panes (docs/rules/changelogs.md#changelogs)."""

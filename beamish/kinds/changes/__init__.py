"""Changelogs of other systems, to be suppressed: ``Pipeline.changes``."""

"""Changelogs that are not of beamish, to be suppressed: ``Pipeline.changes``."""

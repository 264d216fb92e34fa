"""Versioned tables in process, in memory or in a file (docs/tables.md)."""

"""Versioned tables: changes in any order as versions with a validity interval."""

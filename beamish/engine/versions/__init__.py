"""Changes of a table as versions."""

"""As-of joins: each row with the version of a table that was valid at its own time."""

"""As-of joins: each row joined with the version of a table that was valid at its own time."""

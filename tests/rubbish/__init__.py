"""Rubbish in: keys and values of every type at their edges, by every accumulation and kind of window, against plain Spark SQL."""

"""The engine: panes from rows, a column at a time. It knows numpy and Arrow, and nothing of Spark."""

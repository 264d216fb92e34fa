"""A test script: its events, its rows as tables, its panes as objects."""

"""The window operator: rows in windows, triggers, panes, on columns."""

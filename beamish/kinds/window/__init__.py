"""Windows, triggers and accumulations over rows and panes."""

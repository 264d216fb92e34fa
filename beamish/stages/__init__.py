"""Kinds of stages: what takes the rows of sources, or the panes of other stages, and gives panes."""

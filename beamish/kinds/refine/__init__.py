"""Conditions and computed columns over the output of a stage: ``having`` and ``with_columns``."""

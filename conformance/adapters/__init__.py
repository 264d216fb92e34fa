"""Adapters: examples of the protocol."""

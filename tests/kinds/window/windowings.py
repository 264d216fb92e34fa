"""The panes of one of several windowings."""

from __future__ import annotations

import attrs


def of_windowing(panes, name):
    """The panes of one windowing, as its own pipeline would give them."""
    return [
        attrs.evolve(pane, key={column: value for column, value in pane.key.items() if column != "windowing"})
        for pane in panes
        if pane.key["windowing"] == name
    ]

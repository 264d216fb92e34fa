"""Several windowings: each is what a pipeline of its own would give."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

import beamish as bm
from beamish import Pane
from beamish.options import Options
from beamish.script.events import Event
from tests.twin.run import run


def run_windowings(options: Options, events: Sequence[Event]) -> dict[str, list[Pane]]:
    """The panes of each windowing, by its name."""
    assert isinstance(options.window, bm.Windowings)
    return {name: run(attrs.evolve(options, window=window), events) for name, window in options.window.options.items()}

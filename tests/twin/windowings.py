"""Several windowings: each equals a pipeline of its own."""

from __future__ import annotations

from collections.abc import Sequence

import beamish as bm
from beamish import Pane
from beamish.script import Event
from tests.declared_options import evolve, said
from tests.twin.run import run


def run_windowings(pipeline: bm.Pipeline, events: Sequence[Event]) -> dict[str, list[Pane]]:
    """The panes of each windowing, by its name."""
    several = said(pipeline).window
    assert isinstance(several, bm.Windowings)
    return {name: run(evolve(pipeline, window=window), events) for name, window in several.options.items()}

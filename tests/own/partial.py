"""Users' classes that lack something: a result type, or a word on their windows or panes."""

from __future__ import annotations

import attrs

import beamish as bm
from beamish.accumulations import Accumulation
from beamish.triggers import Trigger


@attrs.frozen
class NoResultType(Accumulation):
    column: str = "score"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return accumulator + value

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


@attrs.frozen
class OwnTrigger(Trigger):
    def should_fire(self, state, context):
        return True


@attrs.frozen
class OwnWindows(bm.WindowOption):
    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1


@attrs.frozen
class OwnMergingWindows(OwnWindows):
    merging = True


@attrs.frozen
class Twice(bm.FixedWindows):
    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1
        yield timestamp_us, timestamp_us + 2

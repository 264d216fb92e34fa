"""Accumulations as users write them: functions for Reduce and Fold, and classes."""

from __future__ import annotations

import attrs

from beamish import accumulations as a


def add_scores(total, score):
    return total + (score or 0)


def names_seen(seen, row):
    return [*seen, row["name"]]


def join(one, other):
    return sorted([*one, *other], key=lambda value: (value is not None, value))


def sorted_names(seen, row):
    return join(seen, [row["name"]])


def sorted_values(seen, row):
    return join(seen, [row["value"]])


@attrs.frozen
class Range(a.Accumulation):
    """A user's accumulation: the distance between the least and the greatest value."""

    column: str
    result_type = "bigint"

    def create(self):
        return None

    def add(self, accumulator, value):
        return accumulator if value is None else self.merge(accumulator, (value, value))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return min(a[0], b[0]), max(a[1], b[1])

    def extract(self, accumulator):
        return None if accumulator is None else accumulator[1] - accumulator[0]


class Sketch:
    """An accumulator that is an object, as those of libraries are."""

    def __init__(self, seen=()):
        self.seen = set(seen)


@attrs.frozen
class Distinct(a.Accumulation):
    """A user's accumulation whose accumulator is an object: how many values differ."""

    column: str
    result_type = "bigint"

    def create(self):
        return Sketch()

    def add(self, accumulator, value):
        accumulator.seen.add(value)
        return accumulator

    def merge(self, a, b):
        return Sketch(a.seen | b.seen)

    def extract(self, accumulator):
        return len(accumulator.seen)

    def dump(self, accumulator):
        return list(accumulator.seen)

    def load(self, dumped):
        return Sketch(dumped)


@attrs.frozen
class PairsSeen(a.Accumulation):
    """A user's accumulation of two columns: how many rows have both, how many one, how many none."""

    column = ("score", "name")
    result_type = "array<bigint>"

    def create(self):
        return [0, 0, 0]

    def add(self, accumulator, value):
        accumulator[sum(part is None for part in value)] += 1
        return accumulator

    def merge(self, a, b):
        return [x + y for x, y in zip(a, b, strict=True)]

    def extract(self, accumulator):
        return accumulator


@attrs.frozen
class Balance(a.Accumulation):
    """A user's accumulation that can take rows back: a sum, and how many rows are in it."""

    column: str
    result_type = "array<bigint>"

    def create(self):
        return (0, 0)

    def add(self, accumulator, value):
        return accumulator[0] + (value or 0), accumulator[1] + 1

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def extract(self, accumulator):
        return list(accumulator)

    def retract(self, accumulator, value):
        return accumulator[0] - (value or 0), accumulator[1] - 1

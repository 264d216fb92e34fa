"""Accumulations whose discarding values can be added up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs

from beamish.accumulations import Count, Max, Min, Sum
from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.codec import decode, encode
from beamish.testing.laws.runs import is_own, remembered
from beamish.testing.stream import Runnable


@attrs.frozen
class Adder:
    """An accumulation whose discarding values can be added up.

    Attributes:
        made: the accumulation that is run in its place.
        add: adds up its values.
    """

    made: Accumulation
    add: Callable[[Sequence[Any]], Any]


@remembered
def adders_of(pipeline: Runnable) -> dict[str, Adder]:
    """The accumulations of the last stage whose values add up, by name."""
    accumulations = pipeline.flow.stage.core.declared("accumulations") or {}
    found = {name: _adder(accumulation) for name, accumulation in accumulations.items()}
    return {name: adder for name, adder in found.items() if adder is not None}


def _adder(accumulation: Accumulation) -> Adder | None:
    match accumulation:
        case Count():
            return Adder(accumulation, sum)
        case Sum():
            return Adder(accumulation, lambda parts: _present(sum, parts))
        case Min():
            return Adder(accumulation, lambda parts: _present(partial(min, key=_order), parts))
        case Max():
            return Adder(accumulation, lambda parts: _present(partial(max, key=_order), parts))
    if is_own(accumulation) and accumulation.preaggregates:
        return Adder(_Stored(accumulation), lambda parts: _merged(accumulation, parts))
    return None


def _order(value: Any) -> tuple[bool, Any]:
    """Spark's order: NaN is the greatest."""
    return isinstance(value, float) and math.isnan(value), value


def _present(add: Callable[[list[Any]], Any], parts: Sequence[Any]) -> Any:
    known = [part for part in parts if part is not None]
    return add(known) if known else None


def _merged(accumulation: Accumulation, parts: Sequence[bytes]) -> Any:
    merged = accumulation.create()
    for part in parts:
        merged = accumulation.merge(merged, accumulation.load(decode(part)))
    return accumulation.extract(merged)


@attrs.frozen
class _Stored(Accumulation):
    """An accumulation whose value is its stored accumulator."""

    of_own: Accumulation
    result_type = "binary"

    @property
    def column(self) -> Any:
        return self.of_own.column

    def create(self) -> Any:
        return self.of_own.create()

    def add(self, accumulator: Any, value: Any, /) -> Any:
        return self.of_own.add(accumulator, value)

    def merge(self, a: Any, b: Any, /) -> Any:
        return self.of_own.merge(a, b)

    def extract(self, accumulator: Any, /) -> Any:
        return encode(self.of_own.dump(accumulator))

    def dump(self, accumulator: Any, /) -> Any:
        return self.of_own.dump(accumulator)

    def load(self, dumped: Any, /) -> Any:
        return self.of_own.load(dumped)

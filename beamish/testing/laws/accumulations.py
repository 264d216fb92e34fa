"""The laws of accumulations (beamish/accumulations/base/accumulation.py), on rows, and their check.

``rows`` are the values that ``add`` takes, in the order of their event times. Where ``types`` are given, for accumulations on
columns, they are tuples: event time in microseconds, number of the window, one value per type.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from beamish.accumulations.base import python
from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.base.columnar import Columnar
from beamish.accumulations.base.retractable import Retracting, retractable
from beamish.errors import OptionError
from beamish.kernels.buffers import plain
from beamish.kernels.codec import decode, encode
from beamish.kernels.groups import Groups
from beamish.testing.laws.report import TOLERANCE, Law, LawError, require, same, search, value_of_function
from beamish.testing.laws.seen import Seen
from beamish.testing.written import Named

Rows = Sequence[Any]
Types = Sequence[pa.DataType] | None
WINDOWS = 3
"""How many windows accumulate at once, on columns."""


def check_accumulation(
    accumulation: Accumulation,
    *,
    values: st.SearchStrategy[Any],
    expected: Callable[[list[Any]], Any] | None = None,
    nulls: bool = True,
    tolerance: float = TOLERANCE,
    types: Types = None,
    examples: int = 200,
    seed: int = 0,
    floor: float = 0.02,
) -> Seen:
    """Check an accumulation on drawn rows.

    The laws: accumulators share no state; merging is associative and commutative, agrees with adding and has ``create()`` as its identity; the order of rows is
    irrelevant; an accumulator is stored and restored unchanged; arguments are not modified, except the first; the same rows always
    have the same value, of the result type; ``retract``, if defined, undoes ``add``.

    Args:
        accumulation: the accumulation, such as ``MyOwn("score")``.
        values: a strategy of what ``add`` takes: values of the column, tuples for several columns, or rows as dicts. numpy's
            scalars are passed as Python's, as they are in a pipeline.
        expected: computes the value from a list of what is added, nulls among it; None: not compared.
        nulls: whether nulls are added too, in any column.
        tolerance: relative, for floats, whose sums depend on the order of rows; 0: exact.
        types: the Arrow types of the columns; only for built-in accumulations, which need them.
        examples: the number of examples.
        seed: of the examples; another seed draws others.
        floor: share of the examples that must have several different rows, and in which each law must have something to compare;
            0: none.

    Returns:
        what was drawn.

    Raises:
        LawError: a law does not hold, with the smallest rows that break it.
        VacuousError: too few examples had different rows, or a law had too little to compare.
        PipelineError: a method or the result type is missing.

    Example:
        >>> import attrs
        >>> from hypothesis import strategies as st
        >>> from beamish.accumulations import Accumulation
        >>> @attrs.frozen
        ... class Longest(Accumulation):
        ...     column: str
        ...     result_type = "bigint"
        ...     def create(self): return 0
        ...     def add(self, accumulator, value): return max(accumulator, len(value or ""))
        ...     def merge(self, a, b): return max(a, b)
        ...     def extract(self, accumulator): return accumulator
        >>> check_accumulation(Longest("name"), values=st.text(), examples=20).examples
        20
    """
    if not isinstance(accumulation, Accumulation):
        raise OptionError(f"check_accumulation({accumulation!r}): must be an accumulation, such as MyOwn('score')")
    if isinstance(accumulation, Columnar) and types is None:
        raise OptionError(f"check_accumulation({accumulation!r}): give the types of its columns, types=[pa.int64()]")
    accumulation.check("value", merging=True)
    on, how = (
        (accumulation if types is None else OnColumns(accumulation, types)),
        ([] if tolerance == TOLERANCE else [tolerance]),
    )
    seen = Seen()

    def held(parts: tuple[Rows, Rows, Rows]) -> None:
        rows = [row for part in parts for row in part]
        different = len(set(map(repr, rows))) > 1
        seen.add({"rows": len(rows), "nulls": sum(map(_has_null, rows)), "several different rows": different})

    part = st.lists(_rows_of(values, nulls=nulls, types=types), max_size=4)
    compared = search(
        st.tuples(part, part, part),
        lambda parts: _expected_of(on, parts, expected, *how) | _laws_of(on, parts, *how),
        examples=examples,
        seed=seed,
        held=held,
    )
    seen.note(compared)
    return seen.check("several different rows", *compared, floor=floor)


def _expected_of(
    on: Accumulation | OnColumns,
    parts: tuple[Rows, Rows, Rows],
    expected: Callable[[list[Any]], Any] | None,
    *how: float,
) -> dict[Law, Sequence[Any]]:
    if expected is None:
        return {}
    rows = [row for part in parts for row in part]
    return {value_is_expected: (on, rows, Named(expected, getattr(expected, "__name__", "expected")), *how)}


def _laws_of(on: Accumulation | OnColumns, parts: tuple[Rows, Rows, Rows], *how: float) -> dict[Law, Sequence[Any]]:
    """The laws that apply, each with its arguments; ``how``: the tolerance, if any."""
    a, b, c = parts
    accumulation = on.accumulation if isinstance(on, OnColumns) else on
    laws: dict[Law, Sequence[Any]] = {same_rows_have_same_value: (on, a, b, c)}
    if on is accumulation:
        laws[accumulators_share_no_state] = (on, a, b)
        laws[state_restores_accumulator] = (on, [*a, *b], c, *how)
        laws[arguments_are_unchanged] = (on, a, b)
    if accumulation.preaggregates:
        laws |= {
            new_accumulator_is_identity: (on, a, *how),
            merge_agrees_with_add: (on, a, b, *how),
            merge_is_commutative: (on, a, b, *how),
            merge_is_associative: (on, a, b, c, *how),
            order_of_rows_is_irrelevant: (on, a, *how),
        }
    if accumulation.retract is not None or on is not accumulation:
        laws[retract_undoes_add] = (on, a, b, c, *how)
    return laws


def accumulators_share_no_state(accumulation: Accumulation, rows: Rows, others: Rows) -> bool:
    """``create()`` returns a new accumulator: rows that are added to another one, of another window or key, do not change it.

    It compares the accumulators of two windows that both have rows.
    """
    empty = accumulation.create()
    before = [_content(accumulation, empty)]
    first = _added(accumulation, copy.deepcopy(list(rows)))
    before.append(_content(accumulation, first))
    _added(accumulation, copy.deepcopy(list(others)))
    given = [_content(accumulation, empty), _content(accumulation, first)]
    if not same(before, given):
        expected, given = ([f"without rows: {none!r}", f"with its rows: {own!r}"] for none, own in (before, given))
        raise LawError(accumulators_share_no_state, expected, given)
    return bool(rows) and bool(others)


def value_is_expected(
    accumulation: Accumulation | OnColumns,
    rows: Rows,
    expected: Callable[[list[Any]], Any],
    tolerance: float = TOLERANCE,
) -> bool:
    """The value of rows is the expected one.

    It compares several rows.
    """
    calls = _calls(accumulation)
    wanted, given = value_of_function(expected, copy.deepcopy(list(rows))), calls.value(calls.of(rows))
    require(value_is_expected, expected=wanted, given=given, tolerance=tolerance)
    return len(rows) > 1


def same_rows_have_same_value(accumulation: Accumulation | OnColumns, a: Rows, b: Rows, c: Rows) -> bool:
    """The same rows, or no rows, always have the same value, of the result type, whatever was called before: no state is shared.

    It compares several parts with rows.
    """
    calls = _calls(accumulation)
    parts: list[Rows] = [[], a, b, c]
    expected = [calls.value(calls.of(rows)) for rows in parts]
    calls.value(calls.merge(calls.of(c), calls.of(b), calls.of(a)))
    require(same_rows_have_same_value, expected=expected, given=[calls.value(calls.of(rows)) for rows in parts])
    return len(list(filter(None, parts))) > 1


def state_restores_accumulator(accumulation: Accumulation, a: Rows, b: Rows, tolerance: float = TOLERANCE) -> bool:
    """An accumulator that is restored from its stored state has the same value, and accepts further rows likewise.

    It compares rows before and after it is stored.
    """
    kept, restored = accumulation.create(), accumulation.create()
    for value in copy.deepcopy(list(a)):
        kept, restored = accumulation.add(kept, value), accumulation.add(restored, value)
    restored = accumulation.load(decode(encode(accumulation.dump(restored))))
    for value in copy.deepcopy(list(b)):
        kept, restored = accumulation.add(kept, value), accumulation.add(restored, value)
    expected, given = accumulation.extract(kept), accumulation.extract(restored)
    require(state_restores_accumulator, expected=expected, given=given, tolerance=tolerance)
    return bool(a) and bool(b)


def arguments_are_unchanged(accumulation: Accumulation, a: Rows, b: Rows) -> bool:
    """``add`` and ``merge`` modify no argument but the first, ``extract`` and ``dump`` none.

    It compares two parts that both have rows.
    """
    rows = copy.deepcopy(list(a))
    one, other = _added(accumulation, rows), _added(accumulation, b)
    require(arguments_are_unchanged, expected=list(a), given=rows)
    before = [copy.deepcopy(accumulation.dump(other)), accumulation.dump(other)]
    require(arguments_are_unchanged, expected=before[0], given=before[1])
    accumulation.extract(other)
    require(arguments_are_unchanged, expected=before[0], given=accumulation.dump(other))
    accumulation.merge(one, other)
    require(arguments_are_unchanged, expected=before[0], given=accumulation.dump(other))
    return bool(a) and bool(b)


def new_accumulator_is_identity(
    accumulation: Accumulation | OnColumns, rows: Rows, tolerance: float = TOLERANCE
) -> bool:
    """Merging with the accumulator of no rows, ``create()``, changes no value.

    It compares a part with rows.
    """
    calls = _calls(accumulation)
    expected = calls.value(calls.of(rows))
    given = [
        calls.value(calls.merge(calls.new(), calls.of(rows))),
        calls.value(calls.merge(calls.of(rows), calls.new())),
    ]
    require(new_accumulator_is_identity, expected=[expected, expected], given=given, tolerance=tolerance)
    return bool(rows)


def merge_agrees_with_add(
    accumulation: Accumulation | OnColumns, a: Rows, b: Rows, tolerance: float = TOLERANCE
) -> bool:
    """Merging the accumulators of two parts of the rows gives the value of all rows added to one.

    It compares two parts that both have rows.
    """
    calls = _calls(accumulation)
    expected = calls.value(calls.add(calls.of(a), b))
    given = calls.value(calls.merge(calls.of(a), calls.of(b)))
    require(merge_agrees_with_add, expected=expected, given=given, tolerance=tolerance)
    return bool(a) and bool(b)


def merge_is_commutative(
    accumulation: Accumulation | OnColumns, a: Rows, b: Rows, tolerance: float = TOLERANCE
) -> bool:
    """``merge(a, b)`` and ``merge(b, a)`` have the same value.

    It compares two parts that both have rows.
    """
    calls = _calls(accumulation)
    expected = calls.value(calls.merge(calls.of(a), calls.of(b)))
    given = calls.value(calls.merge(calls.of(b), calls.of(a)))
    require(merge_is_commutative, expected=expected, given=given, tolerance=tolerance)
    return bool(a) and bool(b)


def merge_is_associative(
    accumulation: Accumulation | OnColumns, a: Rows, b: Rows, c: Rows, tolerance: float = TOLERANCE
) -> bool:
    """``merge(merge(a, b), c)`` and ``merge(a, merge(b, c))`` have the same value.

    It compares three parts that all have rows.
    """
    calls = _calls(accumulation)
    one, two, three = map(calls.of, (a, b, c))
    expected = calls.value(calls.merge(calls.merge(one, two), three))
    given = calls.value(calls.merge(one, calls.merge(two, three)))
    require(merge_is_associative, expected=expected, given=given, tolerance=tolerance)
    return bool(a) and bool(b) and bool(c)


def order_of_rows_is_irrelevant(
    accumulation: Accumulation | OnColumns, rows: Rows, tolerance: float = TOLERANCE
) -> bool:
    """Rows that arrive in another order give the same value.

    It compares different rows of a part.
    """
    calls = _calls(accumulation)
    expected, given = calls.new(), calls.new()
    for row in rows:
        expected = calls.add(expected, [row])
    for row in reversed(rows):
        given = calls.add(given, [row])
    values = calls.value(expected), calls.value(given)
    require(order_of_rows_is_irrelevant, expected=values[0], given=values[1], tolerance=tolerance)
    return len(set(map(repr, rows))) > 1


def retract_undoes_add(
    accumulation: Accumulation | OnColumns, a: Rows, removed: Rows, b: Rows, tolerance: float = TOLERANCE
) -> bool:
    """Rows that are added and retracted leave no trace, whatever is added before and between.

    It compares removals of rows beside others.
    """
    calls = _calls(accumulation)
    added, away = [(1, row) for row in removed], [(-1, row) for row in removed]
    before, after = [(1, row) for row in a], [(1, row) for row in b]
    expected = calls.signed([*before, *after])
    given = [calls.signed([*before, *added, *after, *away]), calls.signed([*before, *added, *away, *after])]
    require(retract_undoes_add, expected=[expected, expected], given=given, tolerance=tolerance)
    return bool(removed) and bool([*a, *b])


def _rows_of(values: st.SearchStrategy[Any], *, nulls: bool, types: Types) -> st.SearchStrategy[Any]:
    row = st.builds(_without_some, values, st.lists(st.integers(0, 9), max_size=3)) if nulls else values
    row = row.map(_as_python_value)
    if types is None:
        return row
    times, windows = st.integers(-3, 3), st.integers(0, WINDOWS - 1)
    return st.tuples(times, windows, row).map(lambda drawn: (*drawn[:2], *(drawn[2] if len(types) != 1 else drawn[2:])))


def _without_some(value: Any, nulls: Sequence[int]) -> Any:
    """A row with nulls in some of its columns."""
    match value:
        case dict():
            return {name: None if place in nulls else own for place, (name, own) in enumerate(value.items())}
        case tuple():
            return tuple(None if place in nulls else own for place, own in enumerate(value))
        case _:
            return None if 0 in nulls else value


def _as_python_value(value: Any) -> Any:
    match value:
        case np.generic():
            return value.item()
        case dict():
            return {name: _as_python_value(own) for name, own in value.items()}
        case tuple():
            return tuple(map(_as_python_value, value))
        case _:
            return value


def _has_null(row: Any) -> bool:
    return row is None or None in (row.values() if isinstance(row, dict) else row if isinstance(row, tuple) else ())


def _content(accumulation: Accumulation, accumulator: Any) -> Any:
    """A copy of the state of an accumulator."""
    return copy.deepcopy(accumulation.dump(accumulator))


def _added(accumulation: Accumulation, rows: Rows) -> Any:
    accumulator = accumulation.create()
    for value in rows:
        accumulator = accumulation.add(accumulator, value)
    return accumulator


class _Calls(Protocol):
    """The calls that an engine makes on the states of windows."""

    def new(self) -> Any: ...
    def of(self, rows: Rows) -> Any: ...
    def add(self, state: Any, rows: Rows) -> Any: ...
    def merge(self, *states: Any) -> Any: ...
    def value(self, state: Any) -> Any: ...
    def signed(self, rows: Sequence[tuple[int, Any]]) -> Any:
        """The value of rows that are added (1) or retracted (-1), one by one."""


def _calls(accumulation: Accumulation | OnColumns) -> _Calls:
    return _Python(accumulation) if isinstance(accumulation, Accumulation) else accumulation


@attrs.frozen
class _Python:
    """An accumulation in plain Python, in one window."""

    accumulation: Accumulation

    def new(self) -> pa.Array:
        return pa.array([encode(self.accumulation.dump(self.accumulation.create()))], pa.binary())

    def of(self, rows: Rows) -> pa.Array:
        return self.add(python.no_rows(1), rows)

    def add(self, state: pa.Array, rows: Rows, owner: Accumulation | None = None) -> pa.Array:
        groups = Groups(np.zeros(len(rows), dtype=np.int64), 1)
        return python.add_rows(owner or self.accumulation, state, copy.deepcopy(list(rows)), groups, [])

    def merge(self, *states: pa.Array) -> pa.Array:
        groups = Groups(np.zeros(len(states), dtype=np.int64), 1)
        return python.merge_accumulators(self.accumulation, pa.concat_arrays(states), groups)

    def signed(self, rows: Sequence[tuple[int, Any]]) -> Any:
        return self.value(self.add(self.new(), rows, Retracting(self.accumulation)))

    def value(self, state: pa.Array) -> Any:
        return python.extract(self.accumulation, state, self.accumulation.value_type(())).to_pylist()[0]


@attrs.frozen
class OnColumns:
    """An accumulation on columns of these types, in several windows at once."""

    accumulation: Accumulation
    types: Sequence[pa.DataType]

    def new(self) -> list[pa.Array]:
        return self.of([])

    def of(self, rows: Rows) -> list[pa.Array]:
        return self.accumulation.reduce(*self._columns(rows))

    def add(self, state: list[pa.Array], rows: Rows) -> list[pa.Array]:
        return self.accumulation.add_rows(state, *self._columns(rows))

    def merge(self, *states: list[pa.Array]) -> list[pa.Array]:
        together = [pa.concat_arrays(fields) for fields in zip(*states, strict=True)]
        return self.accumulation.combine(Groups(np.tile(np.arange(WINDOWS), len(states)), WINDOWS), together)

    def signed(self, rows: Sequence[tuple[int, Any]]) -> Any:
        signed, sign = retractable(self.accumulation, self.types), pa.array([sign for sign, _ in rows], pa.int8())
        columns, times, groups = self._columns([row for _, row in rows])
        state = signed.reduce([sign, *columns], times, groups)
        return plain(signed.extract_columns(state, self.types)).to_pylist()

    def value(self, state: list[pa.Array]) -> Any:
        column = self.accumulation.extract_columns(state, self.types)
        return plain(column).to_pylist()

    def _columns(self, rows: Rows) -> tuple[list[pa.Array], Any, Groups]:
        times, windows, *values = zip(*rows, strict=True) if rows else ((), (), *((),) * len(self.types))
        columns = [pa.array(list(own), type_) for own, type_ in zip(values, self.types, strict=True)]
        return columns, np.array(times, dtype=np.int64), Groups(np.array(windows, dtype=np.int64), WINDOWS)

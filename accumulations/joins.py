"""Windowed joins: the rows of a merge's inputs that share key and window, side by side.

Storage of the rows: base/gathered.py; joins that emit each pair once: base/pairs_once.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs
import pyarrow.compute as pc

from beamish.accumulations.base.accumulation import Accumulation, MergedInput
from beamish.accumulations.base.columnar import flag_field
from beamish.accumulations.base.gathered import Gathered, Pairs, Side, side_of
from beamish.accumulations.base.one_input import OfInputs
from beamish.accumulations.base.pairs_once import Keeps, PairsOnce
from beamish.durations import Duration, DurationLike, positive
from beamish.errors import OptionError
from beamish.kernels.expressions import Formula, read_condition
from beamish.kernels.identity import Named

NullKeys: TypeAlias = Literal["unmatched", "pair"]
"""Whether null keys have no match, or match each other."""


def _check_inputs(where: str, inputs: Sequence[object]) -> None:
    for input_ in inputs:
        if not isinstance(input_, str) or not input_:
            raise OptionError(f"{where}: {input_!r} must be the name of an input of bm.merge")
    if len(set(inputs)) < len(inputs):
        raise OptionError(
            f"{where}: an input is named twice; merge the DataFrame under two names to join it with itself"
        )


class _Gathering(OfInputs):
    """Base of CoGroup and the joins, which store the rows of the inputs they name."""

    __slots__ = ()

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        return Gathered(self, self._sides(name, inputs))

    def _sides(self, name: str, inputs: Mapping[str, MergedInput]) -> tuple[Side, ...]:
        return tuple(side_of(f"accumulate({name}={self!r})", inputs[input_]) for input_ in self.names_of_inputs)


@attrs.frozen(init=False, repr=False)
class CoGroup(_Gathering):
    """The rows of each input, by key and window (Beam: ``CoGroupByKey``).

    The rows of an input are in the order of event times, those of one time in Spark's sort order. The state holds
    every row: it grows with the rows of the window.

    Args:
        inputs: the names of one or more inputs of the merge.

    Returns:
        struct of one array per input, empty if it has no rows. An item is a struct of the row's columns without the keys.

    Raises:
        OptionError: no input, an invalid name, or the same input twice.
        ColumnError: a column's type is not orderable (maps).

    Example:
        >>> from beamish.accumulations import CoGroup
        >>> CoGroup("orders", "clicks")
        CoGroup('orders', 'clicks')
    """

    names: tuple[str, ...]

    def __init__(self, *inputs: str) -> None:
        if not inputs:
            raise OptionError("CoGroup(): needs the name of at least one input, such as CoGroup('orders', 'clicks')")
        _check_inputs(f"CoGroup{inputs!r}", inputs)
        self.__attrs_init__(inputs)

    def __repr__(self) -> str:
        return f"CoGroup({', '.join(map(repr, self.names))})"

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        return self.names


if TYPE_CHECKING:  # type checkers treat a converter as a function of the value

    def _read_conditions(conditions: Mapping[str, pc.Expression | Formula]) -> Mapping[str, Formula]: ...

else:

    def _read_each(conditions: Any, join: Any, field: Any) -> Any:
        where = f"{type(join).__name__}({field.name})"
        if not isinstance(conditions, Mapping):
            raise OptionError(
                f"{where}={conditions!r}: must be conditions by input, such as {{{join.left!r}: pc.field('amount') > 3}}"
            )
        return Named(
            {
                name: read_condition(f"{where}: {name}", one, "pc.field('amount') > 3")
                for name, one in conditions.items()
            }
        )

    _read_each.__annotations__ = {"conditions": "Mapping[str, pc.Expression]"}
    _read_conditions = attrs.Converter(_read_each, takes_self=True, takes_field=True)


def _read_rows(kept: Mapping[str, int]) -> Any:
    return Named(kept) if isinstance(kept, Mapping) else kept  # type: ignore[redundant-expr]


if TYPE_CHECKING:  # type checkers treat a converter as a function of the value

    def _read_durations(kept: Mapping[str, DurationLike]) -> Mapping[str, Duration]: ...

else:

    def _read(kept: Mapping[str, DurationLike], join: Any, field: Any) -> Any:
        if not isinstance(kept, Mapping):
            return kept
        where = f"{type(join).__name__}({field.name})"
        return Named({name: positive(f"{where}: {name}", how_long) for name, how_long in kept.items()})

    _read_durations = attrs.Converter(_read, takes_self=True, takes_field=True)


@attrs.frozen(repr=False)
class Join(_Gathering):
    """Base of the joins: two inputs, and which unmatched rows are emitted."""

    left: str
    right: str
    once: bool = flag_field(kw_only=True)
    keep_rows: Mapping[str, int] = attrs.field(factory=dict, converter=_read_rows, kw_only=True)
    keep_for: Mapping[str, Duration] = attrs.field(factory=dict, converter=_read_durations, kw_only=True)
    null_keys: NullKeys = attrs.field(default="unmatched", kw_only=True)
    match_if: Mapping[str, Formula] = attrs.field(factory=dict, converter=_read_conditions, kw_only=True)

    explodes: ClassVar[bool] = True
    keeps_left: ClassVar[bool] = False
    """Whether unmatched left rows are emitted, with a null right side."""
    keeps_right: ClassVar[bool] = False

    def __repr__(self) -> str:
        arguments = [f"left={self.left!r}", f"right={self.right!r}"]
        arguments += [f"{name}={value!r}" for name, value in {"once": self.once, **self._kept}.items() if value]
        arguments += [f"null_keys={self.null_keys!r}"] if self.null_keys != "unmatched" else []
        arguments += [f"match_if={dict(self.match_if)!r}"] if self.match_if else []
        return f"{type(self).__name__}({', '.join(arguments)})"

    @property
    def gives_alone(self) -> tuple[bool, bool]:
        """Whether unmatched left rows are emitted, and unmatched right ones."""
        return self.keeps_left, self.keeps_right

    @property
    def _kept(self) -> dict[str, Mapping[str, Any]]:
        return {"keep_rows": self.keep_rows, "keep_for": self.keep_for}

    def __attrs_post_init__(self) -> None:
        _check_inputs(repr(self), (self.left, self.right))
        if self.null_keys not in ("unmatched", "pair"):
            raise OptionError(
                f"{type(self).__name__}(null_keys={self.null_keys!r}): must be 'unmatched', as in SQL, or 'pair', which matches null "
                "with null"
            )
        for name in self.match_if:
            if name not in self.names_of_inputs:
                raise OptionError(
                    f"{type(self).__name__}(match_if=...): {name!r} is not an input of this join; its inputs are "
                    f"{', '.join(self.names_of_inputs)}"
                )
        for what, kept in self._kept.items():
            _check_kept(f"{type(self).__name__}({what}={kept!r})", kept, self.names_of_inputs, once=self.once)
        kept_rows: Mapping[str, object] = self.keep_rows
        for name, rows in kept_rows.items():
            if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
                raise OptionError(
                    f"{type(self).__name__}(keep_rows={self.keep_rows!r}): {rows!r} rows of {name}: must be a whole number of at "
                    "least 1; leave it out to keep all"
                )

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        return self.left, self.right

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        sides = self._sides(name, inputs)
        apart = all(self.gives_alone) and self.null_keys == "unmatched" and bool(inputs[self.left].keys)
        if not self.once:
            return Pairs(self, sides, *self.gives_alone, apart)
        left, right = (self._keeps(*side) for side in zip(self.names_of_inputs, self.gives_alone, strict=True))
        return PairsOnce(self, sides, left, right, apart=apart)

    def _keeps(self, name: str, gives_alone: bool) -> Keeps:
        keep_for = self.keep_for.get(name)
        return Keeps(gives_alone, self.keep_rows.get(name), None if keep_for is None else keep_for.us)


def _check_kept(where: str, kept: object, names: Sequence[str], *, once: bool) -> None:
    if not isinstance(kept, Mapping):
        raise OptionError(f"{where}: must be given by input, such as {{{names[0]!r}: ...}}")
    if kept and not once:
        raise OptionError(f"{where}: only a join that emits each pair once supports retention; add once=True")
    for name in kept:
        if name not in names:
            raise OptionError(f"{where}: {name!r} is not an input of this join; its inputs are {', '.join(names)}")


@attrs.frozen(repr=False)
class InnerJoin(Join):
    """One row of output per pair of rows, one of each input, that share key and window.

    A join is the only accumulation of its pipeline. It stores every row of the window and emits the product of both sides. A pane
    without a pair emits no row, but is numbered.

    Args:
        left: the name of an input of the merge.
        right: the name of another.
        once: with ``discarding()``: each pair is emitted once, when its second row arrives (or their sessions merge), in the
            first window with both rows; a pane has the pairs found since the last one.
        keep_rows: with ``once``: by input name, how many rows, the latest, are kept per key and window after each bundle.
        keep_for: with ``once``: by input name, how far the watermark may pass a row's event time before the row is dropped. An
            older row is dropped on arrival (``out_of_retention``).
        null_keys: "unmatched": a row with a null in its key has no match, as in SQL, and is dropped on arrival (``null_key``)
            unless its side emits unmatched rows; "pair": null equals null.
        match_if: by input name, a condition on its rows (``pc.field("amount") > 3``) without which a row has no match, as one in
            SQL's ``ON``: it is left out unless its side emits unmatched rows.

    Returns:
        struct of two structs, named after the inputs, of a row's columns without the keys
        (``panes.select("key", "pairs.*")``).

    Raises:
        OptionError: an input is not a name, or both are the same; retention is given without ``once``, for an unknown input, or
            is not above 0; or an invalid ``null_keys`` or ``match_if``.
        ColumnError: a column's type is not orderable (maps).

    Example:
        >>> from beamish.accumulations import InnerJoin
        >>> InnerJoin("orders", "shipments", once=True, keep_for={"orders": "1 day"})
        InnerJoin(left='orders', right='shipments', once=True, keep_for={'orders': '1 day'})
    """


@attrs.frozen(repr=False)
class LeftOuterJoin(Join):
    """Like ``InnerJoin``, plus one row with a null right side per left row of a window without right rows.

    With early panes in accumulating-and-retracting mode an unmatched row is emitted early and retracted when its match arrives;
    if only the last pane fires there are no such rows. With ``once`` an unmatched row is emitted
    once: in its window's last pane, or when retention drops it; so windows may not overlap.

    Args:
        left: the name of an input of the merge.
        right: the name of another.
        once, keep_rows, keep_for, null_keys, match_if: as for ``InnerJoin``.

    Returns:
        as ``InnerJoin``; the right side may be null.

    Raises:
        OptionError: as for ``InnerJoin``.
        ColumnError: a column's type is not orderable (maps).
    """

    keeps_left = True


@attrs.frozen(repr=False)
class RightOuterJoin(Join):
    """Like ``LeftOuterJoin``, for right rows without a left one.

    Args:
        left: the name of an input of the merge.
        right: the name of another.
        once, keep_rows, keep_for, null_keys, match_if: as for ``InnerJoin``.

    Returns:
        as ``InnerJoin``; the left side may be null.

    Raises:
        OptionError: as for ``InnerJoin``.
        ColumnError: a column's type is not orderable (maps).
    """

    keeps_right = True


@attrs.frozen(repr=False)
class FullOuterJoin(Join):
    """``LeftOuterJoin`` and ``RightOuterJoin`` combined.

    Args:
        left: the name of an input of the merge.
        right: the name of another.
        once, keep_rows, keep_for, null_keys, match_if: as for ``InnerJoin``.

    Returns:
        as ``InnerJoin``; either side may be null.

    Raises:
        OptionError: as for ``InnerJoin``.
        ColumnError: a column's type is not orderable (maps).
    """

    keeps_left = True
    keeps_right = True

"""Several windowings of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from beamish.errors import OptionError
from beamish.kernels.identity import Named
from beamish.windows.option import Bounds, WindowOption, check_window
from beamish.windows.rolling import Rolling

WINDOWING = "windowing"
"""The output column with the windowing of a pane."""


def _read(options: Any) -> Named[WindowOption]:
    if not isinstance(options, Mapping) or not options:
        raise OptionError(
            f'Windowings({options!r}): window options by name, such as {{"minute": bm.FixedWindows("1 minute")}}'
        )
    for name, option in options.items():
        if not isinstance(name, str) or not name:
            raise OptionError(f"Windowings: {name!r} must be text, since it is the value of a column")
        if not isinstance(option, WindowOption) or option.windowings:
            raise OptionError(
                f"Windowings: {name!r}: {option!r} must be a WindowOption, such as bm.FixedWindows('1 minute')"
            )
        if isinstance(option, Rolling):
            raise OptionError(
                f"Windowings: {name!r}: {option!r} cannot be one of several windowings, since its rows are not panes of windows; give "
                "it a pipeline of its own, with several spans"
            )
        check_window(f"Windowings: {name!r}", option)
    return Named(options)


_read.__annotations__["options"] = "Mapping[str, WindowOption]"  # shown by help()


@attrs.frozen(repr=False)
class Windowings(WindowOption):
    """Several windowings of one stream in one pass: one shuffle, one state, and a column ``windowing``.

    The panes are those of a separate pipeline for each windowing; created by ``.window({...})``.

    Args:
        options: window options by name.

    Raises:
        OptionError: no options, or not a window option.

    Example:
        >>> import beamish as bm
        >>> both = bm.Windowings({"minute": bm.FixedWindows("1 minute"), "all": bm.GlobalWindow()})
        >>> list(both.windowings)
        ['minute', 'all']
    """

    options: Mapping[str, WindowOption] = attrs.field(converter=_read)

    @property
    def in_state(self) -> Windowings:
        return Windowings({name: option.in_state for name, option in self.options.items()})

    @property
    def windowings(self) -> Mapping[str, WindowOption]:
        return self.options

    @property
    def merging(self) -> bool:  # type: ignore[override]
        return any(option.merging for option in self.options.values())

    @property
    def overlaps(self) -> bool:
        return any(option.overlaps for option in self.options.values())

    @property
    def columns(self) -> Sequence[str]:  # type: ignore[override]
        return tuple(dict.fromkeys(name for option in self.options.values() for name in option.columns))

    def describe(self) -> str:
        each = "; ".join(f"{name}: {option.describe()}" for name, option in self.options.items())
        return f"{len(self.options)} windowings in one pass, named in the column {WINDOWING}: {each}"

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        raise NotImplementedError("each of several windowings assigns for itself")

    def __repr__(self) -> str:
        return f"Windowings({dict(self.options)!r})"

"""The option of ``Pipeline.retain``: how much of its past a key may keep (docs/rules/windows.md#retention)."""

from __future__ import annotations

import attrs

from beamish.errors import OptionError


@attrs.frozen
class Retention:
    """How much of its past a key may keep; None: unlimited.

    Attributes:
        windows: number of windows.
        rows: number of rows in them.
        bytes: bytes of accumulators.
    """

    windows: int | None = None
    rows: int | None = None
    bytes: int | None = None

    def __attrs_post_init__(self) -> None:
        said = attrs.asdict(self)
        if not any(value is not None for value in said.values()):
            raise OptionError("retain(): how much may a key keep? Say .retain(windows=100), rows=... or bytes=...")
        for name, value in said.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise OptionError(f"retain({name}={value!r}): must be a whole number, at least 1")

    @property
    def call(self) -> str:
        """The call that declares it."""
        said = attrs.asdict(self, filter=lambda _, value: value is not None)
        return f"retain({', '.join(f'{name}={value}' for name, value in said.items())})"

    def describe(self) -> str:
        """As text, for explain."""
        said = [f"{value} {name}" for name, value in attrs.asdict(self).items() if value is not None]
        return (
            f"per key its latest windows, as long as they are together at most {' and '.join(said)}; the others give their last pane, and "
            "rows that come for them are dropped"
        )

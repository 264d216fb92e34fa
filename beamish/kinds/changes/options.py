"""The options of ``Pipeline.changes``."""

from __future__ import annotations

from typing import Any

import attrs

from beamish.errors import OptionError


def _check_column(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise OptionError(f"changes({field.name}={value!r}): must be the name of a column")


@attrs.frozen
class ChangesOptions:
    """The options of ``Pipeline.changes``; None: not set."""

    deleted: str | None = attrs.field(default=None, validator=_check_column)
    sequence_by: str | None = attrs.field(default=None, validator=_check_column)
    window: str | None = attrs.field(default=None, validator=_check_column)
    with_dropped: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        return tuple(name for name in (self.deleted, self.sequence_by, self.window) if name is not None)

    @property
    def arguments(self) -> str:
        """Its arguments as they were written."""
        names = ("deleted", "sequence_by", "window")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) is not None)

"""``Pipeline.upserts``: the columns that delete and order rows, and how long keys are stored (docs/rules/upserts.md)."""

from __future__ import annotations

from typing import Any

import attrs

from beamish.durations import Duration, DurationLike, positive
from beamish.errors import OptionError


@attrs.frozen
class UpsertsOptions:
    """The options of ``Pipeline.upserts``.

    Attributes:
        deleted: the column that is true for a delete; None: no row deletes.
        sequence_by: the column that orders the rows of a key; None: the event time.
        keep_deleted: how long a delete is stored, so that an older row does not bring its key back; None: for ever.
        forget_after: how long the row of a key is stored; None: for ever.
        with_dropped: whether dropped rows are emitted.
        explode: the column whose items become rows; None: each row is one.
    """

    deleted: str | None = None
    sequence_by: str | None = None
    keep_deleted: Duration | None = None
    forget_after: Duration | None = None
    with_dropped: bool = False
    explode: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        return tuple(name for name in (self.deleted, self.sequence_by) if name is not None)

    @property
    def call(self) -> str:
        """The call that declares it."""
        given = {name: getattr(self, name) for name in ("deleted", "sequence_by", "keep_deleted")}
        shown = (f"{name}={str(value)!r}" for name, value in given.items() if value is not None)
        return f"upserts({', '.join(shown)})"


def read_upserts(deleted: Any, sequence_by: Any, keep_deleted: DurationLike | None) -> UpsertsOptions:
    """Read the arguments of a call (OptionError: not a column, or not a duration above 0)."""
    for name, column in (("deleted", deleted), ("sequence_by", sequence_by)):
        if column is not None and (not isinstance(column, str) or not column):
            raise OptionError(f"upserts({name}={column!r}): must be the name of a column")
    if keep_deleted is None:
        return UpsertsOptions(deleted, sequence_by)
    span = positive("upserts: keep_deleted", keep_deleted)
    if deleted is None:
        raise OptionError(
            f"upserts(keep_deleted={str(span)!r}): no row deletes; name the boolean column that does: deleted='gone'"
        )
    return UpsertsOptions(deleted, sequence_by, span)

"""Options that sinks have in common, and the session in which they are made."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from beamish.addresses import printable
from beamish.contract.relation import FIELDS
from beamish.errors import OptionError, SinkError


def read_fields(call: str, fields: Any) -> tuple[str, ...]:
    """The fields of a pane to store (OptionError: not a list of fields)."""
    if not _is_list(fields) or any(name not in FIELDS for name in fields):
        raise OptionError(f"{call}: fields={printable(fields)} must be a list, of {', '.join(map(repr, FIELDS))}")
    return tuple(fields)


def read_keys(call: str, keys: Any) -> tuple[str, ...] | None:
    """The columns that identify a row; None: from the panes (OptionError: not a list of names)."""
    if keys is not None and not (_is_list(keys) and keys and all(isinstance(key, str) for key in keys)):
        raise OptionError(f"{call}: keys={printable(keys)} must be a list of column names, such as keys=['order_id']")
    return None if keys is None else tuple(keys)


def read_flag(call: str, name: str, value: Any) -> bool:
    """A bool (OptionError: not a bool)."""
    if not isinstance(value, bool):
        raise OptionError(f"{call}: {name}={printable(value)} must be True or False")
    return value


def read_text(call: str, name: str, value: Any, what: str) -> str:
    """A non-empty text (OptionError: not a non-empty text)."""
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{call}: {name}={printable(value)} must be {what}")
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def active_session() -> Any:
    """The active session, classic or Connect, or None."""
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()


def is_driver() -> bool:
    """Whether ``foreachBatch`` runs in this process (classic session), not on a Spark Connect server."""
    return hasattr(active_session(), "_jsparkSession")


class OfDriver:
    """A sink takes batches on the driver, and is never sent to workers as ``foreach`` does, for single rows."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Pickle it (SinkError: for ``foreach``)."""
        if _in_foreach():
            raise SinkError(
                f"{type(self).__name__}: foreach gives it rows, and a sink takes batches: writeStream.foreachBatch(sink); nothing was written"
            )
        return super().__reduce_ex__(protocol)


def _in_foreach() -> bool:
    """Whether ``DataStreamWriter.foreach`` pickles its function, in a classic session or one of Spark Connect."""
    frames = (frame for frame, _ in traceback.walk_stack(None))
    calls = ((frame.f_code.co_name, str(frame.f_globals.get("__name__"))) for frame in frames)
    return any(
        name == "foreach" and re.fullmatch(r"pyspark\..*streaming\.readwriter", module) for name, module in calls
    )

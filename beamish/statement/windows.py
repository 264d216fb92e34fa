"""The WINDOW clause: which windows, how late rows may come, how long results are asked to be kept."""

from __future__ import annotations

import attrs

from beamish.durations import Duration
from beamish.statement.clauses import Clauses
from beamish.statement.cursor import Cursor
from beamish.statement.text import Text
from beamish.windows import FixedWindows, GlobalWindow, Sessions, SlidingWindows, WindowOption

_RULE = (
    "write WINDOW TUMBLING (SIZE 5 MINUTES), WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) or WINDOW SESSION (10 MINUTES), "
    "each with GRACE PERIOD 1 DAY within the brackets if late rows count"
)
_KINDS = ("TUMBLING", "HOPPING", "SESSION")


@attrs.frozen
class Windows:
    """What the WINDOW clause says.

    Attributes:
        option: the windows.
        grace: how late rows may come; None: not said.
        retention: how long results are asked to be kept; None: not said.
    """

    option: WindowOption = GlobalWindow()
    grace: Duration | None = None
    retention: Duration | None = None


def windows_of(text: Text, clauses: Clauses) -> Windows:
    """What the WINDOW clause says; all of time without one.

    Raises:
        SqlError: it is not written as one is, or its durations do not go together.
    """
    if "WINDOW" not in clauses.begins:
        return Windows()
    begins = clauses.begins["WINDOW"]
    cursor = Cursor(text, begins, clauses.words["WINDOW"], _RULE)
    words = clauses.words["WINDOW"]
    if words[0].word not in _KINDS and (len(words) < 2 or words[1].kind != "L_PAREN"):
        cursor.name("TUMBLING, HOPPING or SESSION, or a name before it")
        if cursor.next is not None and cursor.next.kind == "ALIAS":
            raise cursor.error("a window of rows has no meaning in a stream: expected TUMBLING, HOPPING or SESSION")
    kind = next((kind for kind in _KINDS if cursor.take(kind)), None)
    if kind is None:
        raise cursor.error("expected TUMBLING, HOPPING or SESSION")
    cursor.need("(")
    if kind != "SESSION":
        cursor.need("SIZE")
    place = begins.start if cursor.next is None else cursor.next.start
    size = cursor.duration("the gap" if kind == "SESSION" else "SIZE", least=1)
    with text.at(place):
        option: WindowOption = Sessions(size) if kind == "SESSION" else FixedWindows(size)
    if kind == "HOPPING":
        option = _hopping(text, cursor, size)
    grace = retention = None
    while cursor.take(","):
        place = begins.start if cursor.next is None else cursor.next.start
        if retention is None and cursor.take("RETENTION"):
            retention_place, retention = place, cursor.duration("RETENTION", least=0)
        elif grace is None and cursor.take("GRACE", "PERIOD"):
            grace = cursor.duration("GRACE PERIOD", least=0)
        else:
            raise cursor.error("expected RETENTION or GRACE PERIOD, each once")
    cursor.need(")")
    cursor.end()
    needed = size + (grace or Duration(0))
    if retention is not None and retention < needed:
        raise text.error(
            retention_place,
            f"RETENTION {retention} is below size plus grace, {needed}: rows would come for results that are gone; say at least "
            f"{needed}, or leave it out: it has no effect here",
        )
    return Windows(option, grace, retention)


def _hopping(text: Text, cursor: Cursor, size: Duration) -> WindowOption:
    cursor.need(",", "ADVANCE", "BY")
    place = 0 if cursor.next is None else cursor.next.start
    advance = cursor.duration("ADVANCE BY", least=1)
    if advance > size:
        raise text.error(
            place,
            f"ADVANCE BY {advance} is above SIZE {size}: rows between windows would be in none; say at most {size}",
        )
    return SlidingWindows(size, advance)

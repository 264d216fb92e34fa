"""Which types hold all that another one holds, so that what was kept in the one can be read as the other.

Whole numbers into longer ones, and decimals into ones of more digits before the point. Values stay equal, and so do their hashes
(``hashing.py``): a key stays in its shard and its segment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WHOLE = ("int8", "int16", "int32", "int64")
_DECIMAL = re.compile(r"decimal128\((\d+), (-?\d+)\)")


def widens(then: str, now: str) -> bool:
    """Whether a type is another one, and holds all that the first does; both as Arrow writes them."""
    if then in _WHOLE and now in _WHOLE:
        return _WHOLE.index(then) < _WHOLE.index(now)
    both = _DECIMAL.fullmatch(then), _DECIMAL.fullmatch(now)
    if both[0] is None or both[1] is None:
        return False
    return both[0][2] == both[1][2] and int(both[0][1]) < int(both[1][1])


def same_or_wider(then: Sequence[str], now: Sequence[str], mark: str) -> bool:
    """Whether columns are the same, but for types that hold all that they held; each is its name, the mark and its type."""
    return len(then) == len(now) and all(_is_as_wide(*both, mark) for both in zip(then, now, strict=True))


def _is_as_wide(then: str, now: str, mark: str) -> bool:
    # A name may hold the mark too.
    types = (at.end() for at in re.finditer(re.escape(mark), now))
    return then == now or any(then[:at] == now[:at] and widens(then[at:], now[at:]) for at in types)

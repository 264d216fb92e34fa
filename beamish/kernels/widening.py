"""Type widening: types that hold all values of another one, so that stored values can be read in the wider type.

Integers to wider ones, and decimals to ones with more integral digits. Values stay equal, and so do their hashes
(``hashing.py``): a key stays in its shard and its segment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WHOLE = ("int8", "int16", "int32", "int64")
_DECIMAL = re.compile(r"decimal128\((\d+), (-?\d+)\)")


def widens(then: str, now: str) -> bool:
    """Whether a type is a widening of another one; both as Arrow type names."""
    if then in _WHOLE and now in _WHOLE:
        return _WHOLE.index(then) < _WHOLE.index(now)
    both = _DECIMAL.fullmatch(then), _DECIMAL.fullmatch(now)
    if both[0] is None or both[1] is None:
        return False
    return both[0][2] == both[1][2] and int(both[0][1]) < int(both[1][1])


def same_or_wider(then: Sequence[Sequence[str]], now: Sequence[Sequence[str]]) -> bool:
    """Whether columns are the same, but for types that hold all that they held; each is its name and its type."""
    return len(then) == len(now) and all(
        was[0] == is_[0] and (was[1] == is_[1] or widens(was[1], is_[1])) for was, is_ in zip(then, now, strict=True)
    )

"""Spans of time in Flink's texts: intervals of SQL, and durations of its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from beamish.errors import OptionError

_UNITS: Mapping[str, int] = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}
_PARTS = ("DAY", "HOUR", "MINUTE", "SECOND")
_LABELS: Mapping[str, int] = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
}


def interval_us(value: str, unit: str, last: str | None) -> int | None:
    """The length of ``INTERVAL 'value' unit TO last`` in microseconds; None: it has no fixed length, or another form.

    Args:
        value: the text between the quotes.
        unit: in upper case, with or without S.
        last: the unit after TO; None without.
    """
    first = unit.removesuffix("S")
    sign, value = (-1, value[1:]) if value.startswith("-") else (1, value.removeprefix("+"))
    if last is None:
        units = [first] if first in _UNITS else []
    else:
        known = first in _PARTS and last.removesuffix("S") in _PARTS
        units = [*_PARTS[_PARTS.index(first) : _PARTS.index(last.removesuffix("S")) + 1]] if known else []
    parts = re.split(r"[ :]", value)
    if not units or len(parts) != len(units):
        return None
    whole = all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts[:-1])
    final = r"[0-9]{1,9}(\.[0-9]{1,6})?" if units[-1] == "SECOND" else r"[0-9]{1,9}"
    if not whole or not re.fullmatch(final, parts[-1]):
        return None
    return sign * int(sum(Fraction(part) * _UNITS[of] for part, of in zip(parts, units, strict=True)))


def milliseconds(value: str) -> int:
    """A duration of a setting, such as ``10 s`` (OptionError: it is not one)."""
    found = re.fullmatch(r"\s*([0-9]{1,15})\s*([a-z]*)\s*", value.lower())
    if found is None or found[2] not in _LABELS:
        raise OptionError(f"{value!r}: must be a duration, such as '10 s', '500 ms' or '1 min'")
    return int(found[1]) * _LABELS[found[2]]

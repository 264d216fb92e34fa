"""Case-insensitive column names, as in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def respelled(names: Sequence[str], asked: Iterable[str]) -> dict[str, str]:
    """Renames that give columns the spelling in which they are requested.

    Args:
        names: of the existing columns.
        asked: the requested names.

    Returns:
        the new name by the old one, for columns requested only in another spelling.
    """
    wanted, result = set(asked), {}
    for name in sorted(wanted - set(names)):
        alike = [other for other in names if other.lower() == name.lower()]
        if len(alike) == 1 and alike[0] not in wanted and alike[0] not in result:
            result[alike[0]] = name
    return result

"""Names of columns as Spark reads them: upper and lower case are not told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def respelled(names: Sequence[str], asked: Iterable[str]) -> dict[str, str]:
    """Which columns are to be called otherwise, so that each has the name by which it is asked for.

    Args:
        names: of the columns that are there.
        asked: names by which columns are asked for.

    Returns:
        the new name by the old one, for each column that is asked for in another spelling only.
    """
    wanted, result = set(asked), {}
    for name in sorted(wanted - set(names)):
        alike = [other for other in names if other.lower() == name.lower()]
        if len(alike) == 1 and alike[0] not in wanted and alike[0] not in result:
            result[alike[0]] = name
    return result

"""Databases that are a file."""

from __future__ import annotations

from beamish.errors import OptionError


def path_of(uri: str) -> str:
    """The path in ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``sqlite:file.db``.

    Raises:
        OptionError: there is none.
    """
    scheme, _, rest = uri.partition(":")
    path = rest.removeprefix("///")
    if not path or path.startswith((":", "//")):
        raise OptionError(
            f"uri={uri!r}: must name a file: '{scheme}:///folder/file.db' (relative) or '{scheme}:////folder/file.db' (absolute); a "
            "database in memory would be gone with each batch's connection"
        )
    return path

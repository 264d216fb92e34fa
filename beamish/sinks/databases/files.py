"""File-based databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from beamish.addresses import printable, without_secrets
from beamish.errors import OptionError, SinkError
from beamish.sinks.databases.database import Database


@attrs.frozen
class FileDatabase(Database):
    """A database in a file, ``scheme:///relative.db``, ``scheme:////absolute.db`` or ``scheme:file.db``."""

    @property
    def address(self) -> str:
        """The path.

        Raises:
            OptionError: the URI has no path.
        """
        scheme, _, rest = self.uri.partition(":")
        path = rest.removeprefix("///")
        if not path or path.startswith((":", "//")):
            raise OptionError(
                f"uri={printable(self.uri)}: must name a file: '{scheme}:///folder/file.db' (relative) or '{scheme}:////folder/file.db' "
                "(absolute); an in-memory database would be lost with each batch's connection"
            )
        return path

    def connect(self, driver: Any) -> Any:
        """Connect; a new file is created in an existing folder.

        Raises:
            SinkError: the folder does not exist.
        """
        folder = Path(self.address).absolute().parent
        if not folder.is_dir():
            shown = without_secrets(str(folder), self.uri)
            raise SinkError(
                f"{self.title}: {printable(self.uri)}: the folder {shown!r} does not exist; create it first"
            )
        return super().connect(driver)

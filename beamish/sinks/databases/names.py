"""SQL names of tables and columns."""

from __future__ import annotations

import re

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def quoted(name: str) -> str:
    """Quote any name."""
    return '"' + name.replace('"', '""') + '"'


@attrs.frozen
class TableName:
    """A table name, with an optional schema."""

    schema: str | None
    name: str

    @classmethod
    def read(cls, words: object) -> TableName:
        """Parse a SQL name: ``hourly``, ``stats.hourly``, ``stats."by.hour"``.

        Raises:
            OptionError: not a valid table name.
        """
        parts, at = [], 0
        while isinstance(words, str) and (found := _PART.match(words, at)):
            parts.append(found[1].replace('""', '"') if found[1] else found[2].strip())
            at = found.end()
            if at == len(words) or words[at] != ".":
                break
            at += 1
        if not isinstance(words, str) or at != len(words) or len(parts) not in (1, 2) or "" in parts:
            raise OptionError(
                f"table={printable(words)}: must be a name such as 'hourly' or 'stats.hourly'; a dot within a name needs quotes: "
                "'stats.\"by.hour\"'"
            )
        return cls(parts[0] if len(parts) == 2 else None, parts[-1])

    def beside(self, name: str) -> TableName:
        """A table in the same schema."""
        return TableName(self.schema, name)

    @property
    def sql(self) -> str:
        """The quoted name."""
        return ".".join(quoted(part) for part in (self.schema, self.name) if part is not None)

    def __str__(self) -> str:
        return ".".join(filter(None, (self.schema, self.name)))
